// Reductions of a whole operand to dst[0]: ReduceSum, ReduceMax, ReduceMin, and the registers they leave.
#pragma once

#include "ascendc/vec_reduce_engine.h"

namespace sim::vec {

// A reduction over all repeats, by value.
struct TotalCall {
    void (*loop)(const TotalCall&) = nullptr;
    ReduceCall repeats;       // lanes, strides and pointers
    bool counted = false;     // count form
    bool withIndex = false;
    Core* core = nullptr;
};

template <typename T, typename V>
SIM_INLINE inline V RepeatTree(const V* values) {
    V sum;
    SumTree<T, kRepeatBytes / sizeof(T), kRepeatBytes / sizeof(T)>(values, &sum);
    return sum;
}

// Arch 2201, count form: a tree per repeat, the results added one after the other in the accumulation register. Arch 3510,
// count form of 2 to 4 repeats: the repeats are added lane by lane, then a tree. All else: a tree per repeat, then trees
// over their results until one is left.
template <typename T>
SIM_LOOP void TotalSumLoop(const TotalCall& call) {
    constexpr uint32_t kLanes = kRepeatBytes / sizeof(T);
    using V = decltype(Widen(T{}));
    const uint32_t repeats = call.repeats.lanes.repeats;
    V values[kLanes], sums[kLanes];
    V total = 0;
    const auto add = [](V a, V b) SIM_INLINE { return Widen(Narrow<T>(Sum(V(a), V(b)))); };
    if (call.counted && (!kRegbase || (repeats > 1 && repeats <= 4))) {
        for (uint32_t i = 0; i < kLanes; ++i) sums[i] = 0;
        for (uint32_t r = 0; r < repeats; ++r) {
            LoadLanes<T>(call.repeats, r, V(0), values);
            if constexpr (kRegbase)
                for (uint32_t i = 0; i < kLanes; ++i) sums[i] = add(sums[i], values[i]);
            else
                total = add(total, RepeatTree<T>(values));
        }
        if constexpr (kRegbase) total = RepeatTree<T>(sums);
    } else {
        // levels of trees; a level is at most ceil(previous / lanes) long
        std::vector<V> level(repeats + kLanes);
        for (uint32_t r = 0; r < repeats; ++r) {
            LoadLanes<T>(call.repeats, r, V(0), values);
            level[r] = RepeatTree<T>(values);
        }
        for (uint32_t count = repeats; count > 1;) {
            const uint32_t trees = (count + kLanes - 1) / kLanes;
            for (uint32_t i = count; i < trees * kLanes; ++i) level[i] = 0;
            for (uint32_t tree = 0; tree < trees; ++tree) level[tree] = RepeatTree<T>(&level[tree * kLanes]);
            count = trees;
        }
        total = level[0];
    }
    call.core->accumulator = float(total);
    if (kRegbase || !call.counted) *reinterpret_cast<T*>(call.repeats.dst) = Narrow<T>(total);
}

template <typename T, bool kMax>
void TotalExtremeLoop(const TotalCall& call) {
    const ReduceCall& c = call.repeats;
    Extreme<T, kMax> best;
    for (uint32_t r = 0; r < c.lanes.repeats; ++r)
        for (uint32_t lane = 0, reach = c.lanes.Reach(r); lane < reach; ++lane)
            if (!c.lanes.irregular || c.lanes.Has(lane)) {
                const int64_t offset = r * c.stride.repeat * kBlockBytes + lane * sizeof(T);
                best.Take(Widen(*reinterpret_cast<const T*>(c.src + offset)), uint32_t(offset / sizeof(T)));
            }
    T* dst = reinterpret_cast<T*>(c.dst);
    dst[0] = Narrow<T>(best.value);
    if (call.withIndex) StoreIndex(dst + 1, best.index);
    call.core->extreme = float(best.value);
    call.core->extremeIndex = best.index;
}

// Elements of sharedTmpBuffer a reduction needs: the results of every level, each level padded to whole blocks.
inline uint64_t TmpElements(ReduceType type, bool counted, bool withIndex, uint32_t repeats, uint32_t size) {
    const uint64_t perBlock = kBlockBytes / size, perRepeat = kRepeatBytes / size;
    if (type == ReduceType::SUM) return counted ? 0 : AlignUp(repeats, perBlock);
    uint64_t total = AlignUp(2 * uint64_t(repeats), perBlock);
    for (uint64_t results = repeats; withIndex && results > 1;) {
        results = (2 * results + perRepeat - 1) / perRepeat;
        total += AlignUp(2 * results, perBlock);
    }
    return total;
}

// The scalar unit takes the sum from the accumulation register, which orders V before it, and stores it, ordered before
// later V and MTE3 instructions.
template <typename T>
void StoreAccumulator(Core& core, const TensorRef& dst, Location where) {
    const auto order = [&](Pipe source, Pipe destination) {
        int id = 7;
        while (id > 0 && core.FlagIsSet(source, destination, id)) --id;
        core.SetFlag(source, destination, id, where);
        core.WaitFlag(source, destination, id, where);
    };
    order(Pipe::V, Pipe::S);
    Instruction store{"ReduceSum", Pipe::S, Cost::Scalar, 1, where, {}, nullptr};
    if (core.OperandsNeeded()) AddOperand(store, dst, Access::Write, {dst.address, sizeof(T)}).alignment = sizeof(T);
    core.FlushBefore(Pipe::S);
    core.Issue(store, [] {});
    *reinterpret_cast<T*>(core.Local(dst.memory, dst.address)) = Narrow<T>(core.accumulator);
    order(Pipe::S, Pipe::V);
    order(Pipe::S, Pipe::MTE3);
}

__attribute__((noinline)) inline void IssueTotal(const char* name, ReduceType type, const Form& form, Location where,
                                                 TotalCall& call, const TensorRef& dst, const TensorRef& src,
                                                 const TensorRef& tmp, uint64_t tmpBytes) {
    Core& core = Core::Current();
    Lanes& lanes = call.repeats.lanes;
    lanes = Resolve(core, name, form, kRepeatBytes / src.size, where);
    call.counted = form.kind == Form::kCount;
    TensorRef source = src;
    if (call.counted) source.stride = {};
    CheckStride(core, name, "src", source.stride, 255, 255, where);
    if (lanes.repeats == 0) core.Fail(Rule::Argument, name, "", "nothing to reduce: the count, mask or repeatTime is 0", where);
    const uint64_t span = uint64_t((lanes.repeats - 1) * source.RepeatBytes() + source.SpanOf(lanes, lanes.repeats - 1));
    if (call.withIndex && src.size == 2 && span / src.size > 65536)
        core.Fail(Rule::Argument, name, "", "an index of half must be below 65536", where);
    const uint64_t needed = TmpElements(type, call.counted, call.withIndex, lanes.repeats, src.size) * src.size;
    if (tmpBytes < needed)
        core.Fail(Rule::Argument, name, "sharedTmpBuffer",
                  Text("sharedTmpBuffer has %llu bytes, this call needs %llu", (unsigned long long)tmpBytes,
                       (unsigned long long)needed),
                  where);
    const bool storedByScalar = !kRegbase && type == ReduceType::SUM && call.counted;
    Instruction instruction{name, Pipe::V, Cost::VectorWholeReduce, lanes.repeats, where, {}, nullptr};
    for (uint64_t level = lanes.repeats; level > 1 && !call.counted;) {
        level = (level + lanes.perRepeat - 1) / lanes.perRepeat;
        instruction.work += level;
    }
    if (core.OperandsNeeded()) {
        if (!storedByScalar) {
            const uint32_t results = call.withIndex ? 2 : 1;
            AddOperand(instruction, dst, Access::Write, {dst.address, results * dst.size}).alignment = uint16_t(dst.size);
        }
        AddLanesOperand(instruction, source, Access::Read, lanes);
        if (needed != 0) {
            AddOperand(instruction, tmp, Access::Write, {tmp.address, needed});
            const auto apart = [&](const TensorRef& other, uint64_t bytes) {
                if (other.memory == tmp.memory && tmp.address < other.address + bytes && other.address < tmp.address + needed)
                    core.Fail(Rule::Overlap, name, tmp.name, Text("%s overlaps %s", tmp.name, other.name), where);
            };
            apart(dst, dst.size);
            apart(src, span);
        }
    }
    call.core = &core;
    call.repeats.stride = source.stride;
    call.repeats.dst = core.Local(dst.memory, dst.address);
    call.repeats.src = core.Local(src.memory, src.address);
    core.Issue(instruction, [call] { call.loop(call); });
    if (storedByScalar) {
        if (dst.size == 2) StoreAccumulator<half>(core, dst, where);
        else StoreAccumulator<float>(core, dst, where);
    }
}

template <typename T, ReduceType kType>
void TotalReduce(const char* name, const Form& form, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                 const LocalTensor<T>& tmp, int64_t srcRepStride, bool withIndex, Location where) {
    static constexpr Entry entry{"", kHalf | kFloat, kReducedOnRegbase};
    if constexpr (Supports<T>(entry)) {
        TotalCall call;
        call.withIndex = withIndex;
        if constexpr (kType == ReduceType::SUM) call.loop = &TotalSumLoop<T>;
        else call.loop = &TotalExtremeLoop<T, kType == ReduceType::MAX>;
        IssueTotal(name, kType, form, where, call, Ref(dst, "dst"), Ref(src, "src", {1, srcRepStride}),
                   Ref(tmp, "sharedTmpBuffer"), tmp.GetLength());
    } else {
        FailType(name, entry.Supported(), TypeOf<T>(), where);
    }
}

}  // namespace sim::vec

