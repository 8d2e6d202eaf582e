// Conversions between float and the 16-bit floats, and exp: once for membase lanes, registers and scalars. In integer and branch-free,
// so that the loops around them vectorise on any host; the same also while a vector function flushes float denormals.
#pragma once

#include <cstdint>

namespace sim {

#define SIM_ALWAYS __attribute__((always_inline))

template <typename To, typename From>
SIM_ALWAYS constexpr To Bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, from);
}

SIM_ALWAYS constexpr float FloatOfHalf(uint16_t half) {
    const uint32_t size = uint32_t(half & 0x7fff) << 13;                      // exponent and mantissa in place
    const uint32_t bias = 112u << 23;                                         // 127 - 15
    const uint32_t normal = size + (size >= (31u << 23) ? 2 * bias : bias);   // infinity and NaN go to exponent 255
    const uint32_t denormal = Bits<uint32_t>(Bits<float>(size + (113u << 23)) - 0x1p-14f);
    return Bits<float>(uint32_t(half & 0x8000) << 16 | (size < (1u << 23) ? denormal : normal));
}
SIM_ALWAYS constexpr uint16_t HalfOfFloat(float value) {   // to nearest even; 65520 and more: infinity; a NaN stays a quiet NaN
    const uint32_t bits = Bits<uint32_t>(value), size = bits & 0x7fffffff;
    const uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    const uint32_t denormal = Bits<uint32_t>(Bits<float>(size) + 0.5f) - Bits<uint32_t>(0.5f);   // the last place of 0.5 is 2^-24
    const uint32_t special = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x1ff) : 0x7c00;
    const uint32_t half = size >= 0x47800000 ? special : size < 0x38800000 ? denormal : normal;
    return uint16_t(half | (bits >> 16 & 0x8000));
}

SIM_ALWAYS constexpr float FloatOfBfloat16(uint16_t bits) { return Bits<float>(uint32_t(bits) << 16); }
SIM_ALWAYS constexpr uint16_t Bfloat16OfFloat(float value) {   // to nearest even; a NaN stays a quiet NaN
    const uint32_t bits = Bits<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return uint16_t((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

// exp in double, rounded once: within 0.501 ulp of float, and the same on every host and in every lane.
SIM_ALWAYS inline float Exponential(float a) {
    // exp(89) is infinite in float and exp(-104) is 0: cut there, in integers, since a float comparison becomes a branch
    const uint32_t bits = Bits<uint32_t>(a), magnitude = bits & 0x7fffffff;
    const uint32_t limit = 0x42b20000 + (bits >> 31) * (0x42d00000 - 0x42b20000);  // 89.0f, or 104.0f
    const double x = Bits<float>((magnitude < limit ? magnitude : limit) | (bits & 0x80000000));
    const double shifted = x * 0x1.71547652b82fep+0 + 0x1.8p52;  // log2(e); the sum rounds to an integer n in the low bits
    const double f = x - (shifted - 0x1.8p52) * 0x1.62e42fefa39efp-1;  // ln(2); |f| <= 0.35
    // Taylor to f^10: the next term is below 1e-12 of the result
    double sum = 1.0 / 3628800;
    sum = sum * f + 1.0 / 362880;
    sum = sum * f + 1.0 / 40320;
    sum = sum * f + 1.0 / 5040;
    sum = sum * f + 1.0 / 720;
    sum = sum * f + 1.0 / 120;
    sum = sum * f + 1.0 / 24;
    sum = sum * f + 1.0 / 6;
    sum = sum * f + 0.5;
    sum = sum * f + 1.0;
    sum = sum * f + 1.0;
    const float result = float(sum * Bits<double>((Bits<uint64_t>(shifted) + 1023) << 52));  // times 2^n
    return Bits<float>(Bits<uint32_t>(result) | (magnitude > 0x7f800000 ? 0x7fc00000 : 0));  // NaN
}

#undef SIM_ALWAYS

}  // namespace sim
