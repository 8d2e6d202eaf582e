// Reductions over the lanes of a register (facts 6.5): a balanced tree over adjacent lanes, inactive lanes being neutral.
#pragma once

#include "ascendc/micro_api/math.h"
#include "ascendc/micro_api/cast.h"

namespace AscendC::Reg {

namespace regimpl {

template <typename T>
T Extreme(bool highest) {   // neutral element of min, max
    if constexpr (std::is_same_v<T, bfloat16_t>) return bfloat16_t::FromBits(highest ? 0x7f80 : 0xff80);
    else if constexpr (kInteger<T>) return highest ? Highest<T>() : Lowest<T>();
    else return static_cast<T>(highest ? __builtin_inff() : -__builtin_inff());
}

template <typename T>
inline T Neutral(ReduceType type) {
    return type == ReduceType::SUM ? T{} : Extreme<T>(type == ReduceType::MIN);
}

// Sum of x[0 .. n), adjacent pairs first; n is a power of two. Each level rounds to the type.
template <uint32_t n, typename T>
REG_LOOP_PART inline T SumTree(const T* x) {
    if constexpr (n == 1) {
        return x[0];
    } else {
        alignas(64) T half[n / 2];
        for (uint32_t i = 0; i < n / 2; ++i) half[i] = Narrow<T>(Widen(x[2 * i]) + Widen(x[2 * i + 1]));
        return SumTree<n / 2>(half);
    }
}
template <uint32_t n, typename T>
REG_LOOP T SumOf(const T* x, uint32_t count) {
    if constexpr (n == 1) return x[0];
    else return count == n ? SumTree<n>(x) : SumOf<n / 2>(x, count);
}
// Index of the largest or smallest of x[0 .. count): the first on ties, the first NaN if there is one.
template <ReduceType type, typename T>
inline uint32_t ExtremeIndex(const T* x, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const auto a = Widen(x[i]), b = Widen(x[best]);
        if (a != a) return i;
        if (type == ReduceType::MAX ? a > b : a < b) best = i;
    }
    return best;
}

// Each group of `perGroup` lanes to one lane; the results are packed from lane 0 on, the rest is 0.
template <ReduceType type, typename S, typename V>
inline void ReduceGroups(S& dst, const V& src, const MaskReg& mask, uint32_t perGroup, bool index, const char* api,
                         Location where) {
    using T = typename V::ActualT;
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend(kSingleIssue);
    CheckUse<V::kMaskStep>(function, api, "src", src.taint, mask, where);
    alignas(64) T x[V::kLanes];
    const T neutral = Neutral<T>(type);
    const int32_t prefix = PrefixLanes<V::kMaskStep>(mask);
    uint32_t used = V::kLanes;   // lanes beyond are neutral
    if (prefix >= 0) {
        while (perGroup == V::kLanes && used > 1 && used / 2 >= uint32_t(prefix)) used /= 2;
        std::memcpy(x, src.lane, used * sizeof(T));
        for (uint32_t i = uint32_t(prefix); i < used; ++i) x[i] = neutral;
    } else {
        for (uint32_t i = 0; i < V::kLanes; ++i) x[i] = mask.Bit(i * V::kMaskStep) ? src.lane[i] : neutral;
    }
    if (perGroup > used) perGroup = used;
    using Result = typename S::ActualT;
    Result result[S::kLanes] = {};
    const uint32_t groups = used / perGroup;
    for (uint32_t g = 0; g < groups; ++g) {
        T* lanes = x + g * perGroup;
        if constexpr (type == ReduceType::SUM) {
            if constexpr (std::is_same_v<Result, T>) {
                result[g] = SumOf<V::kLanes>(lanes, perGroup);
                if (used < V::kLanes) result[g] = Narrow<T>(Widen(result[g]) + Widen(T{}));   // -0 + 0 = 0
            } else {   // 8- and 16-bit integers sum into twice the width
                Result sum = 0;
                for (uint32_t i = 0; i < perGroup; ++i) sum = Result(sum + lanes[i]);
                result[g] = sum;
            }
        } else {
            const uint32_t best = ExtremeIndex<type>(lanes, perGroup);
            result[g] = lanes[best];
            if (index) result[1] = Bits<Result>(Uint<sizeof(Result)>(best));
        }
    }
    std::memcpy(dst.lane, result, sizeof result);
    dst.taint = Taint{};
}

template <ReduceType type, typename S, typename V>
constexpr void CheckReduceTypes() {
    using D = typename S::ActualT;
    using T = typename V::ActualT;
    static_assert(type != ReduceType::OTHERS, "Reduce: SUM, MAX or MIN");
    static_assert(S::kBytes == VECTOR_REG_WIDTH && V::kBytes == VECTOR_REG_WIDTH, "Reduce: not for register pairs");
    static_assert(kNumber<T> && (std::is_same_v<D, T> || (type == ReduceType::SUM && kInteger<T> && kInteger<D> &&
                                                         sizeof(D) == 2 * sizeof(T))),
                  "Reduce: types not supported on arch 3510");
}

}  // namespace regimpl

