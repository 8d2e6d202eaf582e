// What every tiling function of this project starts from: the chip, rounding, and the split of rows over cores.
#pragma once

#include <cstdint>

namespace custom_ops {

struct ChipSpec {
    const char* name;      // for messages
    uint32_t vectorCores;  // AIV
    uint64_t ubBytes;      // usable by TPipe
    bool regbase;          // true: MicroAPI registers (950); false: vector instructions on UB addresses (910B, 910_93)
    uint32_t cubeCores = 0;  // AIC, each with two of the vector cores
    uint64_t l1Bytes = 0, l0aBytes = 0, l0bBytes = 0, l0cBytes = 0;  // of a cube core
    uint64_t l2Bytes = 0;    // of the chip
};

constexpr uint32_t kBlockBytes = 32;    // UB block: unit of DMA destinations and vector operands
constexpr uint64_t kBlockFloats = kBlockBytes / 4;
constexpr uint32_t kFloatLanes = 64;    // float32 lanes of one 256 B repeat or register
constexpr uint32_t kMaxDmaBlocks = 4095;  // blockCount field of DataCopyPad

constexpr uint64_t CeilDiv(uint64_t value, uint64_t unit) { return value / unit + (value % unit != 0); }
constexpr uint64_t AlignUp(uint64_t value, uint64_t unit) { return CeilDiv(value, unit) * unit; }
constexpr uint64_t AlignDown(uint64_t value, uint64_t unit) { return value / unit * unit; }
constexpr uint64_t Min(uint64_t a, uint64_t b) { return a < b ? a : b; }
constexpr uint64_t Max(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Places one after the other, each as long as what lies there, rounded up to the unit.
struct Places {
    uint64_t unit;
    uint64_t end = 0;

    uint64_t operator()(uint64_t count) {
        const uint64_t at = end;
        end += AlignUp(count, unit);
        return at;
    }
};

// Rows over cores so that two cores differ by at most one row: the first `formerCores` cores take `rowsPerFormer`, the
// others `rowsPerTail`. No rows: one core with nothing to do.
struct RowSplit {
    uint32_t usedCores;
    uint32_t formerCores;
    uint32_t rowsPerFormer;
    uint32_t rowsPerTail;
};
inline RowSplit SplitRows(uint32_t rows, uint32_t cores) {
    if (rows == 0) return {1, 0, 0, 0};
    const uint32_t used = static_cast<uint32_t>(Min(rows, cores));
    const uint32_t tail = rows / used, former = rows % used;
    return {used, former, tail + (former != 0), tail};
}

}  // namespace custom_ops
