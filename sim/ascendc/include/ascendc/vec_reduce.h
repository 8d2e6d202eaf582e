// Reductions inside a repeat: WholeReduce*, RepeatReduceSum, BlockReduce*, PairReduceSum, and their 9.x names.
#pragma once

#include "ascendc/vec_reduce_engine.h"

namespace AscendC {

namespace detail {

// --- a repeat to one value ------------------------------------------------------------------------------------------
template <typename T>
void WholeSumLanes(const char* name, const sim::vec::Form& form, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                   int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride, sim::Location where) {
    using namespace sim::vec;
    const Entry entry{name, kHalf | kFloat, kReducedOnRegbase, sim::Cost::VectorWholeReduce};
    if constexpr ((Entry{"", kHalf | kFloat, kReducedOnRegbase}.Supported() & TypeOf<T>()) != 0)
        GroupReduce<T, ReduceType::SUM, kRepeatBytes / sizeof(T)>(entry, form, dst, src, dstRepStride, sizeof(T), sizeof(T),
                                                                  srcBlkStride, srcRepStride, where);
    else
        FailType(name, entry.Supported(), TypeOf<T>(), where);
}

// A (value, index) pair per repeat; the unit of dstRepStride is what `order` stores.
template <typename T, bool kMax>
void WholeExtremeLanes(const char* name, const sim::vec::Form& form, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                       int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride, ReduceOrder order,
                       sim::Location where) {
    using namespace sim::vec;
    const Entry entry{name, kHalf | kFloat, kReducedOnRegbase, sim::Cost::VectorWholeReduce};
    if constexpr ((Entry{"", kHalf | kFloat, kReducedOnRegbase}.Supported() & TypeOf<T>()) != 0) {
        const uint32_t bytes = order == ReduceOrder::ORDER_ONLY_VALUE ? sizeof(T)
                               : order == ReduceOrder::ORDER_ONLY_INDEX ? 4 : 2 * sizeof(T);
        ReduceCall call;
        call.loop = &ExtremeLoop<T, kMax>;
        call.order = order;
        IssueReduce(entry, form, {kRepeatBytes / sizeof(T), bytes, bytes, dstRepStride, bytes}, where, call,
                    Ref(dst, "dst"), Ref(src, "src", {srcBlkStride, srcRepStride}));
    } else {
        FailType(name, entry.Supported(), TypeOf<T>(), where);
    }
}

}  // namespace detail

template <typename T, bool isSetMask = true>
void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t mask, int64_t repeatTime,
                    int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,
                    sim::Location where = sim::Location::Here()) {
    detail::WholeSumLanes("WholeReduceSum", sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src, dstRepStride, srcBlkStride,
                  srcRepStride, where);
}
template <typename T, bool isSetMask = true>
void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], int64_t repeatTime,
                    int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,
                    sim::Location where = sim::Location::Here()) {
    detail::WholeSumLanes("WholeReduceSum", sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, src, dstRepStride, srcBlkStride,
                  srcRepStride, where);
}
// dstBlkStride is inert: there is one result per repeat.
template <typename T, bool isSetMask = true>
void RepeatReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t repeatTime, int64_t mask,
                     [[maybe_unused]] int64_t dstBlkStride, int64_t srcBlkStride, int64_t dstRepStride, int64_t srcRepStride,
                     sim::Location where = sim::Location::Here()) {
    detail::WholeSumLanes("RepeatReduceSum", sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src, dstRepStride, srcBlkStride,
                  srcRepStride, where);
}

#define SIM_WHOLE_EXTREME(Name, kMax)                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t mask, int64_t repeatTime,                 \
              int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,                                       \
              ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, sim::Location where = sim::Location::Here()) {      \
        detail::WholeExtremeLanes<T, kMax>(#Name, sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src, dstRepStride,    \
                                   srcBlkStride, srcRepStride, order, where);                                         \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], int64_t repeatTime,        \
              int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,                                       \
              ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, sim::Location where = sim::Location::Here()) {      \
        detail::WholeExtremeLanes<T, kMax>(#Name, sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, src, dstRepStride,    \
                                   srcBlkStride, srcRepStride, order, where);                                         \
    }
SIM_WHOLE_EXTREME(WholeReduceMax, true)
SIM_WHOLE_EXTREME(WholeReduceMin, false)

