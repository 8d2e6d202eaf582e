// Compare and CompareScalar: one bit per lane, least significant bit first.
#pragma once

#include "ascendc/vec_engine.h"

namespace sim::vec {

using AscendC::BinaryRepeatParams;
using AscendC::CMPMODE;
using AscendC::UnaryRepeatParams;

// Copies the lanes of one repeat, up to the last active one, to or from consecutive elements.
template <typename T>
SIM_INLINE inline void LoadRepeat(T* values, const Call::Pointer& from, const Lanes& lanes, uint32_t repeat) {
    const uint32_t reach = lanes.Reach(repeat), perBlock = kBlockBytes / sizeof(T);
    const uint8_t* base = from.data + repeat * from.stride.repeat * kBlockBytes;
    if (from.stride.block == 1) {
        std::memcpy(values, base, reach * sizeof(T));
        return;
    }
    for (uint32_t lane = 0; lane < reach; lane += perBlock)
        std::memcpy(values + lane, base + LaneOffset(lane, sizeof(T), from.stride.block),
                    (reach - lane < perBlock ? reach - lane : perBlock) * sizeof(T));
}

// A call on whole repeats of T that is not lane to lane; operands[0] is dst.
struct RepeatCall {
    void (*loop)(const RepeatCall&) = nullptr;
    Lanes lanes;
    Call::Pointer operands[kMaxOperands];
    uint32_t mode = 0;             // CMPMODE or SELMODE
    alignas(8) char scalar[8] = {};
    Core* core = nullptr;          // for its CMPMASK register
};

template <typename T, bool kScalar>
SIM_LOOP void CompareLoop(const RepeatCall& call) {
    constexpr uint32_t kLanes = kRepeatBytes / sizeof(T);
    using V = decltype(Widen(T{}));
    const CMPMODE mode = CMPMODE(call.mode);
    // which of a < b, a > b, a == b, unordered gives 1
    const bool less = mode == CMPMODE::LT || mode == CMPMODE::LE || mode == CMPMODE::NE;
    const bool greater = mode == CMPMODE::GT || mode == CMPMODE::GE || mode == CMPMODE::NE;
    const bool equal = mode == CMPMODE::EQ || mode == CMPMODE::LE || mode == CMPMODE::GE;
    const bool unordered = mode == CMPMODE::NE;
    T a[kLanes] = {}, b[kLanes] = {};
    for (uint32_t r = 0; r < call.lanes.repeats; ++r) {
        LoadRepeat(a, call.operands[1], call.lanes, r);
        if constexpr (kScalar) {
            std::memcpy(b, call.scalar, sizeof(T));
            for (uint32_t i = 1; i < kLanes; ++i) b[i] = b[0];
        } else {
            LoadRepeat(b, call.operands[2], call.lanes, r);
        }
        const uint32_t reach = call.lanes.Reach(r);
        uint8_t set[kLanes];
        for (uint32_t i = 0; i < kLanes; ++i) {
            const V x = Widen(a[i]), y = Widen(b[i]);
            const bool lt = x < y, gt = x > y, eq = x == y;
            set[i] = uint8_t(((lt & less) | (gt & greater) | (eq & equal) | (!(lt | gt | eq) & unordered)) & (i < reach));
        }
        uint64_t words[(kLanes + 63) / 64] = {};
        for (uint32_t i = 0; i < kLanes; ++i) words[i / 64] |= uint64_t(set[i]) << (i % 64);
        if (call.core == nullptr) {
            std::memcpy(call.operands[0].data + r * (kLanes / 8), words, (reach + 7) / 8);
        } else {
            call.core->compareMask[0] = words[0];
            call.core->compareMask[1] = kLanes > 64 ? words[kLanes > 64] : 0;
        }
    }
}

inline uint64_t BitBytes(const Lanes& lanes) {
    return lanes.repeats == 0 ? 0 : (lanes.repeats - 1) * uint64_t(lanes.perRepeat / 8) + (lanes.Reach(lanes.repeats - 1) + 7) / 8;
}

// tensors[0]: dst of bits, nullptr name when the result goes to CMPMASK; then one or two sources.
__attribute__((noinline)) inline void IssueCompare(const char* name, const Form& form, Location where, RepeatCall& call,
                                                   TensorRef* tensors, uint32_t count, int64_t blockLimit) {
    Core& core = Core::Current();
    const TensorRef& source = tensors[1];
    const bool toRegister = tensors[0].name == nullptr;
    if (form.kind == Form::kCount && !kRegbase && form.elements * source.size % kRepeatBytes != 0)
        core.Fail(Rule::Argument, name, "count",
                  Text("count is %lld, that is %lld bytes: it must be a multiple of 256 bytes", (long long)form.elements,
                       (long long)form.elements * source.size),
                  where);
    Form whole = form;
    if (!kRegbase && form.kind != Form::kCount && !toRegister && !core.mask.counter)
        whole = MaskForm(kRepeatBytes / source.size, form.repeats, true);  // the mask is ignored: whole repeats are written
    Lanes& lanes = call.lanes;
    lanes = Resolve(core, name, whole, kRepeatBytes / source.size, where);
    for (uint32_t i = 1; i < count; ++i) {
        if (lanes.contiguous) tensors[i].stride = {};
        else CheckStride(core, name, tensors[i].name, tensors[i].stride, blockLimit, 255, where);
    }
    Instruction instruction{name, Pipe::V, Cost::VectorSimple, lanes.repeats, where, {}, nullptr};
    if (core.OperandsNeeded() && lanes.repeats != 0) {
        const TensorRef bits = Packed(tensors[0], lanes.perRepeat / 8);
        if (!toRegister) AddOperand(instruction, bits, Access::Write, {bits.address, BitBytes(lanes)});
        for (uint32_t i = 1; i < count; ++i) {
            if (!toRegister) CheckOverlap(core, name, lanes, bits, tensors[i], where);
            AddLanesOperand(instruction, tensors[i], Access::Read, lanes);
        }
    }
    for (uint32_t i = toRegister ? 1 : 0; i < count; ++i)
        call.operands[i] = {core.Local(tensors[i].memory, tensors[i].address), tensors[i].stride};
    call.core = toRegister ? &core : nullptr;
    core.Issue(instruction, [call] { call.loop(call); });
}

inline constexpr Types kCompared = kHalf | kFloat, kComparedOnRegbase = kAllTypes & ~kCompared;

template <typename T, typename U>
void CompareBits(const Form& form, const LocalTensor<U>* dst, const LocalTensor<T>& src0, const LocalTensor<T>* src1,
                 const T* scalar, CMPMODE mode, const BinaryRepeatParams& p, int64_t blockLimit, const char* name,
                 Location where) {
    static_assert(sizeof(U) == 1, "the result of a comparison is a tensor of uint8_t or int8_t");
    const Entry entry{name, kCompared | kI32, kComparedOnRegbase};
    if ((entry.Supported() & TypeOf<T>()) == 0) FailType(name, entry.Supported(), TypeOf<T>(), where);
    if (!kRegbase && std::is_same_v<T, int32_t> && mode != CMPMODE::EQ)
        Core::Current().Fail(Rule::Dtype, name, "cmpMode", Text("int32_t supports only EQ on %s", kArchName), where);
    RepeatCall call;
    call.mode = uint32_t(mode);
    TensorRef tensors[3] = {dst ? Ref(*dst, "dst") : TensorRef{}, Ref(src0, "src0", {p.src0BlkStride, p.src0RepStride}),
                            TensorRef{}};
    if (src1 != nullptr) {
        tensors[2] = Ref(*src1, "src1", {p.src1BlkStride, p.src1RepStride});
        call.loop = &CompareLoop<T, false>;
        IssueCompare(name, form, where, call, tensors, 3, blockLimit);
    } else {
        std::memcpy(call.scalar, scalar, sizeof(T));
        call.loop = &CompareLoop<T, true>;
        IssueCompare(name, form, where, call, tensors, 2, blockLimit);
    }
}

}  // namespace sim::vec

