// What every register instruction shares: lane loops under a mask, tainted lanes, element types, cost.
#pragma once

#include "ascendc/micro_api/registers.h"

// The kernel is built with -O2, whose cost model leaves some loops scalar; errno and FP traps do not exist on the device.
#define REG_INLINE __attribute__((always_inline))
#if defined(__clang__)
#define REG_LOOP __attribute__((noinline))
#define REG_LOOP_PART __attribute__((always_inline))
#define REG_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define REG_LOOP_FLAGS optimize("O3", "no-math-errno", "no-trapping-math")
#define REG_LOOP __attribute__((noinline, REG_LOOP_FLAGS))
#define REG_LOOP_PART __attribute__((always_inline, REG_LOOP_FLAGS))   // inlined into a REG_LOOP function
#define REG_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace AscendC::Reg::regimpl {

using sim::Bits;
using sim::Location;
using sim::RegCost;
using sim::Taint;
using sim::VectorFunction;

// --- element types ----------------------------------------------------------------------------------------------------
template <typename T> inline constexpr bool kFloating = std::is_same_v<T, float> || std::is_same_v<T, half>;
template <typename T> inline constexpr bool kInteger = std::is_integral_v<T>;
template <typename T> inline constexpr bool kNumber = kFloating<T> || kInteger<T>;
template <typename T> inline constexpr bool kNumberOrBf16 = kNumber<T> || std::is_same_v<T, bfloat16_t>;
template <typename T, typename Reg>
inline constexpr bool kNames = std::is_same_v<T, DefaultType> || std::is_same_v<T, typename Reg::ActualT>;

// T, when given, is what the pointer points to.
template <typename T, typename Pointed>
inline constexpr bool kPoints = std::is_same_v<T, DefaultType> || std::is_same_v<T, std::remove_cv_t<Pointed>>;

template <uint32_t bytes> struct UintOf;
template <> struct UintOf<1> { using Type = uint8_t; };
template <> struct UintOf<2> { using Type = uint16_t; };
template <> struct UintOf<4> { using Type = uint32_t; };
template <> struct UintOf<8> { using Type = uint64_t; };
template <> struct UintOf<16> { using Type = unsigned __int128; };
template <uint32_t bytes> using Uint = typename UintOf<bytes>::Type;

// The type a lane is computed in: float for all float types (one operation in float, rounded once more to 16 bits, is
// the correctly rounded 16-bit result); twice the width for integers, so that sums and negations do not overflow. Products of
// unsigned lanes may: see Product.
template <typename T>
REG_INLINE inline auto Widen(T value) {
    if constexpr (std::is_same_v<T, bfloat16_t>) return sim::FloatOfBfloat16(Bits<uint16_t>(value));
    else if constexpr (std::is_same_v<T, half>) return sim::FloatOfHalf(Bits<uint16_t>(value));
    else if constexpr (!std::is_integral_v<T>) return value;
    else if constexpr (sizeof(T) == 8) return static_cast<__int128>(value);
    else if constexpr (sizeof(T) == 4) return static_cast<int64_t>(value);
    else return static_cast<int32_t>(value);
}
template <typename T, typename V>
REG_INLINE inline T Narrow(V value) {
    if constexpr (std::is_same_v<T, bfloat16_t> && !std::is_same_v<V, bfloat16_t>) {
        return Bits<T>(sim::Bfloat16OfFloat(static_cast<float>(value)));
    } else if constexpr (std::is_same_v<T, half> && std::is_same_v<V, float>) {
        return Bits<half>(sim::HalfOfFloat(value));
    } else {
        return static_cast<T>(value);
    }
}

// --- masks ------------------------------------------------------------------------------------------------------------
constexpr uint64_t FirstBits(uint32_t step) {   // the bit of each lane that counts
    return step == 1 ? ~0ull : step == 2 ? 0x5555555555555555ull : step == 4 ? 0x1111111111111111ull : 0x0101010101010101ull;
}
// All bits of each lane that is on.
template <uint32_t step>
inline MaskReg WholeLanes(const MaskReg& mask) {
    MaskReg whole;
    for (int i = 0; i < 4; ++i) whole.word[i] = (mask.word[i] & FirstBits(step)) * ((1ull << (step - 1) << 1) - 1);
    return whole;
}

// The number of active lanes when they are the first ones; -1 when there are gaps.
template <uint32_t step>
inline int32_t PrefixLanes(const MaskReg& mask) {
    const MaskReg whole = WholeLanes<step>(mask);
    for (uint32_t w = 0; w < 4; ++w) {
        const uint64_t word = whole.word[w];
        if (word == ~0ull) continue;
        uint64_t rest = word & (word + 1);   // not 0: a gap in this word
        for (uint32_t later = w + 1; later < 4; ++later) rest |= whole.word[later];
        return rest != 0 ? -1 : int32_t((w * 64 + uint32_t(__builtin_popcountll(word))) / step);
    }
    return 256 / step;
}

