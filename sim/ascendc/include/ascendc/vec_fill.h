// Instructions that fill: Duplicate, CreateVecIndex, Brcb.
#pragma once

#include "ascendc/vec_engine.h"
#include "ascendc/vec_math.h"

namespace AscendC {

namespace detail {

template <typename T>
void DuplicateLanes(const sim::vec::Form& form, const LocalTensor<T>& dst, T scalar, int64_t dstBlockStride,
                    int64_t dstRepeatStride, sim::Location where) {
    using namespace sim::vec;
    static constexpr Entry entry{"Duplicate", kHalf | kBf16 | kFloat | kI16 | kU16 | kI32 | kU32, kAllTypes};
    if constexpr (Supports<T>(entry))
        Elementwise<false, T>(entry, {false, 65535}, form, where, [scalar]() SIM_INLINE { return scalar; },
                              Ref(dst, "dst", {dstBlockStride, dstRepeatStride}));
    else
        FailType("Duplicate", entry.Supported(), TypeOf<T>(), where);
}

}  // namespace detail

template <typename T>
void Duplicate(const LocalTensor<T>& dst, const T& scalar, int64_t count, sim::Location where = sim::Location::Here()) {
    detail::DuplicateLanes(sim::vec::CountForm(count), dst, scalar, 1, 8, where);
}
template <typename T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dst, const T& scalar, uint64_t mask, int64_t repeatTime, int64_t dstBlockStride,
               int64_t dstRepeatStride, sim::Location where = sim::Location::Here()) {
    detail::DuplicateLanes(sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, scalar, dstBlockStride, dstRepeatStride, where);
}
template <typename T, bool isSetMask = true>
void Duplicate(const LocalTensor<T>& dst, const T& scalar, uint64_t mask[], int64_t repeatTime, int64_t dstBlockStride,
               int64_t dstRepeatStride, sim::Location where = sim::Location::Here()) {
    detail::DuplicateLanes(sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, scalar, dstBlockStride, dstRepeatStride, where);
}
// Broadcasts src[0] (arch 3510).
template <typename T>
void Duplicate(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t count,
               sim::Location where = sim::Location::Here()) {
    using namespace sim::vec;
    if (!kRegbase) FailType("Duplicate(dst, tensor)", 0, TypeOf<T>(), where);
    sim::Core& core = sim::Core::Current();
    const Lanes lanes = Resolve(core, "Duplicate", CountForm(count), kRepeatBytes / sizeof(T), where);
    sim::Instruction instruction{"Duplicate", sim::Pipe::V, sim::Cost::VectorSimple, lanes.repeats, where, {}, nullptr};
    if (core.OperandsNeeded() && count > 0) {
        AddLanesOperand(instruction, Ref(dst, "dst"), sim::Access::Write, lanes);
        AddOperand(instruction, Ref(src, "src"), sim::Access::Read, {src.Address(), sizeof(T)});
    }
    core.Issue(instruction, [out = dst.Host(), in = src.Host(), count] {
        const T value = *in;
        for (int64_t i = 0; i < count; ++i) out[i] = value;
    });
}

namespace detail {

// dst[i] = firstValue + i over the active and inactive lanes alike.
template <typename T>
void CreateVecIndexLanes(const sim::vec::Form& form, const LocalTensor<T>& dst, T firstValue, int64_t dstBlkStride,
                         int64_t dstRepStride, sim::Location where) {
    using namespace sim::vec;
    static constexpr Entry entry{"CreateVecIndex", kI16 | kHalf | kI32 | kFloat, kI64};
    if constexpr (!Supports<T>(entry)) {
        FailType("CreateVecIndex", entry.Supported(), TypeOf<T>(), where);
    } else {
        sim::Core& core = sim::Core::Current();
        const Lanes lanes = Resolve(core, entry.name, form, kRepeatBytes / sizeof(T), where);
        const Stride stride{dstBlkStride, lanes.contiguous ? kBlocksPerRepeat : dstRepStride};
        const TensorRef target = Ref(dst, "dst", stride);
        if (!lanes.contiguous) {
            CheckStride(core, entry.name, "dst", stride, 65535, 255, where);
            CheckDstBlocks(core, entry.name, lanes, target, where);
        }
        sim::Instruction instruction{entry.name, sim::Pipe::V, entry.cost, lanes.repeats, where, {}, nullptr};
        if (core.OperandsNeeded()) AddLanesOperand(instruction, target, sim::Access::Write, lanes);
        core.Issue(instruction, [lanes, stride, out = dst.Host(), first = Widen(firstValue)] {
            for (uint32_t r = 0; r < lanes.repeats; ++r)
                for (uint32_t lane = 0, end = lanes.Reach(r); lane < end; ++lane)
                    if (!lanes.irregular || lanes.Has(lane))
                        *Step(out, r * stride.repeat * kBlockBytes + LaneOffset(lane, sizeof(T), stride.block)) =
                            Narrow<T>(Sum(first, decltype(first)(r * lanes.perRepeat + lane)));
        });
    }
}

}  // namespace detail

