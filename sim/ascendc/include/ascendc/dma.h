// One transfer of blocks between GM and UB, or inside UB: its operands, its padding, its atomic modes.
#pragma once

#include <cstring>

#include "ascendc/framework_state.h"
#include "ascendc/global_tensor.h"
#include "ascendc/local_tensor.h"

namespace sim::dma {

using AscendC::ONE_BLK_SIZE;

// One end of a transfer.
struct End {
    const char* name;
    Memory memory;
    uint16_t alignment;
    uint64_t address, low, high;
    uint8_t* host;
};
template <typename T>
End EndOf(const AscendC::LocalTensor<T>& tensor, const char* name) {
    const Memory memory = tensor.Where();   // BT and FB have entries of 64 bytes (facts 1.2)
    const bool table = memory == Memory::BT || memory == Memory::FB;
    return {name, memory, uint16_t(table ? 2 * ONE_BLK_SIZE : ONE_BLK_SIZE), tensor.Address(), tensor.Low(), tensor.End(),
            reinterpret_cast<uint8_t*>(tensor.Host())};
}
template <typename T>
End EndOf(const AscendC::GlobalTensor<T>& tensor, const char* name) {
    return {name, Memory::GM, sizeof(T), tensor.Address(), tensor.Low(), tensor.End(),
            reinterpret_cast<uint8_t*>(tensor.Host())};
}

// What surrounds the data of a block in UB, up to the next 32-byte boundary.
enum class Fill : uint8_t {
    Value,     // the padding value
    First,     // the block's first element
    Undefined  // the device leaves it open: poisoned (all ones, a NaN in every float type) and marked as never written
};

struct Blocks {
    int64_t count = 1, bytes = 0;
    int64_t srcPitch = 0, dstPitch = 0;  // start to start
    int64_t left = 0, right = 0;         // padding bytes before and after the data, destination in UB only
    bool packed = false;                 // Compact: blocks side by side in UB, padding only around all of them
    Fill fill = Fill::Undefined;
    uint8_t value[8] = {};               // padding value, elementBytes of it
    uint8_t elementBytes = 1;
    AscendC::LoopModeParams loops;       // 950: the whole repeated in two outer loops

