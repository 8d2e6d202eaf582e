#include "sim/host/log.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "toolchain/slog.h"

namespace {

thread_local std::string errors;

}  // namespace

int32_t CheckLogLevel(int32_t, int32_t level) {
    static const int32_t wanted = [] {
        const char* text = std::getenv("ASCEND_GLOBAL_LOG_LEVEL");
        return text == nullptr ? DLOG_ERROR : static_cast<int32_t>(std::atoi(text));
    }();
    return level >= wanted ? 1 : 0;
}

void DlogRecord(int32_t moduleId, int32_t level, const char* format, ...) {
    if (level < DLOG_ERROR && CheckLogLevel(moduleId, level) == 0) return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (level < DLOG_ERROR) {
        std::fprintf(stderr, "%s\n", text);
        return;
    }
    errors += (errors.empty() ? "" : "; ") + std::string(text);
}

namespace sim::host {

std::string TakeLoggedErrors() { return std::exchange(errors, {}); }

}  // namespace sim::host