namespace AscendC {

template <typename T, typename U>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
             int64_t count, sim::Location where = sim::Location::Here()) {
    sim::vec::CompareBits<T, U>(sim::vec::CountForm(count), &dst, src0, &src1, nullptr, cmpMode, {}, 255, "Compare", where);
}
template <typename T, typename U, bool isSetMask = true>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
             uint64_t mask, int64_t repeatTime, const BinaryRepeatParams& repeatParams,
             sim::Location where = sim::Location::Here()) {
    sim::vec::CompareBits<T, U>(sim::vec::MaskForm(mask, repeatTime, isSetMask), &dst, src0, &src1, nullptr, cmpMode,
                                repeatParams, 255, "Compare", where);
}
template <typename T, typename U, bool isSetMask = true>
void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode,
             uint64_t mask[], int64_t repeatTime, const BinaryRepeatParams& repeatParams,
             sim::Location where = sim::Location::Here()) {
    sim::vec::CompareBits<T, U>(sim::vec::BitsForm(mask, repeatTime, isSetMask), &dst, src0, &src1, nullptr, cmpMode,
                                repeatParams, 255, "Compare", where);
}
// One repeat into the CMPMASK register.
template <typename T, bool isSetMask = true>
void Compare(const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode, uint64_t mask,
             const BinaryRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    sim::vec::CompareBits<T, uint8_t>(sim::vec::MaskForm(mask, 1, isSetMask), nullptr, src0, &src1, nullptr, cmpMode,
                                      repeatParams, 255, "Compare", where);
}
template <typename T, bool isSetMask = true>
void Compare(const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode, uint64_t mask[],
             const BinaryRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    sim::vec::CompareBits<T, uint8_t>(sim::vec::BitsForm(mask, 1, isSetMask), nullptr, src0, &src1, nullptr, cmpMode,
                                      repeatParams, 255, "Compare", where);
}

