// Lane functions of the register instructions. Branch-free, so that the loops around them vectorise.
#pragma once

#include "ascendc/micro_api/lanes.h"

namespace AscendC::Reg::regimpl {

// The scalar operand of an instruction whose elements are T.
template <typename T, typename S>
REG_INLINE inline T ToElement(S scalar) {
    if constexpr (std::is_same_v<S, T>) return scalar;
    else if constexpr (std::is_same_v<T, bfloat16_t>) return bfloat16_t(static_cast<float>(scalar));
    else return static_cast<T>(scalar);
}

// NaN wins in both, as in the reductions.
template <typename A>
REG_INLINE inline A Larger(A a, A b) {
    if constexpr (std::is_same_v<A, float>) return a != a ? a : (b != b ? b : (a > b ? a : b));
    else return a > b ? a : b;
}
template <typename A>
REG_INLINE inline A Smaller(A a, A b) {
    if constexpr (std::is_same_v<A, float>) return a != a ? a : (b != b ? b : (a < b ? a : b));
    else return a < b ? a : b;
}
template <typename A>
REG_INLINE inline A Magnitude(A a) {
    if constexpr (std::is_same_v<A, float>) return Bits<float>(Bits<uint32_t>(a) & 0x7fffffffu);
    else return a < 0 ? -a : a;
}
// Integers wrap: in unsigned arithmetic, which is defined.
template <typename A>
REG_INLINE inline A Product(A a, A b) {
    if constexpr (std::is_same_v<A, float>) return a * b;
    else return A(Uint<sizeof(A)>(a) * Uint<sizeof(A)>(b));
}
template <typename A>
REG_INLINE inline A MultiplyAdd(A a, A b, A c) {
    if constexpr (std::is_same_v<A, float>) return __builtin_fmaf(a, b, c);
    else return A(Uint<sizeof(A)>(a) * Uint<sizeof(A)>(b) + Uint<sizeof(A)>(c));
}
// Integer division by zero gives all ones, as the inactive lanes may well do it.
template <typename T, typename A>
REG_INLINE inline A Quotient(A a, A b) {
    if constexpr (std::is_same_v<A, float>) return a / b;
    else return b == 0 ? A(-1) : a / (b == 0 ? A(1) : b);
}
template <typename T, typename A, typename B>
REG_INLINE inline A Left(A a, B distance) {
    using U = std::make_unsigned_t<T>;
    return distance < 0 || uint64_t(distance) >= sizeof(T) * 8 ? A(0) : A(U(a) << uint32_t(distance));
}
template <typename T, typename A, typename B>
REG_INLINE inline A Right(A a, B distance) {
    const bool all = distance < 0 || uint64_t(distance) >= sizeof(T) * 8;
    return a >> (all ? uint32_t(sizeof(T) * 8 - 1) : uint32_t(distance)) >> (all && !std::is_signed_v<T> ? 1 : 0);
}

template <RoundMode mode>
REG_INLINE inline float Integral(float a) {
    if constexpr (mode == RoundMode::CAST_FLOOR) return __builtin_floorf(a);
    else if constexpr (mode == RoundMode::CAST_CEIL) return __builtin_ceilf(a);
    else if constexpr (mode == RoundMode::CAST_TRUNC) return __builtin_truncf(a);
    else if constexpr (mode == RoundMode::CAST_ROUND) return __builtin_roundf(a);
    else return __builtin_rintf(a);
}

// x = m * 2^e, m in [sqrt(1/2), sqrt(2)): log2(x) = e + 2 atanh(s) / ln 2, s = (m - 1) / (m + 1).
struct Logarithm {
    double exponent, mantissa;   // e, ln(m)
};
REG_INLINE inline Logarithm SplitLog(double x) {
    const int64_t bits = Bits<int64_t>(x);
    const int64_t e = (bits - Bits<int64_t>(0.70710678118654752440)) >> 52;
    const double m = Bits<double>(bits - (e << 52));
    const double s = (m - 1.0) / (m + 1.0), t = s * s;   // |s| < 0.1716
    double p = 1.0 / 15;
    p = p * t + 1.0 / 13;
    p = p * t + 1.0 / 11;
    p = p * t + 1.0 / 9;
    p = p * t + 1.0 / 7;
    p = p * t + 1.0 / 5;
    p = p * t + 1.0 / 3;
    p = p * t + 1.0;
    return {static_cast<double>(e), 2.0 * s * p};
}
// Zero (and a denormal, flushed) -> -inf; negative -> NaN; inf and NaN stay.
REG_INLINE inline float LogResult(float x, double log) {
    float result = static_cast<float>(log);
    result = x == 0.0f ? -__builtin_inff() : result;
    result = x < 0.0f ? __builtin_nanf("") : result;
    result = x == __builtin_inff() ? x : result;
    return x != x ? x : result;
}
REG_INLINE inline float LnOf(float x) {
    const Logarithm log = SplitLog(x);
    return LogResult(x, log.exponent * 0.693147180559945309417 + log.mantissa);
}
REG_INLINE inline float Log2Of(float x) {
    const Logarithm log = SplitLog(x);
    return LogResult(x, log.exponent + log.mantissa * 1.44269504088896340736);
}
REG_INLINE inline float Log10Of(float x) {
    const Logarithm log = SplitLog(x);
    return LogResult(x, log.exponent * 0.301029995663981195214 + log.mantissa * 0.434294481903251827651);
}

inline MaskReg InitialCarry(bool set) {
    MaskReg mask;
    if (set) for (uint64_t& word : mask.word) word = ~0ull;
    return mask;
}

}  // namespace AscendC::Reg::regimpl
