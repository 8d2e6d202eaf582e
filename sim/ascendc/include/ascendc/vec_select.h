// Select: bit 1 takes src0, bit 0 takes src1.
#pragma once

#include "ascendc/vec_compare.h"

namespace sim::vec {

using AscendC::SELMODE;

// operands: dst, selMask, src0, src1
template <typename T, bool kScalar>
SIM_LOOP void SelectLoop(const RepeatCall& call) {
    constexpr uint32_t kLanes = kRepeatBytes / sizeof(T), kPerBlock = kBlockBytes / sizeof(T);
    T a[kLanes] = {}, b[kLanes] = {};
    if constexpr (kScalar) {
        std::memcpy(b, call.scalar, sizeof(T));
        for (uint32_t i = 1; i < kLanes; ++i) b[i] = b[0];
    }
    const bool reused = SELMODE(call.mode) == SELMODE::VSEL_CMPMASK_SPR;  // the same bits for every repeat
    for (uint32_t r = 0; r < call.lanes.repeats; ++r) {
        LoadRepeat(a, call.operands[2], call.lanes, r);
        if constexpr (!kScalar) LoadRepeat(b, call.operands[3], call.lanes, r);
        const uint8_t* bits = call.core != nullptr ? reinterpret_cast<const uint8_t*>(call.core->compareMask)
                                                   : call.operands[1].data + (reused ? 0 : r * (kLanes / 8));
        const uint32_t reach = call.lanes.Reach(r);
        for (uint32_t i = 0; i < reach; ++i) a[i] = bits[i / 8] >> (i % 8) & 1 ? a[i] : b[i];
        uint8_t* base = call.operands[0].data + r * call.operands[0].stride.repeat * kBlockBytes;
        for (uint32_t lane = 0; lane < reach; lane += kPerBlock) {
            T* to = reinterpret_cast<T*>(base + LaneOffset(lane, sizeof(T), call.operands[0].stride.block));
            for (uint32_t i = 0; i < kPerBlock && lane + i < reach; ++i)
                if (!call.lanes.irregular || call.lanes.Has(lane + i)) to[i] = a[lane + i];
        }
    }
}

// tensors: dst, selMask (no name: CMPMASK), src0 and maybe src1.
__attribute__((noinline)) inline void IssueSelect(const Form& form, Location where, RepeatCall& call, TensorRef* tensors,
                                                  uint32_t count) {
    Core& core = Core::Current();
    const TensorRef& dst = tensors[0];
    const bool fromRegister = tensors[1].name == nullptr;
    Lanes& lanes = call.lanes;
    lanes = Resolve(core, "Select", form, kRepeatBytes / dst.size, where);
    for (uint32_t i = 0; i < count; ++i) {
        if (lanes.contiguous) tensors[i].stride = {};
        else CheckStride(core, "Select", tensors[i].name, tensors[i].stride, 255, 255, where);
    }
    CheckDstBlocks(core, "Select", lanes, dst, where);
    Instruction instruction{"Select", Pipe::V, Cost::VectorSimple, lanes.repeats, where, {}, nullptr};
    if (core.OperandsNeeded() && lanes.repeats != 0) {
        instruction.operands.reserve(count);
        AddLanesOperand(instruction, dst, Access::Write, lanes);
        if (!fromRegister) {
            const bool reused = SELMODE(call.mode) == SELMODE::VSEL_CMPMASK_SPR;
            const TensorRef bits = Packed(tensors[1], reused ? 0 : lanes.perRepeat / 8);
            CheckOverlap(core, "Select", lanes, dst, bits, where);
            AddOperand(instruction, bits, Access::Read, {bits.address, reused ? (lanes.Reach(0) + 7) / 8 : BitBytes(lanes)});
        }
        for (uint32_t i = 2; i < count; ++i) {
            CheckOverlap(core, "Select", lanes, dst, tensors[i], where);
            AddLanesOperand(instruction, tensors[i], Access::Read, lanes);
        }
    }
    for (uint32_t i = 0; i < count; ++i)
        if (tensors[i].name != nullptr)
            call.operands[i] = {core.Local(tensors[i].memory, tensors[i].address), tensors[i].stride};
    call.core = fromRegister ? &core : nullptr;
    core.Issue(instruction, [call] { call.loop(call); });
}

template <typename T>
void SelectLanes(const Form& form, const LocalTensor<T>& dst, const TensorRef& selMask, const LocalTensor<T>& src0,
                 const LocalTensor<T>* src1, const T* scalar, SELMODE mode, const BinaryRepeatParams& p, Location where) {
    static constexpr Entry entry{"Select", kCompared, kComparedOnRegbase};
    if ((entry.Supported() & TypeOf<T>()) == 0) FailType("Select", entry.Supported(), TypeOf<T>(), where);
    const bool wantsScalar = mode == SELMODE::VSEL_TENSOR_SCALAR_MODE;
    if (wantsScalar != (src1 == nullptr))
        Core::Current().Fail(Rule::Argument, "Select", "selMode",
                             wantsScalar ? "VSEL_TENSOR_SCALAR_MODE takes a scalar src1"
                                         : "a scalar src1 needs VSEL_TENSOR_SCALAR_MODE",
                             where);
    RepeatCall call;
    call.mode = uint32_t(mode);
    TensorRef tensors[4] = {Ref(dst, "dst", {p.dstBlkStride, p.dstRepStride}), selMask,
                            Ref(src0, "src0", {p.src0BlkStride, p.src0RepStride}), TensorRef{}};
    if (src1 != nullptr) {
        tensors[3] = Ref(*src1, "src1", {p.src1BlkStride, p.src1RepStride});
        call.loop = &SelectLoop<T, false>;
        IssueSelect(form, where, call, tensors, 4);
    } else {
        std::memcpy(call.scalar, scalar, sizeof(T));
        call.loop = &SelectLoop<T, true>;
        IssueSelect(form, where, call, tensors, 3);
    }
}

}  // namespace sim::vec

