// The engine of reductions inside a repeat: lanes -> groups -> one result per group.
#pragma once

#include "ascendc/vec_engine.h"
#include "ascendc/vec_math.h"

namespace sim::vec {

using AscendC::ReduceOrder;
using AscendC::ReduceType;

// A reduction ready to run, by value. Every group of lanes of a repeat gives one result; results are contiguous.
struct ReduceCall {
    void (*loop)(const ReduceCall&) = nullptr;
    Lanes lanes;
    Stride stride;              // of src
    const uint8_t* src = nullptr;
    uint8_t* dst = nullptr;
    int64_t dstRepeatBytes = 0;
    ReduceOrder order = ReduceOrder::ORDER_ONLY_VALUE;
};

// Does group g (of `size` lanes) of a repeat have an active lane?
inline bool GroupActive(const Lanes& lanes, uint32_t repeat, uint32_t group, uint32_t size) {
    if (!lanes.irregular) return group * size < lanes.Active(repeat);
    for (uint32_t lane = group * size; lane < (group + 1) * size; ++lane)
        if (lanes.Has(lane)) return true;
    return false;
}

// The lanes of a repeat in order, inactive ones replaced by `identity`.
template <typename T, typename V>
SIM_INLINE inline void LoadLanes(const ReduceCall& call, uint32_t repeat, V identity, V (&values)[kRepeatBytes / sizeof(T)]) {
    constexpr uint32_t kLanes = kRepeatBytes / sizeof(T), kBlock = kBlockBytes / sizeof(T);
    const uint8_t* base = call.src + repeat * call.stride.repeat * kBlockBytes;
    for (uint32_t block = 0; block < kBlocksPerRepeat; ++block) {
        const T* data = reinterpret_cast<const T*>(base + block * call.stride.block * kBlockBytes);
        const uint32_t first = block * kBlock, reach = call.lanes.Reach(repeat);
        if (!call.lanes.irregular && first + kBlock <= reach) {
            for (uint32_t i = 0; i < kBlock; ++i) values[first + i] = Widen(data[i]);
        } else {
            for (uint32_t i = 0; i < kBlock; ++i)
                values[first + i] = first + i < reach && (!call.lanes.irregular || call.lanes.Has(first + i))
                                        ? Widen(data[i]) : identity;
        }
    }
    static_assert(kLanes == kBlock * kBlocksPerRepeat);
}

// Balanced tree over adjacent pairs, ((a0 + a1) + (a2 + a3)) + ..., every partial sum rounded to T: `kCount` values become
// kCount / kGroup. The device's precision inside the tree of half is not documented.
template <typename T, uint32_t kGroup, uint32_t kCount, typename V>
SIM_INLINE inline void SumTree(const V* values, V* results) {
    if constexpr (kGroup == 1) {
        for (uint32_t i = 0; i < kCount; ++i) results[i] = values[i];
    } else {
        V pairs[kCount / 2];
        for (uint32_t i = 0; i < kCount / 2; ++i)
            pairs[i] = Widen(Narrow<T>(Sum(V(values[2 * i]), V(values[2 * i + 1]))));
        SumTree<T, kGroup / 2, kCount / 2>(pairs, results);
    }
}

template <typename T, ReduceType kType>
constexpr auto Identity() {
    using V = decltype(Widen(T{}));
    if constexpr (kType == ReduceType::SUM) return V(0);
    else if constexpr (std::is_integral_v<T>)
        return kType == ReduceType::MAX ? V(std::is_signed_v<T> ? V(1) << (8 * sizeof(V) - 1) : 0)
                                        : V(std::make_unsigned_t<V>(-1) >> std::is_signed_v<V>);
    else return kType == ReduceType::MAX ? -__builtin_huge_valf() : __builtin_huge_valf();
}

template <typename T, ReduceType kType, uint32_t kGroup>
SIM_LOOP void GroupLoop(const ReduceCall& call) {
    constexpr uint32_t kLanes = kRepeatBytes / sizeof(T), kResults = kLanes / kGroup;
    using V = decltype(Widen(T{}));
    for (uint32_t r = 0; r < call.lanes.repeats; ++r) {
        V values[kLanes], results[kResults];
        LoadLanes<T>(call, r, Identity<T, kType>(), values);
        if constexpr (kType == ReduceType::SUM) {
            SumTree<T, kGroup, kLanes>(values, results);
        } else {
            for (uint32_t g = 0; g < kResults; ++g) {
                V best = values[g * kGroup];
                for (uint32_t i = 1; i < kGroup; ++i) {
                    const V value = values[g * kGroup + i];
                    best = kType == ReduceType::MAX ? Larger(best, value) : Smaller(best, value);
                }
                results[g] = best;
            }
        }
        T* dst = reinterpret_cast<T*>(call.dst + r * call.dstRepeatBytes);
        for (uint32_t g = 0; g < kResults; ++g)
            if (kRegbase || GroupActive(call.lanes, r, g, kGroup)) dst[g] = Narrow<T>(results[g]);
    }
}

// Largest or smallest active lane and its index; the first of equal ones, or the first NaN.
template <typename T, bool kMax>
struct Extreme {
    decltype(Widen(T{})) value = Identity<T, kMax ? ReduceType::MAX : ReduceType::MIN>();
    uint32_t index = 0;
    bool found = false;
    void Take(decltype(Widen(T{})) candidate, uint32_t at) {
        const bool better = !found || (kMax ? candidate > value : candidate < value) ||
                            (candidate != candidate && value == value);
        if (!better) return;
        value = candidate;
        index = at;
        found = true;
    }
};
// An index is stored as its raw bits in an element of T.
template <typename T>
void StoreIndex(T* to, uint32_t index) {
    std::memcpy(to, &index, sizeof(T) < 4 ? sizeof(T) : 4);
}

template <typename T, bool kMax>
void ExtremeLoop(const ReduceCall& call) {
    for (uint32_t r = 0; r < call.lanes.repeats; ++r) {
        Extreme<T, kMax> best;
        for (uint32_t lane = 0, reach = call.lanes.Reach(r); lane < reach; ++lane)
            if (!call.lanes.irregular || call.lanes.Has(lane))
                best.Take(Widen(*reinterpret_cast<const T*>(call.src + r * call.stride.repeat * kBlockBytes +
                                                            LaneOffset(lane, sizeof(T), call.stride.block))),
                          lane);
        uint8_t* dst = call.dst + r * call.dstRepeatBytes;
        if (call.order == ReduceOrder::ORDER_ONLY_INDEX) {
            std::memcpy(dst, &best.index, 4);
            continue;
        }
        T* to = reinterpret_cast<T*>(dst);
        const bool indexFirst = call.order == ReduceOrder::ORDER_INDEX_VALUE;
        to[indexFirst] = Narrow<T>(best.value);
        if (call.order != ReduceOrder::ORDER_ONLY_VALUE) StoreIndex(to + !indexFirst, best.index);
    }
}

// What IssueReduce needs beside the call: `results` groups per repeat of `group` lanes and `resultBytes` bytes each.
struct ReduceShape {
    uint32_t group;
    uint32_t resultBytes;
    uint32_t dstAlignment;
    int64_t dstRepStride;   // in units of dstUnit bytes
    uint32_t dstUnit;
};

inline void CheckReduceOverlap(Core& core, const char* name, const Lanes& lanes, const TensorRef& dst, int64_t dstBytes,
                               int64_t dstRepeatBytes, const TensorRef& src, Location where) {
    if (dst.memory != src.memory) return;
    for (uint32_t w = 0; w < lanes.repeats; ++w) {
        const int64_t begin = int64_t(dst.address) + w * dstRepeatBytes;
        for (uint32_t r = w; r < lanes.repeats; ++r) {
            const int64_t first = int64_t(src.address) + r * src.RepeatBytes();
            if (first >= begin + dstBytes) break;
            if (first + src.SpanOf(lanes, r) <= begin || (r == w && first == begin)) continue;
            core.Fail(Rule::Overlap, name, dst.name,
                      Text("%s of repeat %u overlaps %s of repeat %u", dst.name, w, src.name, r), where);
        }
    }
}

__attribute__((noinline)) inline void IssueReduce(const Entry& entry, const Form& form, const ReduceShape& shape,
                                                  Location where, ReduceCall& call, const TensorRef& dst,
                                                  const TensorRef& src) {
    Core& core = Core::Current();
    Lanes& lanes = call.lanes;
    lanes = Resolve(core, entry.name, form, kRepeatBytes / src.size, where);
    CheckField(core, Rule::StrideLimit, entry.name, dst.name, "repeat stride", shape.dstRepStride, 65535, where);
    CheckStride(core, entry.name, src.name, src.stride, 65535, 255, where);
    call.stride = src.stride;
    call.dstRepeatBytes = shape.dstRepStride * shape.dstUnit;
    Instruction instruction{entry.name, Pipe::V, entry.cost, lanes.repeats, where, {}, nullptr};
    if (core.OperandsNeeded() && lanes.repeats != 0) {
        instruction.operands.reserve(2);
        Operand& target = AddOperand(instruction, dst, Access::Write);
        // The tensor has to be aligned; the first result of a bit mask may lie behind its start.
        const bool inside = lanes.irregular && dst.address % shape.dstAlignment == 0;
        target.alignment = uint16_t(inside ? shape.resultBytes : shape.dstAlignment);
        RegionList regions(target);
        const uint32_t groups = lanes.perRepeat / shape.group;
        uint32_t reach = 0;
        const auto addResults = [&](uint32_t first, uint32_t repeats) {  // of repeats with the same active lanes
            for (uint32_t g = 0; g < groups;) {
                uint32_t end = g;
                while (end < groups && ((kRegbase && groups > 1) || GroupActive(lanes, first, end, shape.group))) ++end;
                if (end > g)
                    regions.Add({dst.address + uint64_t(first * call.dstRepeatBytes) + g * shape.resultBytes,
                                 uint64_t(end - g) * shape.resultBytes, 1, call.dstRepeatBytes ? repeats : 1, 0,
                                 call.dstRepeatBytes});
                reach = end > reach ? end : reach;
                g = end + 1;
            }
        };
        const bool shorter = lanes.active != lanes.activeInLast;
        addResults(0, lanes.repeats - shorter);
        if (shorter) addResults(lanes.repeats - 1, 1);
        CheckReduceOverlap(core, entry.name, lanes, dst, reach * shape.resultBytes, call.dstRepeatBytes, src, where);
        AddLanesOperand(instruction, src, Access::Read, lanes);
    }
    call.dst = core.Local(dst.memory, dst.address);
    call.src = core.Local(src.memory, src.address);
    core.Issue(instruction, [call] { call.loop(call); });
}

template <typename T, ReduceType kType, uint32_t kGroup>
void GroupReduce(const Entry& entry, const Form& form, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                 int64_t dstRepStride, uint32_t dstUnit, uint32_t dstAlignment, int64_t srcBlkStride, int64_t srcRepStride,
                 Location where) {
    ReduceCall call;
    call.loop = &GroupLoop<T, kType, kGroup>;
    IssueReduce(entry, form, {kGroup, sizeof(T), dstAlignment, dstRepStride, dstUnit}, where, call, Ref(dst, "dst"),
                Ref(src, "src", {srcBlkStride, srcRepStride}));
}

inline constexpr Types kReducedOnRegbase = kI16 | kU16 | kI32 | kU32;

}  // namespace sim::vec