    int64_t Padded(int64_t data) const { return int64_t(AlignUp(uint64_t(left + data + right), ONE_BLK_SIZE)); }
    // visit(src offset, dst offset) of every repetition.
    template <typename Visit>
    void ForEachLoop(Visit&& visit) const {
        for (int64_t j = 0; j < loops.loop2Size; ++j)
            for (int64_t i = 0; i < loops.loop1Size; ++i)
                visit(j * loops.loop2SrcStride + i * loops.loop1SrcStride, j * loops.loop2DstStride + i * loops.loop1DstStride);
    }
};

// dst[i] = dst[i] op src[i]; mode as in Core::atomicMode. Cores run on host threads, so each element is exchanged when no other
// core has changed it meanwhile; a lock would stay taken when a copy faults.
template <typename T>
void Accumulate(int mode, uint8_t* dst, const uint8_t* src, int64_t bytes) {
    using Wide = std::conditional_t<std::is_same_v<T, bfloat16_t> || std::is_same_v<T, half>, float,
                                    std::conditional_t<std::is_integral_v<T>, int64_t, T>>;
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>;
    typedef Bits __attribute__((may_alias)) Cell;
    const auto combined = [mode](Bits old, Bits now) {
        const Wide a = static_cast<Wide>(__builtin_bit_cast(T, old)), b = static_cast<Wide>(__builtin_bit_cast(T, now));
        return __builtin_bit_cast(Bits, static_cast<T>(mode == 1 ? a + b : mode == 2 ? (a < b ? b : a) : (b < a ? b : a)));
    };
    for (int64_t at = 0; at + int64_t(sizeof(T)) <= bytes; at += sizeof(T)) {
        Cell* cell = reinterpret_cast<Cell*>(dst + at);
        Bits now, old = __atomic_load_n(cell, __ATOMIC_RELAXED);
        std::memcpy(&now, src + at, sizeof now);
        while (!__atomic_compare_exchange_n(cell, &old, combined(old, now), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    }
}
inline void AtomicCopy(int mode, int type, uint8_t* dst, const uint8_t* src, int64_t bytes) {
    switch (type) {
        case DT_FLOAT: Accumulate<float>(mode, dst, src, bytes); break;
        case DT_FLOAT16: Accumulate<half>(mode, dst, src, bytes); break;
        case DT_BF16: Accumulate<bfloat16_t>(mode, dst, src, bytes); break;
        case DT_INT32: Accumulate<int32_t>(mode, dst, src, bytes); break;
        case DT_INT16: Accumulate<int16_t>(mode, dst, src, bytes); break;
        default: Accumulate<int8_t>(mode, dst, src, bytes); break;
    }
}

inline void FillBytes(const Blocks& blocks, uint8_t* begin, int64_t bytes, const uint8_t* first) {
    if (blocks.fill == Fill::Undefined) {
        std::memset(begin, 0xff, size_t(bytes));
        return;
    }
    const uint8_t* element = blocks.fill == Fill::Value ? blocks.value : first;
    for (int64_t i = 0; i < bytes; ++i) begin[i] = element[i % blocks.elementBytes];
}

inline void CopyBlocks(const Blocks& blocks, bool padded, uint8_t* dst, const uint8_t* src, int atomicMode, int atomicType) {
    for (int64_t i = 0; i < blocks.count; ++i) {
        const uint8_t* from = src + i * blocks.srcPitch;
        uint8_t* to = dst + i * blocks.dstPitch;
        if (atomicMode != 0) {
            AtomicCopy(atomicMode, atomicType, to, from, blocks.bytes);
            continue;
        }
        std::memcpy(to + blocks.left, from, size_t(blocks.bytes));
        if (!padded || blocks.packed) continue;
        const int64_t end = blocks.left + blocks.bytes;
        FillBytes(blocks, to, blocks.left, from);
        FillBytes(blocks, to + end, blocks.Padded(blocks.bytes) - end, from);
    }
    if (padded && blocks.packed) {
        const int64_t data = blocks.count * blocks.bytes, end = blocks.left + data;
        FillBytes(blocks, dst, blocks.left, src);
        FillBytes(blocks, dst + end, blocks.Padded(data) - end, src);
    }
}

// The bytes of one end: `run` bytes per block.
inline Operand OperandOf(const End& end, Access access, const Blocks& blocks, int64_t run, int64_t count, int64_t pitch,
                         int64_t loop1Stride, int64_t loop2Stride) {
    Region region{end.address, uint64_t(run), uint32_t(count), uint32_t(blocks.loops.loop1Size), pitch, loop1Stride};
    Operand operand{end.name, access, end.memory, end.alignment, end.low, end.high, region, {}};
    for (int64_t j = 1; j < blocks.loops.loop2Size; ++j) {
        region.start = end.address + uint64_t(j * loop2Stride);
        operand.more.push_back(region);
    }
    return operand;
}

inline void TellDataCache(Core& core, const char* api, const Operand& gm, Location where) {
    if (!core.framework) return;
    DataCache& cache = FrameworkState::Current().cache;
    cache.Copy(core, api, gm.name, gm.access, gm.region, where);
    for (const Region& region : gm.more) cache.Copy(core, api, gm.name, gm.access, region, where);
}

struct Path { Pipe pipe; Cost cost; };
// The ways between memories (facts 1.4, 5.1): a vector core has GM <-> UB, a cube core GM -> L1 -> BT and FB, and on 2201 L1 -> GM.
inline Path PathOf(const char* api, const End& dst, const End& src, Location where) {
    if (src.memory == Memory::GM && (dst.memory == Memory::UB || dst.memory == Memory::L1)) return {Pipe::MTE2, Cost::GmToLocal};
    if (dst.memory == Memory::GM && src.memory == Memory::UB) return {Pipe::MTE3, Cost::LocalToGm};
#if __NPU_ARCH__ != 3510
    if (dst.memory == Memory::GM && src.memory == Memory::L1) return {Pipe::MTE3, Cost::LocalToGm};
#endif
    if (src.memory == Memory::UB && dst.memory == Memory::UB) return {Pipe::V, Cost::UbCopy};
    if (src.memory == Memory::L1 && dst.memory == Memory::BT) return {Pipe::MTE1, Cost::L1ToTable};
    if (src.memory == Memory::L1 && dst.memory == Memory::FB) return {Pipe::FIX, Cost::L1ToTable};
    Core::Current().Fail(Rule::PipeLegality, api, dst.name, std::string("no copy goes from ") + MemoryName(src.memory) + " to " +
                         MemoryName(dst.memory), where);
}

__attribute__((noinline)) inline void Issue(const char* api, const End& dst, const End& src, const Blocks& blocks,
                                            Location where) {
    Core& core = Core::Current();
    const bool in = src.memory == Memory::GM, out = dst.memory == Memory::GM;
    const Path path = PathOf(api, dst, src, where);
    const int64_t total = blocks.count * blocks.bytes * blocks.loops.loop1Size * blocks.loops.loop2Size;
    Instruction instruction{api, path.pipe, path.cost, uint64_t(total), where, {}};
    const int atomicMode = out ? core.atomicMode : 0;
    if (core.OperandsNeeded()) {
        const AscendC::LoopModeParams& loops = blocks.loops;
        const bool srcPacked = blocks.packed && out, dstPacked = blocks.packed && in;
        const int64_t all = blocks.count * blocks.bytes;
        const int64_t written = dstPacked ? blocks.Padded(all) : in ? blocks.Padded(blocks.bytes) : blocks.bytes;
        instruction.operands.reserve(2);
        instruction.operands.push_back(OperandOf(dst, Access::Write, blocks, written,
                                                 dstPacked ? 1 : blocks.count, blocks.dstPitch, loops.loop1DstStride,
                                                 loops.loop2DstStride));
        instruction.operands.push_back(OperandOf(src, Access::Read, blocks, srcPacked ? all : blocks.bytes,
                                                 srcPacked ? 1 : blocks.count, blocks.srcPitch, loops.loop1SrcStride,
                                                 loops.loop2SrcStride));
        if (in || out) TellDataCache(core, api, instruction.operands[out ? 0 : 1], where);
    } else if (in) {   // which bytes of GM move is part of the time
        instruction.operands.push_back(OperandOf(src, Access::Read, blocks, blocks.bytes, blocks.count, blocks.srcPitch,
                                                 blocks.loops.loop1SrcStride, blocks.loops.loop2SrcStride));
    } else if (out) {
        instruction.operands.push_back(OperandOf(dst, Access::Write, blocks, blocks.bytes, blocks.count, blocks.dstPitch,
                                                 blocks.loops.loop1DstStride, blocks.loops.loop2DstStride));
    }
    const int atomicType = core.atomicType;
    uint8_t* to = dst.host;
    const uint8_t* from = src.host;
    core.Issue(instruction, [=] {
        blocks.ForEachLoop([&](int64_t srcOffset, int64_t dstOffset) {
            CopyBlocks(blocks, in, to + dstOffset, from + srcOffset, atomicMode, atomicType);
        });
    });
    if (!in || blocks.fill != Fill::Undefined || !core.OperandsNeeded()) return;
    const int64_t data = blocks.packed ? blocks.count * blocks.bytes : blocks.bytes, end = blocks.left + data;
    if (blocks.Padded(data) == end) return;
    blocks.ForEachLoop([&](int64_t, int64_t dstOffset) {
        for (int64_t i = 0; i < (blocks.packed ? 1 : blocks.count); ++i)
            core.MarkUnwritten(dst.memory, dst.address + uint64_t(dstOffset + i * blocks.dstPitch + end),
                               uint64_t(blocks.Padded(data) - end));
    });
}

// A field of a parameter struct that its width on the device cannot hold, or that the instruction does not take.
inline void CheckField(const char* api, Rule rule, const char* field, int64_t value, int64_t low, int64_t high, const char* unit,
                       Location where) {
    if (value >= low && value <= high) return;
    Core::Current().Fail(rule, api, field, std::string(field) + " is " + std::to_string(value) + unit + ", it must be " +
                         std::to_string(low) + " to " + std::to_string(high), where);
}

}  // namespace sim::dma
