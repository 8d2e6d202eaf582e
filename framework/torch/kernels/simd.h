// Vectors of float in the width of the instruction set this file is compiled for (GCC and Clang vector extensions), with loads and
// stores that convert from and to float16 and bfloat16. Everything has internal linkage or lives in the namespace of the
// instruction set, so that code compiled for AVX-512 can never be picked for a host without it.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "kernels.h"

namespace custom_ops::native::KERNEL_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kLanes = kVectorBytes / 4;

typedef float Float __attribute__((vector_size(kVectorBytes)));
typedef int32_t Int __attribute__((vector_size(kVectorBytes)));
typedef uint32_t Uint __attribute__((vector_size(kVectorBytes)));
typedef uint16_t Bits16 __attribute__((vector_size(kVectorBytes / 2)));
typedef double Double __attribute__((vector_size(kVectorBytes * 2)));

struct Float16 { uint16_t bits; };
struct Bfloat16 { uint16_t bits; };

// function(T()) of the element type.
template <typename Function>
static inline void WithElement(Element element, const Function& function) {
    switch (element) {
        case Element::kFloat32: return function(float());
        case Element::kFloat16: return function(Float16());
        case Element::kBfloat16: return function(Bfloat16());
    }
}

static inline Float Splat(float value) { return value - Float{}; }

template <typename To, typename From>
static inline To BitCast(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof(to));
    return to;
}

template <typename Vector>
static inline Vector LoadVector(const void* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof(vector));
    return vector;
}

static inline Float FromFloat16(Bits16 half) {
#if defined(__AVX512F__)
    return _mm512_maskz_cvtph_ps(0xffff, BitCast<__m256i>(half));
#elif defined(__F16C__)
    return _mm256_cvtph_ps(BitCast<__m128i>(half));
#else
    // Exponent and mantissa moved to their float32 places are value * 2^-112, subnormals included; inf and NaN need all exponent bits.
    const Uint bits = __builtin_convertvector(half, Uint);
    const Uint magnitude = (bits & 0x7fffu) << 13;
    const Float scaled = BitCast<Float>(magnitude) * 0x1p112f;
    const Uint special = BitCast<Uint>(magnitude >= 0x0f800000u) & 0x7f800000u;
    return BitCast<Float>(BitCast<Uint>(scaled) | special | ((bits & 0x8000u) << 16));
#endif
}

// Round to nearest even, the bfloat16 in the upper half of every lane; NaN becomes quiet.
static inline Uint ToBfloat16(Float value) {
    const Uint bits = BitCast<Uint>(value);
    const Uint isNan = BitCast<Uint>(value != value);
    const Uint rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    return (rounded & ~isNan) | ((bits | 0x00400000u) & isNan);
}

static inline Bits16 ToFloat16(Float value) {
#if defined(__AVX512F__)
    return BitCast<Bits16>(_mm512_maskz_cvtps_ph(0xffff, value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
    return BitCast<Bits16>(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
    const Uint bits = BitCast<Uint>(value);
    const Uint magnitude = bits & 0x7fffffffu;
    // Normal: rebias by 112 and round at bit 13. Subnormal (below 2^-14): 0.5 has the ulp of the smallest float16 subnormal, so
    // that one addition rounds. From 65520 on the result is inf.
    const Uint normal = (magnitude - (112u << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
    const Uint subnormal = BitCast<Uint>(BitCast<Float>(magnitude) + 0.5f) - 0x3f000000u;
    const Uint isSubnormal = BitCast<Uint>(magnitude < 0x38800000u);
    const Uint isHuge = BitCast<Uint>(magnitude >= 0x477ff000u);
    const Uint isNan = BitCast<Uint>(value != value);
    Uint half = (subnormal & isSubnormal) | (normal & ~isSubnormal);
    half = (half & ~isHuge) | (0x7c00u & isHuge) | (0x7e00u & isNan);
    return __builtin_convertvector(half | ((bits >> 16) & 0x8000u), Bits16);
#endif
}

static inline float ToFloat(float value) { return value; }
static inline float ToFloat(Bfloat16 value) { return BitCast<float>(static_cast<uint32_t>(value.bits) << 16); }
static inline float ToFloat(Float16 value) { return FromFloat16(Bits16{value.bits})[0]; }

// Past the caches; `to` is aligned to kVectorBytes.
static inline void Stream(void* to, Uint vector) {
#if defined(__AVX512F__)
    _mm512_stream_si512(static_cast<__m512i*>(to), BitCast<__m512i>(vector));
#elif defined(__AVX__)
    _mm256_stream_si256(static_cast<__m256i*>(to), BitCast<__m256i>(vector));
#elif defined(__x86_64__)
    _mm_stream_si128(static_cast<__m128i*>(to), BitCast<__m128i>(vector));
#else
    std::memcpy(to, &vector, sizeof(vector));
#endif
}

static inline void StreamFence() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

// While it lives, float32 results below the smallest normal number are 0: arithmetic with subnormal ones is a hundred times slower.
class FlushSubnormals {
public:
#if defined(__x86_64__)
    FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | _MM_FLUSH_ZERO_ON); }
    ~FlushSubnormals() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
    FlushSubnormals() : before_(__builtin_aarch64_get_fpcr()) { __builtin_aarch64_set_fpcr(before_ | 1u << 24); }
    ~FlushSubnormals() { __builtin_aarch64_set_fpcr(before_); }
#else
    FlushSubnormals() : before_(0) {}
#endif
    FlushSubnormals(const FlushSubnormals&) = delete;

private:
    const unsigned before_;
};

// The line `elements` further on, into the first-level cache. It may lie past the end of the tensor: a prefetch never faults.
template <typename T>
static inline void Prefetch(const T* from, int64_t elements) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(from) + elements * sizeof(T)), 0, 3);
}