namespace AscendC {

template <typename T>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer, int64_t count,
               sim::Location where = sim::Location::Here()) {
    sim::vec::TotalReduce<T, ReduceType::SUM>("ReduceSum", sim::vec::CountForm(count), dst, src, sharedTmpBuffer, 8, false,
                                              where);
}
template <typename T>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer, int64_t mask,
               int64_t repeatTime, int64_t srcRepStride, sim::Location where = sim::Location::Here()) {
    sim::vec::TotalReduce<T, ReduceType::SUM>("ReduceSum", sim::vec::MaskForm(mask, repeatTime, true), dst, src,
                                              sharedTmpBuffer, srcRepStride, false, where);
}
template <typename T>
void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
               const uint64_t mask[], int64_t repeatTime, int64_t srcRepStride, sim::Location where = sim::Location::Here()) {
    sim::vec::TotalReduce<T, ReduceType::SUM>("ReduceSum", sim::vec::BitsForm(mask, repeatTime, true), dst, src,
                                              sharedTmpBuffer, srcRepStride, false, where);
}

// With calIndex, dst[1] holds the raw bits of the index, which counts elements from the start of src.
#define SIM_TOTAL_EXTREME(Name, kType)                                                                                \
    template <typename T>                                                                                             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,            \
              int64_t count, bool calIndex = false, sim::Location where = sim::Location::Here()) {                    \
        sim::vec::TotalReduce<T, ReduceType::kType>(#Name, sim::vec::CountForm(count), dst, src, sharedTmpBuffer, 8,  \
                                                    calIndex, where);                                                 \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,            \
              int64_t mask, int64_t repeatTime, int64_t srcRepStride, bool calIndex = false,                          \
              sim::Location where = sim::Location::Here()) {                                                          \
        sim::vec::TotalReduce<T, ReduceType::kType>(#Name, sim::vec::MaskForm(mask, repeatTime, true), dst, src,      \
                                                    sharedTmpBuffer, srcRepStride, calIndex, where);                  \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,            \
              const uint64_t mask[], int64_t repeatTime, int64_t srcRepStride, bool calIndex = false,                 \
              sim::Location where = sim::Location::Here()) {                                                          \
        sim::vec::TotalReduce<T, ReduceType::kType>(#Name, sim::vec::BitsForm(mask, repeatTime, true), dst, src,      \
                                                    sharedTmpBuffer, srcRepStride, calIndex, where);                  \
    }
