// The one engine of lane-wise vector instructions: form -> lanes -> checks and operands -> a loop over the body.
#pragma once

#include "ascendc/vec_form.h"

namespace sim::vec {

template <typename T>
SIM_INLINE inline T* Step(T* data, int64_t bytes) {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return reinterpret_cast<T*>(reinterpret_cast<Byte*>(data) + bytes);
}

// A lane-wise call ready to run, by value: it may run later.
inline constexpr uint32_t kMaxOperands = 4;
struct Call {
    struct Pointer {
        uint8_t* data;
        Stride stride;
    };
    void (*loop)(const Call&) = nullptr;
    Lanes lanes;
    uint32_t step = 0;               // lanes that are contiguous in every operand
    alignas(8) char body[16] = {};   // the closure of the lane function
    Pointer operands[kMaxOperands];  // dst first
};

// dst[lane] = body(src[lane]...) for every active lane, repeat after repeat. dst and src of one run are disjoint, equal, or
// in an order that a forward loop keeps (CheckOverlap), so the iterations of the inner loop are independent.
template <typename D, typename Body, typename... S, size_t... I>
SIM_INLINE inline void LoopOver(const Call& call, std::index_sequence<I...>) {
    Body body = *reinterpret_cast<const Body*>(call.body);
    const Lanes& lanes = call.lanes;
    const auto run = [&body](uint32_t n, Stored<D>* dst, const Stored<S>*... src) SIM_INLINE {
        SIM_INDEPENDENT
        for (uint32_t i = 0; i < n; ++i) dst[i] = StoreLane<D>(body(LoadLane<S>(src[i])...));
    };
    const auto at = [&call](uint32_t operand, uint32_t size, uint32_t repeat, uint32_t lane) SIM_INLINE {
        const Call::Pointer& p = call.operands[operand];
        return p.data + repeat * p.stride.repeat * kBlockBytes + LaneOffset(lane, size, p.stride.block);
    };
    for (uint32_t r = 0; r < lanes.repeats; ++r) {
        const uint32_t active = lanes.Reach(r);
        for (uint32_t lane = 0; lane < active; lane += call.step) {
            if (lanes.irregular && !lanes.Has(lane)) continue;
            const uint32_t n = active - lane < call.step ? active - lane : call.step;
            run(n, reinterpret_cast<Stored<D>*>(at(0, sizeof(D), r, lane)),
                reinterpret_cast<const Stored<S>*>(at(uint32_t(I) + 1, sizeof(S), r, lane))...);
        }
    }
}
template <typename D, typename Body, typename... S>
SIM_LOOP void Loop(const Call& call) {
    LoopOver<D, Body, S...>(call, std::index_sequence_for<S...>{});
}

// Properties of a lane-wise instruction that are not in the table.
struct Traits {
    bool accumulates = false;   // dst == src1 with repeat strides 0: serial accumulation over the repeats is defined
    int64_t blockLimit = 255;   // of block strides: uint8_t in BinaryRepeatParams, uint16_t in UnaryRepeatParams
    bool readsDst = false;      // tensors[1] is dst again
    int64_t repeatLimit = 255;  // of repeat strides
};

// Lets the loop take the longest runs: all lanes at once, whole repeats, blocks, or single lanes of a bit mask.
inline void ChooseRuns(Call& call, uint32_t widest, const TensorRef* tensors, uint32_t count) {
    Lanes& lanes = call.lanes;
    bool whole = !lanes.irregular, dense = lanes.active == lanes.perRepeat;
    for (uint32_t i = 0; i < count; ++i) {
        whole = whole && tensors[i].stride.block == 1;
        dense = dense && tensors[i].RepeatBytes() == int64_t(lanes.perRepeat) * tensors[i].size;
    }
    if (lanes.contiguous || (whole && dense)) {
        lanes.activeInLast = call.step = uint32_t(lanes.Total());
        lanes.repeats = call.step != 0;
    } else {
        call.step = lanes.irregular ? 1 : whole ? lanes.perRepeat : kBlockBytes / widest;
    }
}

inline void CheckDstBlocks(Core& core, const char* name, const Lanes& lanes, const TensorRef& dst, Location where) {
    if (dst.stride.block == 0 && lanes.repeats != 0 && lanes.Reach(0) > kBlockBytes / dst.size)
        core.Fail(Rule::StrideLimit, name, dst.name, "the block stride of a destination must not be 0", where);
}

// Checks and issues: tensors[0] is dst. Not a template, so that a kernel has one copy of it.
__attribute__((noinline)) inline void IssueCall(const Entry& entry, const Traits& traits, const Form& form, Location where,
                                                Call& call, TensorRef* tensors, uint32_t count) {
    Core& core = Core::Current();
    uint32_t widest = 1;
    for (uint32_t i = 0; i < count; ++i) widest = tensors[i].size > widest ? tensors[i].size : widest;
    Lanes& lanes = call.lanes;
    lanes = Resolve(core, entry.name, form, kRepeatBytes / widest, where);
    if (lanes.contiguous) {
        for (uint32_t i = 0; i < count; ++i)
            tensors[i].stride = {1, int64_t(lanes.perRepeat) * tensors[i].size / kBlockBytes};
    } else {
        for (uint32_t i = 0; i < count; ++i)
            CheckStride(core, entry.name, tensors[i].name, tensors[i].stride, traits.blockLimit, traits.repeatLimit, where);
        CheckDstBlocks(core, entry.name, lanes, tensors[0], where);
    }
    const uint64_t work = lanes.repeats * uint64_t(entry.perLane && lanes.perRepeat == 128 ? 2 : 1);
    Instruction instruction{entry.name, Pipe::V, entry.cost, work, where, {}, nullptr};
    if (core.OperandsNeeded()) {
        const uint32_t firstSource = traits.readsDst ? 2 : 1;
        instruction.operands.reserve(count);
        AddLanesOperand(instruction, tensors[0], traits.readsDst ? Access::ReadWrite : Access::Write, lanes);
        for (uint32_t i = firstSource; i < count; ++i) {
            const TensorRef &dst = tensors[0], &src = tensors[i];
            const bool serial = traits.accumulates && i == 2 && dst.address == src.address && dst.stride.repeat == 0 &&
                                src.stride.repeat == 0 && dst.stride.block == src.stride.block;
            if (!serial) CheckOverlap(core, entry.name, lanes, dst, src, where);
            AddLanesOperand(instruction, src, Access::Read, lanes);
        }
    }
    ChooseRuns(call, widest, tensors, count);
    for (uint32_t i = 0; i < count; ++i)
        call.operands[i] = {core.Local(tensors[i].memory, tensors[i].address), tensors[i].stride};
    core.Issue(instruction, [call] { call.loop(call); });
}

// Issues a lane-wise instruction; D and S are the element types of dst and the sources. The caller has checked them.
// kReadsDst: the body's first parameter is the old lane of dst.
template <bool kReadsDst, typename D, typename... S, typename Body, typename... Sources>
void Elementwise(const Entry& entry, Traits traits, const Form& form, Location where, const Body& body,
                 const TensorRef& dst, const Sources&... src) {
    static_assert(sizeof(Body) <= sizeof(Call::body) && std::is_trivially_copyable_v<Body>);
    Call call;
    std::memcpy(call.body, &body, sizeof body);
    traits.readsDst = kReadsDst;
    if constexpr (kReadsDst) {
        TensorRef tensors[] = {dst, dst, src...};
        call.loop = &Loop<D, Body, D, S...>;
        IssueCall(entry, traits, form, where, call, tensors, 2 + sizeof...(src));
    } else {
        TensorRef tensors[] = {dst, src...};
        call.loop = &Loop<D, Body, S...>;
        IssueCall(entry, traits, form, where, call, tensors, 1 + sizeof...(src));
    }
}

}  // namespace sim::vec
