// Filling registers and moving lanes (facts 6.5).
#pragma once

#include "ascendc/micro_api/math.h"

namespace AscendC::Reg {

namespace regimpl {

template <uint32_t lanes, typename T>
REG_LOOP void Fill(T* dst, T value, uint32_t count, bool merging) {
    FillPrefix<lanes>(dst, count, merging, [value](uint32_t) REG_INLINE { return value; });
}
// dst[i] = value under the mask.
template <bool merging, typename S>
REG_INLINE inline void FillUnderMask(S& dst, typename S::ActualT value, const MaskReg& mask, const Taint& taint) {
    const int32_t prefix = PrefixLanes<S::kMaskStep>(mask);
    if (__builtin_expect(prefix >= 0, 1)) {
        Fill<S::kLanes>(dst.lane, value, uint32_t(prefix), merging);
    } else {
        alignas(64) typename S::ActualT result[S::kLanes];
        Fill<S::kLanes>(result, value, S::kLanes, false);
        Commit(dst, result, mask, merging);
    }
    SetTaint<S::kMaskStep>(dst.taint, taint, mask, merging);
}

// dst[i] = src[from(i)], 0 when from(i) is negative; lanes and taint.
template <typename U, typename V, typename From>
inline void Permute(U& dst, const V& src, From from) {
    U result;
    for (uint32_t i = 0; i < U::kLanes; ++i) {
        const int32_t j = from(i);
        result.lane[i] = j < 0 ? typename U::ActualT{} : static_cast<typename U::ActualT>(src.lane[j]);
    }
    result.taint = Taint{};
    if (src.taint.Any()) result.taint = PermutedTaint<U::kMaskStep, V::kMaskStep>(src.taint, U::kLanes, from);
    dst = result;
}

// dst[i] = lane from(i) of src0 followed by src1.
template <typename U, typename From>
inline U PermuteTwo(const U& src0, const U& src1, From from) {
    U result;
    const auto fromFirst = [&](uint32_t i) { return from(i) < int32_t(U::kLanes) ? from(i) : -1; };
    const auto fromSecond = [&](uint32_t i) { return from(i) < int32_t(U::kLanes) ? -1 : from(i) - int32_t(U::kLanes); };
    for (uint32_t i = 0; i < U::kLanes; ++i) {
        const int32_t first = fromFirst(i);
        result.lane[i] = first >= 0 ? src0.lane[first] : src1.lane[fromSecond(i)];
    }
    result.taint = Taint{};
    if (src0.taint.Any() || src1.taint.Any())
        result.taint = Join(PermutedTaint<U::kMaskStep, U::kMaskStep>(src0.taint, U::kLanes, fromFirst),
                            PermutedTaint<U::kMaskStep, U::kMaskStep>(src1.taint, U::kLanes, fromSecond));
    return result;
}

template <uint32_t lanes, typename T>
REG_LOOP void InterleaveLanes(T* out, const T* a, const T* b) {
    for (uint32_t i = 0; i < lanes; ++i) out[2 * i] = a[i], out[2 * i + 1] = b[i];
}
template <uint32_t lanes, typename T>
REG_LOOP void DeInterleaveLanes(T* even, T* odd, const T* in) {
    for (uint32_t i = 0; i < lanes; ++i) even[i] = in[2 * i], odd[i] = in[2 * i + 1];
}

}  // namespace regimpl

// --- fill ---------------------------------------------------------------------------------------------------------------
template <typename T = DefaultType, typename S, typename U, typename = IfRegisters<S>, typename = IfScalar<U>>
REG_INLINE inline void Duplicate(S& dst, U scalar, sim::Location where = sim::Location::Here()) {
    static_assert(regimpl::kNames<T, S>, "Duplicate: T is not the type of the register");
    sim::InVectorFunction("Duplicate", where).Spend(regimpl::kDualIssue);
    regimpl::Fill<S::kLanes>(dst.lane, regimpl::ToElement<typename S::ActualT>(scalar), S::kLanes, false);
    dst.taint = sim::Taint{};
}
template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename S, typename U, typename = IfRegisters<S>,
          typename = IfScalar<U>>
REG_INLINE inline void Duplicate(S& dst, U scalar, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    static_assert(regimpl::kNames<T, S>, "Duplicate: T is not the type of the register");
    sim::InVectorFunction("Duplicate", where).Spend(regimpl::kDualIssue);
    regimpl::FillUnderMask<regimpl::Merging<mode>()>(dst, regimpl::ToElement<typename S::ActualT>(scalar), mask, sim::Taint{});
}
// The first (or last) lane of src to all active lanes.
template <typename T = DefaultType, HighLowPart part = HighLowPart::LOWEST, auto mode = MaskMergeMode::ZEROING, typename S,
          typename = IfRegisters<S>>
REG_INLINE inline void Duplicate(S& dst, S& src, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    static_assert(regimpl::kNames<T, S>, "Duplicate: T is not the type of the registers");
    sim::InVectorFunction("Duplicate", where).Spend(regimpl::kDualIssue);
    constexpr uint32_t from = part == HighLowPart::LOWEST ? 0 : S::kLanes - 1;
    sim::Taint taint;
    if (src.taint.Any())
        taint = regimpl::PermutedTaint<S::kMaskStep, S::kMaskStep>(src.taint, S::kLanes, [](uint32_t) { return int32_t(from); });
    regimpl::FillUnderMask<regimpl::Merging<mode>()>(dst, src.lane[from], mask, taint);
}

// start, start + 1, ... or start, start - 1, ...
template <typename T = DefaultType, IndexOrder order = IndexOrder::INCREASE_ORDER, typename S, typename U,
          typename = IfRegisters<S>, typename = IfScalar<U>>
inline void Arange(S& dst, U start, sim::Location where = sim::Location::Here()) {
    using Type = typename S::ActualT;
    static_assert(regimpl::kNames<T, S> && regimpl::kNumber<Type>, "Arange: element type not supported on arch 3510");
    sim::InVectorFunction("Arange", where).Spend(regimpl::kSingleIssue);
    const auto first = regimpl::Widen(regimpl::ToElement<Type>(start));
    for (uint32_t i = 0; i < S::kLanes; ++i)
        dst.lane[i] = static_cast<Type>(order == IndexOrder::INCREASE_ORDER ? first + decltype(first)(i) : first - decltype(first)(i));
    dst.taint = sim::Taint{};
}

// --- copies ----------------------------------------------------------------------------------------------------------------
#define REG_MOVE(Name)                                                                                                     \
    template <typename T = DefaultType, auto mode = MaskMergeMode::MERGING, typename U, typename = IfRegisters<U>>         \
    REG_INLINE inline void Name(U& dst, U& src, MaskReg& mask, sim::Location where = sim::Location::Here()) {              \
        static_assert(regimpl::kNames<T, U>, #Name ": T is not the type of the registers");                                 \
        sim::InVectorFunction(#Name, where).Spend(regimpl::kDualIssue);                                                     \
        const sim::Taint taint = src.taint;                                                                                \
        regimpl::Commit(dst, src.lane, mask, regimpl::Merging<mode>());                                                      \
        regimpl::SetTaint<U::kMaskStep>(dst.taint, taint, mask, regimpl::Merging<mode>());                                   \
    }                                                                                                                      \
    template <typename T = DefaultType, typename U, typename = IfRegisters<U>>                                             \
    REG_INLINE inline void Name(U& dst, U& src, sim::Location where = sim::Location::Here()) {                             \
        static_assert(regimpl::kNames<T, U>, #Name ": T is not the type of the registers");                                 \
        sim::InVectorFunction(#Name, where).Spend(regimpl::kDualIssue);                                                     \
        if (&dst != &src) dst = src;                                                                                       \
    }
REG_MOVE(Copy)
REG_MOVE(Move)
#undef REG_MOVE

// --- lanes of two registers -------------------------------------------------------------------------------------------------
// src0[0], src1[0], src0[1], src1[1], ...: the first half of it to dst0, the second to dst1.
template <typename T = DefaultType, typename U, typename = IfRegisters<U>>
inline void Interleave(U& dst0, U& dst1, U& src0, U& src1, sim::Location where = sim::Location::Here()) {
    static_assert(regimpl::kNames<T, U>, "Interleave: T is not the type of the registers");
    sim::InVectorFunction("Interleave", where).Spend(regimpl::kSingleIssue);
    constexpr uint32_t lanes = U::kLanes;
    if (!src0.taint.Any() && !src1.taint.Any()) {
        alignas(64) typename U::ActualT out[2 * lanes];
        regimpl::InterleaveLanes<lanes>(out, src0.lane, src1.lane);
        std::memcpy(dst0.lane, out, U::kBytes);
        std::memcpy(dst1.lane, out + lanes, U::kBytes);
        dst0.taint = dst1.taint = sim::Taint{};
        return;
    }
    const U low = regimpl::PermuteTwo(src0, src1, [](uint32_t i) { return int32_t(i / 2 + i % 2 * lanes); });
    const U high = regimpl::PermuteTwo(src0, src1, [](uint32_t i) { return int32_t(lanes / 2 + i / 2 + i % 2 * lanes); });
    dst0 = low;
    dst1 = high;
}
// Even lanes of src0 followed by src1 to dst0, odd ones to dst1.
template <typename T = DefaultType, typename U, typename = IfRegisters<U>>
inline void DeInterleave(U& dst0, U& dst1, U& src0, U& src1, sim::Location where = sim::Location::Here()) {
    static_assert(regimpl::kNames<T, U>, "DeInterleave: T is not the type of the registers");
    sim::InVectorFunction("DeInterleave", where).Spend(regimpl::kSingleIssue);
    if (!src0.taint.Any() && !src1.taint.Any()) {
        alignas(64) typename U::ActualT in[2 * U::kLanes];
        std::memcpy(in, src0.lane, U::kBytes);
        std::memcpy(in + U::kLanes, src1.lane, U::kBytes);
        regimpl::DeInterleaveLanes<U::kLanes>(dst0.lane, dst1.lane, in);
        dst0.taint = dst1.taint = sim::Taint{};
        return;
    }
    const U even = regimpl::PermuteTwo(src0, src1, [](uint32_t i) { return int32_t(2 * i); });
    const U odd = regimpl::PermuteTwo(src0, src1, [](uint32_t i) { return int32_t(2 * i + 1); });
    dst0 = even;
    dst1 = odd;
}

// --- width ------------------------------------------------------------------------------------------------------------------
// Low halves of the lanes, packed into the lower or upper half of dst; the other half is 0.
template <typename T = DefaultType, typename U = DefaultType, HighLowPart part = HighLowPart::LOWEST, typename S, typename V,
          typename = IfRegisters<S, V>>
inline void Pack(S& dst, V& src, sim::Location where = sim::Location::Here()) {
    static_assert(regimpl::kInteger<typename S::ActualT> && regimpl::kInteger<typename V::ActualT> && S::kLanes == 2 * V::kLanes,
                  "Pack: integers, src twice as wide as dst");
    sim::InVectorFunction("Pack", where).Spend(regimpl::kSingleIssue);
    constexpr int32_t first = part == HighLowPart::LOWEST ? 0 : int32_t(V::kLanes);
    regimpl::Permute(dst, src, [](uint32_t i) {
        const int32_t j = int32_t(i) - first;
        return j >= 0 && j < int32_t(V::kLanes) ? j : -1;
    });
}
// The lower or upper half of src, each lane extended to twice the width by its type.
template <typename T = DefaultType, typename U = DefaultType, HighLowPart part = HighLowPart::LOWEST, typename S, typename V,
          typename = IfRegisters<S, V>>
inline void UnPack(S& dst, V& src, sim::Location where = sim::Location::Here()) {
    static_assert(regimpl::kInteger<typename S::ActualT> && regimpl::kInteger<typename V::ActualT> && V::kLanes == 2 * S::kLanes,
                  "UnPack: integers, dst twice as wide as src");
    sim::InVectorFunction("UnPack", where).Spend(regimpl::kSingleIssue);
    constexpr int32_t first = part == HighLowPart::LOWEST ? 0 : int32_t(S::kLanes);
    regimpl::Permute(dst, src, [](uint32_t i) { return int32_t(i) + first; });
}

// --- by mask or index ---------------------------------------------------------------------------------------------------------
// The active lanes, moved together; the rest is 0. STORE_REG: StoreUnAlign without a count stores as many.
template <typename T = DefaultType, GatherMaskMode store = GatherMaskMode::NO_STORE_REG, typename U, typename = IfRegisters<U>>
inline void Squeeze(U& dst, U& src, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    sim::VectorFunction& function = sim::InVectorFunction("Squeeze", where);
    function.Spend({2, uint8_t(U::kLanes * 5 / 64), 0, 0});   // 12.8 lanes per cycle
    int32_t source[U::kLanes];
    uint32_t count = 0;
    for (uint32_t i = 0; i < U::kLanes; ++i)
        if (mask.Bit(i * U::kMaskStep)) source[count++] = int32_t(i);
    for (uint32_t i = count; i < U::kLanes; ++i) source[i] = -1;
    regimpl::Permute(dst, src, [&](uint32_t i) { return source[i]; });
    if (store == GatherMaskMode::STORE_REG) function.storedLanes = count;
}
// dst[i] = number of active lanes before lane i
template <typename T = DefaultType, typename U, typename = IfRegisters<U>>
inline void Unsqueeze(U& dst, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    static_assert(regimpl::kInteger<typename U::ActualT>, "Unsqueeze: needs an integer register");
    sim::InVectorFunction("Unsqueeze", where).Spend({2, uint8_t(U::kLanes * 5 / 64), 0, 0});
    uint32_t count = 0;
    for (uint32_t i = 0; i < U::kLanes; ++i) {
        dst.lane[i] = static_cast<typename U::ActualT>(count);
        count += mask.Bit(i * U::kMaskStep);
    }
    dst.taint = sim::Taint{};
}
// dst[i] = src[index[i]], the index taken modulo the number of lanes
template <typename T = DefaultType, typename U = DefaultType, typename S, typename V, typename = IfRegisters<S, V>>
inline void Gather(S& dst, S& src, V& index, sim::Location where = sim::Location::Here()) {
    static_assert(std::is_unsigned_v<typename V::ActualT> && S::kLanes == V::kLanes, "Gather: unsigned index of the same width");
    sim::VectorFunction& function = sim::InVectorFunction("Gather", where);
    function.Spend(regimpl::kSingleIssue);
    if (index.taint.Any()) function.Use("Gather", "index", index.taint.origin, where);
    const V from = index;
    regimpl::Permute(dst, src, [&](uint32_t i) { return int32_t(from.lane[i] % S::kLanes); });
}

template <SpecialPurposeReg reg>
inline void ClearSpr(sim::Location where = sim::Location::Here()) {
    sim::InVectorFunction("ClearSpr", where).addressRegister = 0;
}

}  // namespace AscendC::Reg
