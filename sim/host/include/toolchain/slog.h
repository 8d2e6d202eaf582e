// Logging of host code. Errors become part of the message that the failing aclnn call leaves in aclGetRecentErrMsg();
// lower levels go to stderr when ASCEND_GLOBAL_LOG_LEVEL (0 debug .. 3 error, the default) asks for them.
//
//   dlog_error(OP, "hc_post: %u streams, supported are 1 to %u", streams, kMaxStreams);
#pragma once

#include <cstdint>

enum { OP = 63 };  // module id
enum { DLOG_DEBUG = 0, DLOG_INFO = 1, DLOG_WARN = 2, DLOG_ERROR = 3 };

extern "C" {
int32_t CheckLogLevel(int32_t moduleId, int32_t level);
void DlogRecord(int32_t moduleId, int32_t level, const char* format, ...) __attribute__((format(printf, 3, 4)));
}

#define dlog_error(moduleId, ...) DlogRecord(moduleId, DLOG_ERROR, __VA_ARGS__)
#define dlog_warn(moduleId, ...) DlogRecord(moduleId, DLOG_WARN, __VA_ARGS__)
#define dlog_info(moduleId, ...) DlogRecord(moduleId, DLOG_INFO, __VA_ARGS__)
#define dlog_debug(moduleId, ...) DlogRecord(moduleId, DLOG_DEBUG, __VA_ARGS__)