// Result in lane 0; MAX and MIN put the lane it came from, as an integer, in lane 1.
template <ReduceType type, typename T = DefaultType, typename U = DefaultType, auto mode = MaskMergeMode::ZEROING, typename S,
          typename V, typename = IfRegisters<S, V>>
inline void Reduce(S& dst, const V& src, const MaskReg& mask, sim::Location where = sim::Location::Here()) {
    static_assert(regimpl::kNames<T, S>, "Reduce: T is not the type of the destination");
    regimpl::CheckReduceTypes<type, S, V>();
    regimpl::ReduceGroups<type>(dst, src, mask, V::kLanes, type != ReduceType::SUM, "Reduce", where);
}
// Results of the eight 32-byte blocks in lanes 0 .. 7.
template <ReduceType type, typename T = DefaultType, typename U = DefaultType, auto mode = MaskMergeMode::ZEROING, typename S,
          typename V, typename = IfRegisters<S, V>>
inline void ReduceDataBlock(S& dst, const V& src, const MaskReg& mask, sim::Location where = sim::Location::Here()) {
    regimpl::CheckReduceTypes<type, S, V>();
    regimpl::ReduceGroups<type>(dst, src, mask, V::kLanes / 8, false, "ReduceDataBlock", where);
}
// dst[i] = src[2i] + src[2i + 1] in the lower half, 0 above.
template <PairReduce type = PairReduce::SUM, typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename S, typename V,
          typename = IfRegisters<S, V>>
inline void PairReduceElem(S& dst, const V& src, const MaskReg& mask, sim::Location where = sim::Location::Here()) {
    regimpl::CheckReduceTypes<ReduceType::SUM, S, V>();
    regimpl::ReduceGroups<ReduceType::SUM>(dst, src, mask, 2, false, "PairReduceElem", where);
}

#define REG_REDUCE(Name, Target, ...)                                                                                      \
    template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename S, typename V,                        \
              typename = IfRegisters<S, V>>                                                                                \
    inline void Name(S& dst, const V& src, const MaskReg& mask, sim::Location where = sim::Location::Here()) {             \
        Target<__VA_ARGS__, DefaultType>(dst, src, mask, where);                                                           \
    }                                                                                                                      \
    template <typename T, typename U, auto mode = MaskMergeMode::ZEROING, typename S, typename V,                          \
              typename = IfRegisters<S, V>>                                                                                \
    inline void Name(S& dst, const V& src, const MaskReg& mask, sim::Location where = sim::Location::Here()) {             \
        Target<__VA_ARGS__, DefaultType>(dst, src, mask, where);                                                           \
    }
REG_REDUCE(ReduceSum, Reduce, ReduceType::SUM)
REG_REDUCE(ReduceMax, Reduce, ReduceType::MAX)
REG_REDUCE(ReduceMin, Reduce, ReduceType::MIN)
REG_REDUCE(ReduceSumWithDataBlock, ReduceDataBlock, ReduceType::SUM)
REG_REDUCE(ReduceMaxWithDataBlock, ReduceDataBlock, ReduceType::MAX)
REG_REDUCE(ReduceMinWithDataBlock, ReduceDataBlock, ReduceType::MIN)
REG_REDUCE(PairReduceSum, PairReduceElem, PairReduce::SUM)
#undef REG_REDUCE

}  // namespace AscendC::Reg