// --- tainted lanes ------------------------------------------------------------------------------------------------------
// Each lane with a tainted part becomes wholly tainted.
template <uint32_t step>
inline Taint SpreadTaint(Taint taint) {
    for (uint64_t& word : taint.word) {
        for (uint32_t shift = 1; shift < step; shift *= 2) word |= word >> shift;
        word = (word & FirstBits(step)) * ((1ull << (step - 1) << 1) - 1);
    }
    return taint;
}
inline Taint Join(const Taint& a, const Taint& b) {
    Taint both = a.Any() ? a : b;
    for (int i = 0; i < 4; ++i) both.word[i] = a.word[i] | b.word[i];
    return both;
}
template <uint32_t step>
__attribute__((noinline)) Taint MaskedTaint(Taint taint, MaskReg mask, bool merging, Taint old) {
    const Taint lanes = SpreadTaint<step>(taint);
    const MaskReg active = WholeLanes<step>(mask);
    Taint result = lanes;
    for (int i = 0; i < 4; ++i) result.word[i] = lanes.word[i] & active.word[i];
    if (!merging) return result;
    for (int i = 0; i < 4; ++i) old.word[i] &= ~active.word[i];
    return Join(result, old);
}
template <uint32_t step>
REG_INLINE inline void SetTaint(Taint& dst, const Taint& source, const MaskReg& mask, bool merging) {
    if (__builtin_expect(source.Any() || (merging && dst.Any()), 0)) dst = MaskedTaint<step>(source, mask, merging, dst);
    else dst = Taint{};
}
template <uint32_t step>
REG_INLINE inline void CheckUse(VectorFunction& function, const char* api, const char* operand, const Taint& taint,
                                const MaskReg& mask, Location where) {
    if (__builtin_expect(taint.Any(), 0) && MaskedTaint<step>(taint, mask, false, Taint{}).Any())
        function.Use(api, operand, taint.origin, where);
}
// Moves taint along with elements: lane i of dst comes from lane from(i) of src, or from nowhere when that is negative.
template <uint32_t dstStep, uint32_t srcStep, typename From>
__attribute__((noinline)) Taint PermutedTaint(const Taint& source, uint32_t lanes, From from) {
    Taint result;
    result.origin = source.origin;
    for (uint32_t i = 0; i < lanes; ++i) {
        const int32_t j = from(i);
        if (j < 0) continue;
        bool tainted = false;
        for (uint32_t bit = uint32_t(j) * srcStep; bit < (uint32_t(j) + 1) * srcStep; ++bit)
            tainted = tainted || (source.word[bit / 64] >> (bit % 64) & 1);
        if (tainted)
            for (uint32_t bit = i * dstStep; bit < (i + 1) * dstStep; ++bit) result.word[bit / 64] |= 1ull << (bit % 64);
    }
    return result;
}

// --- lane loops -----------------------------------------------------------------------------------------------------------
// dst[i] = lane(i) for i < count, then 0, or what was there when merging. `lane` may read dst[i].
template <uint32_t lanes, typename D, typename Lane>
REG_LOOP_PART inline void FillPrefix(D* dst, uint32_t count, bool merging, Lane lane) {
    if (count == lanes) {
        REG_INDEPENDENT
        for (uint32_t i = 0; i < lanes; ++i) dst[i] = lane(i);
        return;
    }
    const uint32_t rounded = (count + 15) / 16 * 16;   // whole host vectors
    if (merging) {
        alignas(64) D result[lanes];
        REG_INDEPENDENT
        for (uint32_t i = 0; i < rounded; ++i) result[i] = lane(i);
        std::memcpy(dst, result, count * sizeof(D));
    } else {
        REG_INDEPENDENT
        for (uint32_t i = 0; i < rounded; ++i) dst[i] = lane(i);
        std::memset(dst + count, 0, (lanes - count) * sizeof(D));
    }
}
template <uint32_t lanes, typename D, typename A, typename F>
REG_LOOP void Map(D* dst, uint32_t count, bool merging, F f, const A* a) {
    FillPrefix<lanes>(dst, count, merging, [=](uint32_t i) REG_INLINE { return Narrow<D>(f(Widen(a[i]))); });
}
template <uint32_t lanes, typename D, typename A, typename B, typename F>
REG_LOOP void Map(D* dst, uint32_t count, bool merging, F f, const A* a, const B* b) {
    FillPrefix<lanes>(dst, count, merging, [=](uint32_t i) REG_INLINE { return Narrow<D>(f(Widen(a[i]), Widen(b[i]))); });
}
template <uint32_t lanes, typename D, typename A, typename B, typename F>
REG_LOOP void Map(D* dst, uint32_t count, bool merging, F f, const D* c, const A* a, const B* b) {
    FillPrefix<lanes>(dst, count, merging,
                      [=](uint32_t i) REG_INLINE { return Narrow<D>(f(Widen(c[i]), Widen(a[i]), Widen(b[i]))); });
}
// dst = mask ? result : (merging ? dst : 0)
template <uint32_t lanes, uint32_t step, typename Word>
REG_LOOP void Blend(Word* dst, const Word* result, const MaskReg& mask, bool merging) {
    Word on[lanes];
    constexpr uint32_t perWord = 64 / step;
    for (uint32_t w = 0; w < lanes / perWord; ++w)
        for (uint32_t i = 0; i < perWord; ++i) on[w * perWord + i] = Word(0) - Word(mask.word[w] >> (i * step) & 1);
    const Word keep = merging ? Word(~Word(0)) : Word(0);
    REG_INDEPENDENT
    for (uint32_t i = 0; i < lanes; ++i) dst[i] = Word((result[i] & on[i]) | (dst[i] & Word(~on[i]) & keep));
}

