// What one lane of an instruction computes, where it is more than a C++ operator.
#pragma once

#include "ascendc/operand.h"

// Declared free of side effects: taken to set errno, it would keep loops scalar.
extern "C" float sqrtf(float) noexcept __attribute__((const));

namespace sim::vec {

using sim::Exponential;

// Integer overflow: the documentation of Add and Sub says that int16 and int32 saturate; products were seen to keep their
// low bits. Other integer types wrap.
template <typename T, typename Wider>
SIM_INLINE inline T Saturate(Wider value) {
    constexpr Wider kHigh = Wider(std::make_unsigned_t<T>(-1) >> std::is_signed_v<T>), kLow = std::is_signed_v<T> ? -kHigh - 1 : 0;
    return T(value < kLow ? kLow : value > kHigh ? kHigh : value);
}

template <typename T>
SIM_INLINE inline T Sum(T a, T b) {
    if constexpr (std::is_same_v<T, int16_t>) return Saturate<T>(int32_t(a) + b);
    else if constexpr (std::is_same_v<T, int32_t>) return Saturate<T>(int64_t(a) + b);
    else if constexpr (std::is_integral_v<T>) return T(uint64_t(a) + uint64_t(b));
    else return a + b;
}
template <typename T>
SIM_INLINE inline T Difference(T a, T b) {
    if constexpr (std::is_same_v<T, int16_t>) return Saturate<T>(int32_t(a) - b);
    else if constexpr (std::is_same_v<T, int32_t>) return Saturate<T>(int64_t(a) - b);
    else if constexpr (std::is_integral_v<T>) return T(uint64_t(a) - uint64_t(b));
    else return a - b;
}
template <typename T>
SIM_INLINE inline T Product(T a, T b) {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= 4) return T(uint32_t(a) * uint32_t(b));
    else if constexpr (std::is_integral_v<T>) return T(uint64_t(a) * uint64_t(b));
    else return a * b;
}
template <typename T>
SIM_INLINE inline T Quotient(T a, T b) {
    if constexpr (std::is_integral_v<T>) return b == 0 ? T(-1) : std::is_signed_v<T> && b == T(-1) ? Product(a, b) : T(a / b);
    else return a / b;
}
// A NaN operand is the result.
template <typename T>
SIM_INLINE inline T Larger(T a, T b) { return a > b || a != a ? a : b; }
template <typename T>
SIM_INLINE inline T Smaller(T a, T b) { return a < b || a != a ? a : b; }
template <typename T>
SIM_INLINE inline T Positive(T a) { return a > T(0) || a != a ? a : T(0); }

template <typename T>
SIM_INLINE inline T Magnitude(T a) {
    if constexpr (std::is_integral_v<T>) return a < 0 ? Difference(T(0), a) : a;
    else return __builtin_fabsf(a);
}

SIM_INLINE inline float SquareRoot(float a) { return ::sqrtf(a); }

template <typename T>
SIM_INLINE inline T ShiftedLeft(T a, uint32_t by) {
    return by >= 8 * sizeof(T) ? T(0) : T(std::make_unsigned_t<T>(a) << by);
}
// Arithmetic for signed types; `round` adds the last bit shifted out.
template <typename T>
SIM_INLINE inline T ShiftedRight(T a, uint32_t by, bool round) {
    if (by == 0) return a;
    const T kept = by >= 8 * sizeof(T) ? T(std::is_signed_v<T> && a < 0 ? -1 : 0) : T(a >> by);
    const T last = by > 8 * sizeof(T) ? T(std::is_signed_v<T> && a < 0 ? 1 : 0) : T(a >> (by - 1) & 1);
    return round ? T(kept + last) : kept;
}

}  // namespace sim::vec
