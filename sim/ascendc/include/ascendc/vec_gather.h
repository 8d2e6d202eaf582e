// Gather, Gatherb: elements and blocks at byte offsets held in a tensor. Transpose of a 16 x 16 matrix.
#pragma once

#include "ascendc/vec_engine.h"

namespace sim::vec {

using AscendC::GatherRepeatParams;

// The offsets decide which bytes are read, so the core looks at them when the instruction is issued, after everything that
// is ordered before it on V.
struct GatherOffsets {
    const uint32_t* offsets;
    uint64_t base;      // byte address offset 0 refers to
    uint32_t unit;      // bytes gathered per offset
    uint32_t alignment; // of an offset
};
__attribute__((noinline)) inline void AddGatherOperand(Core& core, Instruction& instruction, const GatherOffsets& g,
                                                       const TensorRef& src, const Lanes& lanes, Location where) {
    Operand& operand = AddOperand(instruction, src, Access::Read);
    operand.alignment = uint16_t(g.alignment < kBlockBytes ? g.alignment : kBlockBytes);
    RegionList regions(operand);
    Region run;
    for (uint32_t r = 0; r < lanes.repeats; ++r)
        for (uint32_t lane = 0; lane < lanes.Reach(r); ++lane) {
            if (lanes.irregular && !lanes.Has(lane)) continue;
            const uint32_t offset = g.offsets[r * lanes.perRepeat + lane];
            if (offset % g.alignment != 0)
                core.Fail(Rule::Argument, instruction.name, "srcOffset",
                          Text("offset %u of element %u is not a multiple of %u: offsets count bytes", offset,
                               r * lanes.perRepeat + lane, g.alignment),
                          where);
            if (run.run != 0 && run.start + run.run == g.base + offset) {
                run.run += g.unit;
            } else {
                regions.Add(run);
                run = {g.base + offset, g.unit};
            }
        }
    regions.Add(run);
}

// What a gather does; the bytes beyond the local memory (checks off, offsets wrong) are left alone.
struct GatherCall {
    Lanes lanes;
    Stride stride;  // of dst
    uint8_t* dst = nullptr;
    const uint8_t* src = nullptr;  // where offset 0 refers to
    const uint32_t* offsets = nullptr;
    uint64_t limit = 0;            // bytes from src to the end of the memory
    template <uint32_t kUnit>
    void Run() const {
        for (uint32_t r = 0; r < lanes.repeats; ++r)
            for (uint32_t lane = 0; lane < lanes.Reach(r); ++lane) {
                if (lanes.irregular && !lanes.Has(lane)) continue;
                const uint64_t offset = offsets[r * lanes.perRepeat + lane];
                if (offset + kUnit > limit) continue;
                std::memcpy(dst + r * stride.repeat * kBlockBytes + LaneOffset(lane, kUnit, stride.block), src + offset, kUnit);
            }
    }
};

inline uint64_t BytesBehind(const Core& core, Memory memory, uint64_t address) {
    return address < core.LocalBytes(memory) ? core.LocalBytes(memory) - address : 0;
}

// All offsets lie in their buffer and were written.
inline bool Readable(const Core& core, const TensorRef& offsets, const Lanes& lanes) {
    const uint64_t bytes = uint64_t((lanes.repeats - 1) * offsets.RepeatBytes() + offsets.SpanOf(lanes, lanes.repeats - 1));
    if (offsets.address + bytes > offsets.end || bytes > BytesBehind(core, offsets.memory, offsets.address)) return false;
    std::vector<uint64_t> unwritten((bytes + 63) / 64);
    return lanes.irregular || !core.Unwritten(offsets.memory, offsets.address, bytes, unwritten.data());
}

template <uint32_t kUnit>
void IssueGather(const char* name, Cost cost, uint64_t work, const Lanes& lanes, Stride stride, const TensorRef& dst,
                 const TensorRef& src, const TensorRef& offsets, uint64_t srcBase, uint32_t alignment, Location where) {
    Core& core = Core::Current();
    Instruction instruction{name, Pipe::V, cost, work, where, {}, nullptr};
    GatherCall call{lanes, stride, core.Local(dst.memory, dst.address), core.Local(src.memory, src.address) + srcBase,
                    reinterpret_cast<const uint32_t*>(core.Local(offsets.memory, offsets.address)),
                    BytesBehind(core, src.memory, src.address + srcBase)};
    if (core.OperandsNeeded() && lanes.repeats != 0) {
        core.FlushBefore(Pipe::V);
        TensorRef target = dst;
        target.stride = stride;
        AddLanesOperand(instruction, target, Access::Write, lanes);
        Lanes contiguous = lanes;  // offsets are not strided
        contiguous.contiguous = !lanes.irregular && lanes.active == lanes.perRepeat;
        TensorRef indices = offsets;
        indices.stride = {1, int64_t(lanes.perRepeat * 4 / kBlockBytes)};
        AddLanesOperand(instruction, indices, Access::Read, contiguous);
        CheckOverlap(core, name, lanes, target, indices, where);
        if (Readable(core, indices, lanes)) {   // else the core reports the offsets, and src is unknown
            AddGatherOperand(core, instruction, {call.offsets, src.address + srcBase, kUnit, alignment}, src, lanes, where);
            CheckDisjoint(core, name, instruction.operands[0], instruction.operands[2], where);
        }
    }
    core.Issue(instruction, [call] { call.template Run<kUnit>(); });
}

}  // namespace sim::vec