namespace AscendC {

// Sel: the second source, a tensor or a scalar of T.
#define SIM_SELECT(Src1, tensor, scalar)                                                                              \
    template <typename T, typename U>                                                                                 \
    void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, Src1 src1,      \
                SELMODE selMode, int64_t count, sim::Location where = sim::Location::Here()) {                        \
        sim::vec::SelectLanes<T>(sim::vec::CountForm(count), dst, sim::vec::Ref(selMask, "selMask"), src0, tensor,    \
                                 scalar, selMode, {}, where);                                                         \
    }                                                                                                                 \
    template <typename T, typename U, bool isSetMask = true>                                                          \
    void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, Src1 src1,      \
                SELMODE selMode, uint64_t mask, int64_t repeatTime, const BinaryRepeatParams& repeatParams,           \
                sim::Location where = sim::Location::Here()) {                                                        \
        sim::vec::SelectLanes<T>(sim::vec::MaskForm(mask, repeatTime, isSetMask), dst,                                \
                                 sim::vec::Ref(selMask, "selMask"), src0, tensor, scalar, selMode, repeatParams, where); \
    }                                                                                                                 \
    template <typename T, typename U, bool isSetMask = true>                                                          \
    void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, Src1 src1,      \
                SELMODE selMode, uint64_t mask[], int64_t repeatTime, const BinaryRepeatParams& repeatParams,         \
                sim::Location where = sim::Location::Here()) {                                                        \
        sim::vec::SelectLanes<T>(sim::vec::BitsForm(mask, repeatTime, isSetMask), dst,                                \
                                 sim::vec::Ref(selMask, "selMask"), src0, tensor, scalar, selMode, repeatParams, where); \
    }
SIM_SELECT(const LocalTensor<T>&, &src1, nullptr)
SIM_SELECT(T, nullptr, &src1)

// The bits come from CMPMASK, the lanes from the mask register.
template <typename T>
void Select(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, int64_t repeatTime,
            const BinaryRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    sim::vec::SelectLanes<T>(sim::vec::MaskForm(0, repeatTime, false), dst, sim::vec::TensorRef{}, src0, &src1, nullptr,
                             SELMODE::VSEL_CMPMASK_SPR, repeatParams, where);
}

}  // namespace AscendC
