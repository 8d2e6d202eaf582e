// How calls of the C interface end: a code, the sentence for aclGetRecentErrMsg, and the thread's last error.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include "sim/acl/codes.h"
#include "sim/acl/forked.h"

namespace sim::acl {

struct AclFailure : std::runtime_error {
    AclFailure(int given, const std::string& message) : std::runtime_error(message), code(given) {}
    int code;
};
[[noreturn]] void Refuse(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Remembers the failure of a call of this thread and returns its code.
int RememberFailure(const char* function, int code, const char* message);

// Body of an exported function: exceptions become its code.
template <typename Body>
int Call(const char* function, Body&& body) {
    try {
        RefuseInForkedProcess();
        body();
        return kSuccess;
    } catch (const AclFailure& failure) {
        return RememberFailure(function, failure.code, failure.what());
    } catch (const std::exception& failure) {
        return RememberFailure(function, kInternalError, failure.what());
    }
}

template <typename T>
T& NotNull(T* pointer, const char* name) {
    if (pointer == nullptr) Refuse(kInvalidParameter, "%s must not be null", name);
    return *pointer;
}

}  // namespace sim::acl