namespace AscendC {
namespace detail {

template <typename T>
void GatherLanes(const sim::vec::Form& form, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                 const LocalTensor<uint32_t>& srcOffset, uint32_t srcBaseAddr, int64_t dstRepStride, sim::Location where) {
    using namespace sim::vec;
    static constexpr Entry entry{"Gather", kHalf | kBf16 | kFloat | kI16 | kU16 | kI32 | kU32, kI8 | kU8 | kI64 | kU64};
    if constexpr (!Supports<T>(entry)) {
        FailType("Gather", entry.Supported(), TypeOf<T>(), where);
    } else {
        sim::Core& core = sim::Core::Current();
        const Lanes lanes = Resolve(core, "Gather", form, kRepeatBytes / sizeof(T), where);
        CheckField(core, sim::Rule::StrideLimit, "Gather", "dst", "repeat stride", dstRepStride, 65535, where);
        if (srcBaseAddr > src.GetLength())
            core.Fail(sim::Rule::OutOfRange, "Gather", "srcBaseAddr",
                      Text("srcBaseAddr is %u, src has %u bytes", srcBaseAddr, src.GetLength()), where);
        IssueGather<sizeof(T)>("Gather", sim::Cost::VectorGather, lanes.Total(), lanes,
                               {1, lanes.contiguous ? kBlocksPerRepeat : dstRepStride}, Ref(dst, "dst"), Ref(src, "src"),
                               Ref(srcOffset, "srcOffset"), srcBaseAddr, sizeof(T), where);
    }
}

}  // namespace detail

template <typename T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
            uint32_t srcBaseAddr, int64_t count, sim::Location where = sim::Location::Here()) {
    detail::GatherLanes(sim::vec::CountForm(count), dst, src, srcOffset, srcBaseAddr, 8, where);
}
template <typename T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
            uint32_t srcBaseAddr, uint64_t mask, int64_t repeatTime, int64_t dstRepStride,
            sim::Location where = sim::Location::Here()) {
    detail::GatherLanes(sim::vec::MaskForm(mask, repeatTime, true), dst, src, srcOffset, srcBaseAddr, dstRepStride, where);
}
template <typename T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
            uint32_t srcBaseAddr, uint64_t mask[], int64_t repeatTime, int64_t dstRepStride,
            sim::Location where = sim::Location::Here()) {
    detail::GatherLanes(sim::vec::BitsForm(mask, repeatTime, true), dst, src, srcOffset, srcBaseAddr, dstRepStride, where);
}

// Eight blocks of 32 bytes per repeat, each at its own byte offset.
template <typename T>
void Gatherb(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<uint32_t>& offset, int64_t repeatTime,
             const GatherRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    using namespace sim::vec;
    static constexpr Entry entry{"Gatherb", kU16 | kU32, kAllTypes};
    if constexpr (!Supports<T>(entry)) {
        FailType("Gatherb", entry.Supported(), TypeOf<T>(), where);
    } else {
        sim::Core& core = sim::Core::Current();
        CheckRepeats(core, "Gatherb", repeatTime, where);
        CheckStride(core, "Gatherb", "dst", {repeatParams.dstBlkStride, repeatParams.dstRepStride}, 255, 255, where);
        const Lanes lanes = LanesOfCount(repeatTime * kBlocksPerRepeat, kBlocksPerRepeat);  // a lane is a block
        TensorRef dstBlocks = Ref(dst, "dst"), srcBlocks = Ref(src0, "src0");
        dstBlocks.size = srcBlocks.size = kBlockBytes;
        IssueGather<kBlockBytes>("Gatherb", sim::Cost::VectorGatherBlock, uint64_t(repeatTime) * kRepeatBytes / sizeof(T),
                                 lanes, {repeatParams.dstBlkStride, repeatParams.dstRepStride}, dstBlocks, srcBlocks,
                                 Ref(offset, "offset"), 0, kBlockBytes, where);
    }
}

// dst[i][j] = src[j][i] of a 16 x 16 matrix of 16-bit elements.
template <typename T>
void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, sim::Location where = sim::Location::Here()) {
    using namespace sim::vec;
    static constexpr Entry entry{"Transpose", kHalf | kI16 | kU16, 0};
    if constexpr (!Supports<T>(entry)) {
        FailType("Transpose", entry.Supported(), TypeOf<T>(), where);
    } else {
        constexpr uint32_t kSide = 16, kBytes = kSide * kSide * sizeof(T);
        sim::Core& core = sim::Core::Current();
        sim::Instruction instruction{"Transpose", sim::Pipe::V, sim::Cost::VectorSimple, kBytes / kRepeatBytes, where, {}, nullptr};
        if (core.OperandsNeeded()) {
            AddOperand(instruction, Ref(dst, "dst"), sim::Access::Write, {dst.Address(), kBytes});
            AddOperand(instruction, Ref(src, "src"), sim::Access::Read, {src.Address(), kBytes});
            const uint64_t apart = dst.Address() > src.Address() ? dst.Address() - src.Address() : src.Address() - dst.Address();
            if (apart != 0 && apart < kBytes)
                core.Fail(sim::Rule::Overlap, "Transpose", "dst", "dst and src partly overlap", where);
        }
        core.Issue(instruction, [to = dst.Host(), from = src.Host()] {
            T matrix[kSide][kSide];
            std::memcpy(matrix, from, kBytes);
            for (uint32_t i = 0; i < kSide; ++i)
                for (uint32_t j = 0; j < kSide; ++j) to[i * kSide + j] = matrix[j][i];
        });
    }
}

}  // namespace AscendC