namespace detail {

// --- blocks and pairs -----------------------------------------------------------------------------------------------
// Block: eight results per repeat; a block without active lanes leaves its result untouched on arch 2201 and yields the
// identity on arch 3510. Pair: lanes 2i and 2i + 1 give result i. dstRepStride counts the results of one repeat.
template <typename T, ReduceType kType, bool kPairs>
void GroupLanes(const char* name, const sim::vec::Form& form, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride, sim::Location where) {
    using namespace sim::vec;
    if constexpr ((TypeOf<T>() & (kHalf | kFloat)) != 0) {
        const Entry entry{name, kHalf | kFloat, 0,
                          kPairs || sizeof(T) == 4 ? sim::Cost::VectorSimple : sim::Cost::VectorBlockReduce16};
        constexpr uint32_t kGroup = kPairs ? 2 : kBlockBytes / sizeof(T), kUnit = kRepeatBytes / kGroup;
        GroupReduce<T, kType, kGroup>(entry, form, dst, src, dstRepStride, kUnit, kPairs ? kBlockBytes : kUnit,
                                      srcBlkStride, srcRepStride, where);
    } else {
        FailType(name, kHalf | kFloat, TypeOf<T>(), where);
    }
}

}  // namespace detail

// Old names take (repeatTime, mask), the 9.x names (mask, repeatTime).
#define SIM_GROUP_REDUCE(Name, kType, kPairs)                                                                         \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t repeatTime, int64_t mask,                 \
              int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,                                       \
              sim::Location where = sim::Location::Here()) {                                                          \
        detail::GroupLanes<T, ReduceType::kType, kPairs>(#Name, sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src,    \
                                                 dstRepStride, srcBlkStride, srcRepStride, where);                    \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t repeatTime, const uint64_t mask[],        \
              int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,                                       \
              sim::Location where = sim::Location::Here()) {                                                          \
        detail::GroupLanes<T, ReduceType::kType, kPairs>(#Name, sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, src,    \
                                                 dstRepStride, srcBlkStride, srcRepStride, where);                    \
    }
SIM_GROUP_REDUCE(BlockReduceSum, SUM, false)
SIM_GROUP_REDUCE(BlockReduceMax, MAX, false)
SIM_GROUP_REDUCE(BlockReduceMin, MIN, false)
SIM_GROUP_REDUCE(PairReduceSum, SUM, true)

// --- 9.x names ------------------------------------------------------------------------------------------------------
template <ReduceType reduceType, typename T, bool isSetMask = true, typename Mask>
void ReduceRepeat(const LocalTensor<T>& dst, const LocalTensor<T>& src, Mask mask, int64_t repeatTime, int64_t dstRepStride,
                  int64_t srcBlkStride, int64_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,
                  sim::Location where = sim::Location::Here()) {
    if constexpr (reduceType == ReduceType::SUM)
        WholeReduceSum<T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride, where);
    else if constexpr (reduceType == ReduceType::MAX)
        WholeReduceMax<T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride, order, where);
    else
        WholeReduceMin<T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride, srcRepStride, order, where);
}
template <ReduceType reduceType, typename T, bool isSetMask = true, typename Mask>
void ReduceDataBlock(const LocalTensor<T>& dst, const LocalTensor<T>& src, Mask mask, int64_t repeatTime,
                     int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,
                     sim::Location where = sim::Location::Here()) {
    if constexpr (reduceType == ReduceType::SUM)
        BlockReduceSum<T, isSetMask>(dst, src, repeatTime, mask, dstRepStride, srcBlkStride, srcRepStride, where);
    else if constexpr (reduceType == ReduceType::MAX)
        BlockReduceMax<T, isSetMask>(dst, src, repeatTime, mask, dstRepStride, srcBlkStride, srcRepStride, where);
    else
        BlockReduceMin<T, isSetMask>(dst, src, repeatTime, mask, dstRepStride, srcBlkStride, srcRepStride, where);
}
template <ReduceType reduceType = ReduceType::SUM, typename T, bool isSetMask = true, typename Mask>
void ReducePairElem(const LocalTensor<T>& dst, const LocalTensor<T>& src, Mask mask, int64_t repeatTime,
                    int64_t dstRepStride, int64_t srcBlkStride, int64_t srcRepStride,
                    sim::Location where = sim::Location::Here()) {
    static_assert(reduceType == ReduceType::SUM, "ReducePairElem sums");
    PairReduceSum<T, isSetMask>(dst, src, repeatTime, mask, dstRepStride, srcBlkStride, srcRepStride, where);
}

}  // namespace AscendC