// Into the second-level cache.
template <typename T>
static inline void PrefetchSecond(const T* from, int64_t elements) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(from) + elements * sizeof(T)), 0, 2);
}

// How far from `column` of a row to fetch: a kilobyte, and at the row's end into the same row of the next token, `pitch` elements further.
// Hardware prefetchers stop at page ends, of which a token has many.
template <typename T>
static inline int64_t Ahead(int64_t column, int64_t rowElements, int64_t pitch) {
    constexpr int64_t kAhead = 1024 / sizeof(T);
    return column + kAhead < rowElements ? kAhead : kAhead - rowElements + pitch;
}

template <bool kPastCache>
static inline void StoreVector(void* to, Uint vector) {
    if (kPastCache) Stream(to, vector);
    else std::memcpy(to, &vector, sizeof(vector));
}

// 2 * kLanes consecutive elements as two vectors of float. Which element is in which lane is the element type's own business:
// LoadPair and StorePair agree, and everything between them is element-wise.
struct Pair { Float a, b; };
constexpr int kPairElements = 2 * kLanes;

static inline Pair LoadPair(const float* from) { return {LoadVector<Float>(from), LoadVector<Float>(from + kLanes)}; }
static inline Pair LoadPair(const Float16* from) {
    return {FromFloat16(LoadVector<Bits16>(from)), FromFloat16(LoadVector<Bits16>(from + kLanes))};
}
// Even elements in a, odd ones in b: one load and two instructions, no shuffle.
static inline Pair LoadPair(const Bfloat16* from) {
    const Uint both = LoadVector<Uint>(from);
    return {BitCast<Float>(both << 16), BitCast<Float>(both & 0xffff0000u)};
}

template <bool kPastCache>
static inline void StorePair(float* to, Pair pair) {
    StoreVector<kPastCache>(to, BitCast<Uint>(pair.a));
    StoreVector<kPastCache>(to + kLanes, BitCast<Uint>(pair.b));
}
template <bool kPastCache>
static inline void StorePair(Float16* to, Pair pair) {
    const Bits16 halves[2] = {ToFloat16(pair.a), ToFloat16(pair.b)};
    StoreVector<kPastCache>(to, LoadVector<Uint>(halves));
}
template <bool kPastCache>
static inline void StorePair(Bfloat16* to, Pair pair) {
    StoreVector<kPastCache>(to, (ToBfloat16(pair.a) >> 16) | (ToBfloat16(pair.b) & 0xffff0000u));
}

// A NaN whose lower half is zero, as those of bfloat16 are. Arithmetic on such and on numbers gives no others, and they stay NaN
// when rounded like a number: the sums of bfloat16 streams need no test for NaN, which would cost as much as the rounding.
static inline float ShortNan(float value) {
    return value == value ? value : BitCast<float>((BitCast<uint32_t>(value) & 0xffff0000u) | 0x00400000u);
}

// Round to nearest even, the bfloat16 in the upper half of every lane.
static inline Uint RoundNumber(Float value) {
    const Uint bits = BitCast<Uint>(value);
    return bits + 0x7fffu + ((bits >> 16) & 1u);
}

template <bool kPastCache, typename T>
static inline void StoreSum(T* to, Pair pair) { StorePair<kPastCache>(to, pair); }
template <bool kPastCache>
static inline void StoreSum(Bfloat16* to, Pair pair) {
    StoreVector<kPastCache>(to, (RoundNumber(pair.a) >> 16) | (RoundNumber(pair.b) & 0xffff0000u));
}

// The last `count` < kPairElements elements of a row, followed by zeros.
template <typename T>
static inline Pair LoadPart(const T* from, int64_t count) {
    T padded[kPairElements] = {};
    std::memcpy(padded, from, count * sizeof(T));
    return LoadPair(padded);
}
template <typename T>
static inline void StorePart(T* to, Pair pair, int64_t count) {
    T padded[kPairElements];
    StorePair<false>(padded, pair);
    std::memcpy(to, padded, count * sizeof(T));
}

