// The bounds-checked C string functions (C11 Annex K in spirit) that CANN's libraries carry: the destination's size comes along, an
// overflow leaves an empty string and an error instead of a truncated one. vsnprintf_s and snprintf_s truncate at `count` characters
// when count < size, which is not an error of the buffer but is reported with -1 as well.
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kOk = 0;
constexpr int kOverflow = ERANGE;
constexpr size_t kMaxSize = 0x7fffffffUL;  // sizes above are taken for negative numbers

int Refuse(char* destination, size_t size, int status) {
    if (destination != nullptr && size > 0 && size <= kMaxSize) destination[0] = '\0';
    return status;
}

int CheckedCopy(char* destination, size_t size, size_t offset, const char* source, size_t length) {
    if (length >= size - offset) return Refuse(destination, size, kOverflow);
    std::memmove(destination + offset, source, length);
    destination[offset + length] = '\0';
    return kOk;
}

}  // namespace

extern "C" {

int memset_s(void* destination, size_t size, int value, size_t count) {
    if (destination == nullptr || size > kMaxSize) return EINVAL;
    std::memset(destination, value, count < size ? count : size);
    return count <= size ? kOk : kOverflow;
}

int memcpy_s(void* destination, size_t size, const void* source, size_t count) {
    if (destination == nullptr || size > kMaxSize) return EINVAL;
    if (source == nullptr || count > size) {
        std::memset(destination, 0, size);
        return source == nullptr ? EINVAL : kOverflow;
    }
    std::memmove(destination, source, count);
    return kOk;
}

int strcpy_s(char* destination, size_t size, const char* source) {
    if (destination == nullptr || source == nullptr || size == 0 || size > kMaxSize) return Refuse(destination, size, EINVAL);
    return CheckedCopy(destination, size, 0, source, std::strlen(source));
}

int strncpy_s(char* destination, size_t size, const char* source, size_t count) {
    if (destination == nullptr || source == nullptr || size == 0 || size > kMaxSize) return Refuse(destination, size, EINVAL);
    return CheckedCopy(destination, size, 0, source, strnlen(source, count));
}

int strcat_s(char* destination, size_t size, const char* source) {
    if (destination == nullptr || source == nullptr || size == 0 || size > kMaxSize) return Refuse(destination, size, EINVAL);
    const size_t used = strnlen(destination, size);
    if (used == size) return Refuse(destination, size, EINVAL);
    return CheckedCopy(destination, size, used, source, std::strlen(source));
}

int vsprintf_s(char* destination, size_t size, const char* format, va_list arguments) {
    if (destination == nullptr || format == nullptr || size == 0 || size > kMaxSize) return Refuse(destination, size, -1);
    const int length = std::vsnprintf(destination, size, format, arguments);
    return length >= 0 && static_cast<size_t>(length) < size ? length : Refuse(destination, size, -1);
}

int vsnprintf_s(char* destination, size_t size, size_t count, const char* format, va_list arguments) {
    if (destination == nullptr || format == nullptr || size == 0 || size > kMaxSize) return Refuse(destination, size, -1);
    const size_t room = count < size ? count + 1 : size;
    const int length = std::vsnprintf(destination, room, format, arguments);
    if (length >= 0 && static_cast<size_t>(length) < room) return length;
    return room == count + 1 && length >= 0 ? -1 : Refuse(destination, size, -1);
}

int sprintf_s(char* destination, size_t size, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsprintf_s(destination, size, format, arguments);
    va_end(arguments);
    return length;
}

int snprintf_s(char* destination, size_t size, size_t count, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf_s(destination, size, count, format, arguments);
    va_end(arguments);
    return length;
}

}  // extern "C"