template <typename U>
REG_INLINE inline void Commit(U& dst, const typename U::ActualT* result, const MaskReg& mask, bool merging) {
    using Word = Uint<sizeof(typename U::ActualT)>;
    const int32_t prefix = PrefixLanes<U::kMaskStep>(mask);
    if (prefix < 0) {
        Blend<U::kLanes, U::kMaskStep>(reinterpret_cast<Word*>(dst.lane), reinterpret_cast<const Word*>(result), mask, merging);
        return;
    }
    constexpr uint32_t bytes = sizeof(typename U::ActualT);
    std::memmove(dst.lane, result, uint32_t(prefix) * bytes);
    if (!merging) std::memset(dst.lane + prefix, 0, (U::kLanes - uint32_t(prefix)) * bytes);
}

// dst[i] = f(sources[i]...) under the mask.
template <bool merging, typename U, typename F, typename... Sources>
REG_INLINE inline void Apply(U& dst, const MaskReg& mask, F f, const Sources&... sources) {
    constexpr uint32_t lanes = U::kLanes;
    const int32_t prefix = PrefixLanes<U::kMaskStep>(mask);
    if (__builtin_expect(prefix >= 0, 1)) {
        Map<lanes>(dst.lane, uint32_t(prefix), merging, f, sources.lane...);
    } else {
        alignas(64) typename U::ActualT result[lanes];
        Map<lanes>(result, lanes, false, f, sources.lane...);
        Commit(dst, result, mask, merging);
    }
    Taint joined;
    ((joined = sources.taint.Any() ? Join(joined, sources.taint) : joined), ...);
    SetTaint<U::kMaskStep>(dst.taint, joined, mask, merging);
}

// dst = eight blocks of 32 bytes, block b from `from(b)`; one with no active lane is not read and becomes 0.
template <typename U, typename From>
inline void ReadBlocks(U& dst, const MaskReg& mask, VectorFunction& function, const char* api, Location where, const From& from) {
    alignas(64) typename U::ActualT result[U::kLanes] = {};
    Taint taint;
    for (uint32_t block = 0; block < 8; ++block) {
        if ((mask.word[block / 2] >> (block % 2 * 32) & uint32_t(FirstBits(U::kMaskStep))) == 0) continue;
        sim::SourceTaint source;
        std::memcpy(reinterpret_cast<uint8_t*>(result) + block * 32, function.Read(from(block), 32, 32, api, where, source), 32);
        if (source.origin == 0) continue;
        taint.origin = source.origin;
        taint.word[block / 2] |= source.word[0] << (block % 2 * 32);
    }
    Commit(dst, result, mask, false);
    SetTaint<U::kMaskStep>(dst.taint, taint, mask, false);
}

// --- modes and cost -------------------------------------------------------------------------------------------------------
// A mode argument is a MaskMergeMode or the address of a struct that has one.
template <auto mode>
constexpr bool Merging() {
    if constexpr (std::is_same_v<std::remove_cv_t<decltype(mode)>, MaskMergeMode>) return mode == MaskMergeMode::MERGING;
    else return mode->mrgMode == MaskMergeMode::MERGING;
}

// Two per cycle; 32-bit integers half as fast, 64-bit as two registers (facts 11.2).
template <typename U>
constexpr RegCost ArithmeticCost() {
    using T = typename U::ActualT;
    RegCost cost;
    cost.slots = kInteger<T> && sizeof(T) == 4 ? 2 : sizeof(T) == 8 ? 4 : 1;
    return cost;
}
// `perCycle` lanes per cycle on the slow unit.
template <typename U>
constexpr RegCost SlowCost(uint32_t perCycle) {
    RegCost cost;
    cost.unit = uint8_t((U::kLanes + perCycle - 1) / perCycle);
    return cost;
}
inline constexpr RegCost kSingleIssue{2, 0, 0, 0};
inline constexpr RegCost kDualIssue{1, 0, 0, 0};

}  // namespace AscendC::Reg::regimpl
