#include "sim/acl/status.h"

#include <cstdarg>
#include <cstdio>
#include <utility>

#include "acl/acl_base.h"
#include "sim/opapi/session.h"

namespace sim::acl {
namespace {

thread_local int lastError = kSuccess;

}  // namespace

void Refuse(int code, const char* format, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    throw AclFailure(code, text);
}

int RememberFailure(const char* function, int code, const char* message) {
    opapi::ThisSession().error = std::string(function) + ": " + message;
    return lastError = code;
}

}  // namespace sim::acl

using sim::acl::kSuccess;

extern "C" {

ACL_FUNC_VISIBILITY int aclrtPeekAtLastError(int) { return sim::acl::lastError; }
ACL_FUNC_VISIBILITY int aclrtGetLastError(int) { return std::exchange(sim::acl::lastError, int(kSuccess)); }

}  // extern "C"