// GCC 12 makes several shuffles of __builtin_convertvector where there is one instruction.
static inline Uint Widen(Bits16 bits) {
#if defined(__AVX512F__)
    return BitCast<Uint>(_mm512_maskz_cvtepu16_epi32(0xffff, BitCast<__m256i>(bits)));
#elif defined(__AVX2__)
    return BitCast<Uint>(_mm256_cvtepu16_epi32(BitCast<__m128i>(bits)));
#else
    return __builtin_convertvector(bits, Uint);
#endif
}
// The lower halves.
static inline Bits16 Narrow(Uint bits) {
#if defined(__AVX512F__)
    return BitCast<Bits16>(_mm512_maskz_cvtepi32_epi16(0xffff, BitCast<__m512i>(bits)));
#else
    return __builtin_convertvector(bits, Bits16);
#endif
}

// kLanes consecutive elements in their order.
static inline Float Load(const float* from) { return LoadVector<Float>(from); }
static inline Float Load(const Float16* from) { return FromFloat16(LoadVector<Bits16>(from)); }
static inline Float Load(const Bfloat16* from) {
    return BitCast<Float>(Widen(LoadVector<Bits16>(from)) << 16);
}
template <typename Vector>
static inline void StoreBits(void* to, Vector vector) { std::memcpy(to, &vector, sizeof(vector)); }
static inline void Store(float* to, Float value) { StoreBits(to, value); }
static inline void Store(Float16* to, Float value) { StoreBits(to, ToFloat16(value)); }
static inline void Store(Bfloat16* to, Float value) { StoreBits(to, Narrow(ToBfloat16(value) >> 16)); }

// The first `count` <= kLanes elements, followed by zeros.
template <typename T>
static inline Float LoadFirst(const T* from, int64_t count) {
    if (count == kLanes) return Load(from);
    T padded[kLanes] = {};
    std::memcpy(padded, from, count * sizeof(T));
    return Load(padded);
}
template <typename T>
static inline void StoreFirst(T* to, Float value, int64_t count) {
    if (count == kLanes) return Store(to, value);
    T padded[kLanes];
    Store(padded, value);
    std::memcpy(to, padded, count * sizeof(T));
}

// a * b + c, fused where the instruction set has it. Written out where two products are added: which of them the compiler would fuse
// may differ from place to place.
static inline Float MulAdd(Float a, Float b, Float c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
    return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
    return BitCast<Float>(vfmaq_f32(BitCast<float32x4_t>(c), BitCast<float32x4_t>(a), BitCast<float32x4_t>(b)));
#else
    return a * b + c;
#endif
}

// Of the lanes, pair by pair.
static inline float Sum(Float value) {
    float lanes[kLanes];
    StoreBits(lanes, value);
    for (int half = kLanes / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    return lanes[0];
}

// exp(v) = 2^n * exp(r), n = round(v / ln 2), |r| <= ln 2 / 2, exp(r) by its Taylor series to r^7: the first term left out is
// r^8 / 8! < 5.2e-9, a tenth of an ulp. Measured on every 37th float of [-87, 88]: at most 0.92 ulp with FMA, 1.15 without. Below
// -104 it is 0, above 88.73 inf, NaN stays NaN.
static inline Float Exp(Float v) {
    const Float low = Splat(-104.0f), high = Splat(89.0f);
    v = v < low ? low : v;
    v = v > high ? high : v;
    const Float magic = Splat(0x1.8p23f);  // adding it leaves the integer part in the low mantissa bits
    const Float n = (v * 1.44269504f + magic) - magic;
    // ln 2 in two parts; the first has trailing zeros, so that n * kLn2High is exact.
    const Float r = (v - n * 0x1.62ep-1f) - n * 0x1.0bfbe8p-15f;
    Float p = Splat(1.0f / 5040);
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    // 2^n in two factors: n may be 128 or below -126.
    const Int exponent = __builtin_convertvector(n, Int);
    const Int half = exponent >> 1;
    return p * BitCast<Float>((half + 127) << 23) * BitCast<Float>((exponent - half + 127) << 23);
}

// exp(-v) = inf gives 0, as it must.
static inline Float Sigmoid(Float v) { return 1.0f / (1.0f + Exp(-v)); }
static inline Float Silu(Float v) { return v / (1.0f + Exp(-v)); }

// ln(1 + e^v) = max(v, 0) + ln(1 + y), y = e^-|v|; ln(1 + y) = 2 artanh(s), s = y / (2 + y) <= 1/3: the first term left out of the series
// is s^16 / 17 < 1.4e-9 of it.
static inline Float Softplus(Float v) {
    const Float zero = {}, negative = v < zero ? v : -v;
    const Float y = Exp(negative), s = y / (2.0f + y), s2 = s * s;
    Float p = Splat(1.0f / 15);
    for (int odd = 13; odd > 0; odd -= 2) p = p * s2 + 1.0f / odd;
    return (v > zero ? v : zero) + 2.0f * s * p;
}

}  // namespace custom_ops::native::KERNEL_ISA
