// GatherMask: packs the elements a bit pattern keeps.
#pragma once

#include "ascendc/vec_engine.h"

namespace sim::vec {

using AscendC::GatherMaskParams;

// Lanes kept by the built-in patterns 1 to 7, as bits of four consecutive lanes: every second lane (1, 2), every fourth
// (3 to 6), all (7).
inline constexpr uint8_t kGatherPatterns[8] = {0, 0b0101, 0b1010, 0b0001, 0b0010, 0b0100, 0b1000, 0b1111};

struct GatherMaskCall {
    Stride stride;                 // of src0
    int64_t maskStride = 0;        // of the user's bits, blocks per repeat
    uint32_t repeats = 0, lanes = 0, size = 0;
    uint8_t pattern = 0;           // 0: the user's bits
    const uint8_t* bits = nullptr;
    const uint8_t* src = nullptr;
    uint8_t* dst = nullptr;

    bool Keeps(uint32_t repeat, uint32_t lane) const {
        if (pattern != 0) return kGatherPatterns[pattern] >> (lane % 4) & 1;
        return bits[repeat * maskStride * kBlockBytes + lane / 8] >> (lane % 8) & 1;
    }
    uint64_t Kept() const {
        uint64_t kept = 0;
        for (uint32_t r = 0; r < repeats; ++r)
            for (uint32_t lane = 0; lane < lanes; ++lane) kept += Keeps(r, lane);
        return kept;
    }
    void Run() const {
        uint8_t* to = dst;
        for (uint32_t r = 0; r < repeats; ++r)
            for (uint32_t lane = 0; lane < lanes; ++lane)
                if (Keeps(r, lane)) {
                    std::memmove(to, src + r * stride.repeat * kBlockBytes + LaneOffset(lane, size, stride.block), size);
                    to += size;
                }
    }
};

// `bits`: the user's pattern, or no name. Returns the number of elements kept: the scalar unit waits for it.
__attribute__((noinline)) inline uint64_t IssueGatherMask(GatherMaskCall& call, const TensorRef& dst, const TensorRef& src,
                                                          const TensorRef& bits, bool counter, uint32_t mask,
                                                          const GatherMaskParams& p, Location where) {
    Core& core = Core::Current();
    const char* name = "GatherMask";
    const bool user = bits.name != nullptr;
    CheckField(core, Rule::RepeatLimit, name, "", "repeatTimes", p.repeatTimes, 65535, where);
    CheckField(core, Rule::StrideLimit, name, "src0", "block stride", p.src0BlockStride, 255, where);
    CheckField(core, Rule::StrideLimit, name, "src0", "repeat stride", p.src0RepeatStride, 65535, where);
    CheckField(core, Rule::StrideLimit, name, "src1Pattern", "repeat stride", p.src1RepeatStride, 255, where);
    if (!user && (call.pattern < 1 || call.pattern > 7))
        core.Fail(Rule::Argument, name, "src1Pattern", Text("pattern is %u, the built-in ones are 1 to 7", call.pattern), where);
    if (counter && mask == 0) core.Fail(Rule::MaskLimit, name, "mask", "mask is 0 in counter mode", where);
    const Stride stride{p.src0BlockStride, p.src0RepeatStride};
    call.stride = stride;
    call.maskStride = p.src1RepeatStride;
    call.repeats = uint32_t(p.repeatTimes);
    call.size = src.size;
    call.lanes = counter ? mask : kRepeatBytes / src.size;
    call.dst = core.Local(dst.memory, dst.address);
    call.src = core.Local(src.memory, src.address);
    if (user) call.bits = core.Local(bits.memory, bits.address);
    core.mask = {};  // the call leaves normal mode
    // The user's bits are data: the count is known once everything ordered before this instruction has run.
    if (user) core.FlushBefore(Pipe::V);

    const uint64_t repeats = uint64_t(call.repeats) * ((uint64_t(call.lanes) * call.size + kRepeatBytes - 1) / kRepeatBytes);
    Instruction instruction{name, Pipe::V, Cost::VectorSimple, 2 * repeats, where, {}, nullptr};  // half the rate of Add
    const bool empty = call.repeats == 0;
    if (core.OperandsNeeded() && !empty && user) {
        const int64_t maskBytes = call.maskStride * kBlockBytes;
        AddOperand(instruction, bits, Access::Read,
                   {bits.address, (call.lanes + 7) / 8, 1, maskBytes ? call.repeats : 1, 0, maskBytes});
    }
    const uint64_t kept = empty ? 0 : call.Kept();
    if (core.OperandsNeeded() && !empty) {
        RegionList(AddOperand(instruction, dst, Access::Write)).Add({dst.address, kept * call.size});
        RegionList(AddOperand(instruction, src, Access::Read))
            .AddLanes(src.address, 0, call.lanes, call.repeats, call.size, stride);
        if (kept == 0) instruction.operands.erase(instruction.operands.end() - 2);
        const uint64_t end = src.address + (call.repeats - 1) * stride.repeat * kBlockBytes +
                             LaneOffset(call.lanes - 1, call.size, stride.block) + call.size;
        if (dst.memory == src.memory && dst.address != src.address && dst.address < end &&
            src.address < dst.address + kept * call.size)
            core.Fail(Rule::Overlap, name, "dst", "dst and src0 partly overlap", where);
    }
    core.Issue(instruction, [call] { call.Run(); });
    return kept;
}

}  // namespace sim::vec

namespace AscendC {

template <typename T>
void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, uint8_t src1Pattern, bool reduceMode, uint32_t mask,
                const GatherMaskParams& gatherMaskParams, uint64_t& rsvdCnt, sim::Location where = sim::Location::Here()) {
    using namespace sim::vec;
    constexpr Types kTypes = kHalf | kBf16 | kFloat | kI16 | kU16 | kI32 | kU32;
    if constexpr ((kTypes & TypeOf<T>()) == 0) FailType("GatherMask", kTypes, TypeOf<T>(), where);
    GatherMaskCall call;
    call.pattern = src1Pattern;
    rsvdCnt = IssueGatherMask(call, Ref(dst, "dst"), Ref(src0, "src0"), TensorRef{}, reduceMode, mask, gatherMaskParams, where);
}
// One bit per lane of src0, in uint16_t for 16-bit and uint32_t for 32-bit elements.
template <typename T, typename U>
void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<U>& src1Pattern, bool reduceMode,
                uint32_t mask, const GatherMaskParams& gatherMaskParams, uint64_t& rsvdCnt,
                sim::Location where = sim::Location::Here()) {
    using namespace sim::vec;
    constexpr Types kTypes = kHalf | kBf16 | kFloat | kI16 | kU16 | kI32 | kU32;
    static_assert(std::is_unsigned_v<U> && sizeof(U) == sizeof(T), "the pattern is uint16_t or uint32_t, as wide as T");
    if constexpr ((kTypes & TypeOf<T>()) == 0) FailType("GatherMask", kTypes, TypeOf<T>(), where);
    GatherMaskCall call;
    rsvdCnt = IssueGatherMask(call, Ref(dst, "dst"), Ref(src0, "src0"), Ref(src1Pattern, "src1Pattern"), reduceMode, mask,
                              gatherMaskParams, where);
}

}  // namespace AscendC