template <typename T>
void CreateVecIndex(const LocalTensor<T>& dst, const T& firstValue, int64_t count,
                    sim::Location where = sim::Location::Here()) {
    detail::CreateVecIndexLanes(sim::vec::CountForm(count), dst, firstValue, 1, 8, where);
}
template <typename T>
void CreateVecIndex(const LocalTensor<T>& dst, const T& firstValue, uint64_t mask, int64_t repeatTime,
                    int64_t dstBlkStride, int64_t dstRepStride, sim::Location where = sim::Location::Here()) {
    detail::CreateVecIndexLanes(sim::vec::MaskForm(mask, repeatTime, true), dst, firstValue, dstBlkStride, dstRepStride, where);
}
template <typename T>
void CreateVecIndex(const LocalTensor<T>& dst, const T& firstValue, uint64_t mask[], int64_t repeatTime,
                    int64_t dstBlkStride, int64_t dstRepStride, sim::Location where = sim::Location::Here()) {
    detail::CreateVecIndexLanes(sim::vec::BitsForm(mask, repeatTime, true), dst, firstValue, dstBlkStride, dstRepStride, where);
}

// Each repeat reads 8 elements and fills block k of dst with the k-th of them. The source is fetched by whole 32-byte
// blocks, also for 16-bit types, whose second half then belongs to the next repeat.
template <typename T>
void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t repeatTime, const BrcbRepeatParams& repeatParams,
          sim::Location where = sim::Location::Here()) {
    using namespace sim::vec;
    static constexpr Entry entry{"Brcb", kHalf | kBf16 | kFloat | kI16 | kU16 | kI32 | kU32, kAllTypes};
    if constexpr (!Supports<T>(entry)) {
        FailType("Brcb", entry.Supported(), TypeOf<T>(), where);
    } else {
        sim::Core& core = sim::Core::Current();
        CheckRepeats(core, entry.name, repeatTime, where);
        const Stride stride{repeatParams.dstBlkStride, repeatParams.dstRepStride};
        CheckStride(core, entry.name, "dst", stride, 65535, 65535, where);
        const uint32_t perRepeat = kRepeatBytes / sizeof(T);
        const Lanes lanes = LanesOfCount(repeatTime * perRepeat, perRepeat);
        const TensorRef target = Ref(dst, "dst", stride);
        CheckDstBlocks(core, entry.name, lanes, target, where);
        sim::Instruction instruction{entry.name, sim::Pipe::V, entry.cost, lanes.repeats, where, {}, nullptr};
        if (core.OperandsNeeded() && repeatTime > 0) {
            const uint64_t srcBytes = uint64_t(repeatTime) * kBlocksPerRepeat * sizeof(T);
            const uint64_t read = (srcBytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
            AddLanesOperand(instruction, target, sim::Access::Write, lanes);
            AddOperand(instruction, Ref(src, "src0"), sim::Access::Read, {src.Address(), srcBytes});
            const uint64_t begin = dst.Address(), end = begin + (kBlocksPerRepeat - 1) * stride.block * kBlockBytes +
                                                       (repeatTime - 1) * stride.repeat * kBlockBytes + kBlockBytes;
            if (dst.Where() == src.Where() && begin < src.Address() + read && src.Address() < end)
                core.Fail(sim::Rule::Overlap, entry.name, "dst", "dst and src0 overlap", where);
        }
        core.Issue(instruction, [stride, repeatTime, out = dst.Host(), in = src.Host()] {
            for (int64_t r = 0; r < repeatTime; ++r)
                for (int64_t block = 0; block < kBlocksPerRepeat; ++block) {
                    T* to = Step(out, (r * stride.repeat + block * stride.block) * kBlockBytes);
                    const T value = in[r * kBlocksPerRepeat + block];
                    for (uint32_t i = 0; i < kBlockBytes / sizeof(T); ++i) to[i] = value;
                }
        });
    }
}

}  // namespace AscendC
