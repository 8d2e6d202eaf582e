// A plan, or the sentence that says why there is none.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>

namespace custom_ops {

struct Failure {
    std::string message;
};

// printf-like; the whole sentence: operator, argument, what was given, what is accepted.
__attribute__((format(printf, 1, 2))) inline Failure Error(const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return {text};
}

template <typename T>
class Result {
public:
    Result(T value) : value_(std::move(value)), ok_(true) {}             // NOLINT: `return plan;`
    Result(Failure failure) : message_(std::move(failure.message)) {}    // NOLINT: `return Error(...);`

    explicit operator bool() const { return ok_; }
    const T& operator*() const { return value_; }
    const T* operator->() const { return &value_; }
    const std::string& Message() const { return message_; }

private:
    T value_{};
    bool ok_ = false;
    std::string message_;
};

}  // namespace custom_ops