SIM_TOTAL_EXTREME(ReduceMax, MAX)
SIM_TOTAL_EXTREME(ReduceMin, MIN)

// The scalar unit's view of the last ReduceSum, and of the last ReduceMax or ReduceMin; a V_S flag must order them.
template <typename T>
T GetAccVal(sim::Location where = sim::Location::Here()) {
    sim::Core& core = sim::Core::Current();
    core.FlushBefore(sim::Pipe::S);
    core.Issue({"GetAccVal", sim::Pipe::S, sim::Cost::Scalar, 1, where, {}, nullptr}, [] {});
    return sim::vec::Narrow<T>(core.accumulator);
}
template <typename T>
T GetReduceRepeatSumSpr(sim::Location where = sim::Location::Here()) { return GetAccVal<T>(where); }

template <typename T>
void GetReduceMaxMinCount(T& maxMinValue, T& maxMinIndex, sim::Location where = sim::Location::Here()) {
    sim::Core& core = sim::Core::Current();
    core.FlushBefore(sim::Pipe::S);
    core.Issue({"GetReduceMaxMinCount", sim::Pipe::S, sim::Cost::Scalar, 1, where, {}, nullptr}, [] {});
    maxMinValue = sim::vec::Narrow<T>(core.extreme);
    sim::vec::StoreIndex(&maxMinIndex, core.extremeIndex);
}
template <typename T>
void GetReduceRepeatMaxMinSpr(T& maxMinValue, T& maxMinIndex, sim::Location where = sim::Location::Here()) {
    GetReduceMaxMinCount(maxMinValue, maxMinIndex, where);
}

}  // namespace AscendC