// CompareScalar and its 9.x name.
#define SIM_COMPARE_SCALAR(Name)                                                                                      \
    template <typename T, typename U>                                                                                 \
    void Name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T& scalar, CMPMODE cmpMode, int64_t count, \
              sim::Location where = sim::Location::Here()) {                                                          \
        sim::vec::CompareBits<T, U>(sim::vec::CountForm(count), &dst, src0, nullptr, &scalar, cmpMode, {}, 65535,     \
                                    #Name, where);                                                                    \
    }                                                                                                                 \
    template <typename T, typename U, bool isSetMask = true>                                                          \
    void Name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T& scalar, CMPMODE cmpMode, uint64_t mask, \
              int64_t repeatTime, const UnaryRepeatParams& p, sim::Location where = sim::Location::Here()) {          \
        sim::vec::CompareBits<T, U>(sim::vec::MaskForm(mask, repeatTime, isSetMask), &dst, src0, nullptr, &scalar,    \
                                    cmpMode, {p.dstBlkStride, p.srcBlkStride, 1, p.dstRepStride, p.srcRepStride, 8},  \
                                    65535, #Name, where);                                                             \
    }                                                                                                                 \
    template <typename T, typename U, bool isSetMask = true>                                                          \
    void Name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T& scalar, CMPMODE cmpMode,                \
              uint64_t mask[], int64_t repeatTime, const UnaryRepeatParams& p,                                        \
              sim::Location where = sim::Location::Here()) {                                                          \
        sim::vec::CompareBits<T, U>(sim::vec::BitsForm(mask, repeatTime, isSetMask), &dst, src0, nullptr, &scalar,    \
                                    cmpMode, {p.dstBlkStride, p.srcBlkStride, 1, p.dstRepStride, p.srcRepStride, 8},  \
                                    65535, #Name, where);                                                             \
    }
SIM_COMPARE_SCALAR(CompareScalar)
SIM_COMPARE_SCALAR(Compares)

// CMPMASK from and to UB: 128 bits.
template <typename T>
void GetCmpMask(const LocalTensor<T>& dst, sim::Location where = sim::Location::Here()) {
    sim::Core& core = sim::Core::Current();
    sim::Instruction instruction{"GetCmpMask", sim::Pipe::V, sim::Cost::VectorSimple, 1, where, {}, nullptr};
    if (core.OperandsNeeded())
        sim::vec::AddOperand(instruction, sim::vec::Ref(dst, "dst"), sim::Access::Write, {dst.Address(), 16}).alignment = 16;
    core.Issue(instruction, [&core, to = dst.Host()] { std::memcpy(to, core.compareMask, 16); });
}
template <typename T>
void SetCmpMask(const LocalTensor<T>& src, sim::Location where = sim::Location::Here()) {
    sim::Core& core = sim::Core::Current();
    sim::Instruction instruction{"SetCmpMask", sim::Pipe::V, sim::Cost::VectorSimple, 1, where, {}, nullptr};
    if (core.OperandsNeeded())
        sim::vec::AddOperand(instruction, sim::vec::Ref(src, "src"), sim::Access::Read, {src.Address(), 16}).alignment = 16;
    core.Issue(instruction, [&core, from = src.Host()] { std::memcpy(core.compareMask, from, 16); });
}

}  // namespace AscendC
