#include "hc_post_tiling.h"

#include <cinttypes>

namespace custom_ops {
namespace {

constexpr uint32_t kMaxStreams = 16;
constexpr uint32_t kMinColumnsPerCore = 512;     // below 1 KiB per stream and core a DMA is all latency
constexpr uint32_t kColumnSlice = 256;           // 512 B of 16-bit x: aligned GM addresses
constexpr uint64_t kMaxBatchWeights = 2048;      // 8 KiB of float32 weights; a batch of 16 tokens and more at n <= 8
constexpr uint64_t kFullDmaBytes = 16 << 10;     // what a DMA needs to run at full bandwidth
constexpr uint32_t kManyRows = 8;                // of a core: its first load and last store no longer matter
constexpr uint64_t kMinDmaBytes = 4 << 10;       // below this it is all latency

// Tokens and columns over cores. Groups of cores take the same number of tokens, up to one, and the cores of a group share the
// columns of theirs: with c cores to a group the busiest core has ceil(T / (cores / c)) * d / c elements of every stream. A larger c
// has to save a twentieth of that: rows get shorter, and each core of a group reads post and comb.
void SplitOverCores(HcPostTilingData& plan, const ChipSpec& chip) {
    uint64_t least = UINT64_MAX;
    for (uint32_t share = 1; share <= chip.vectorCores; ++share) {
        uint64_t columns = plan.hidden;
        if (share > 1) columns = AlignUp(Max(CeilDiv(plan.hidden, share), kMinColumnsPerCore), kColumnSlice);
        const uint32_t parts = static_cast<uint32_t>(CeilDiv(plan.hidden, columns));
        if (parts != share) continue;  // the last core would have no columns
        const RowSplit split = SplitRows(plan.tokens, chip.vectorCores / share);
        const uint64_t elements = split.rowsPerFormer * columns;
        if (least != UINT64_MAX && elements >= least - least / 20) continue;
        least = elements;
        plan.coresPerToken = share;
        plan.columnsPerCore = static_cast<uint32_t>(columns);
        plan.usedCores = split.usedCores * share;
        plan.formerCores = split.formerCores;
        plan.rowsPerFormer = split.rowsPerFormer;
        plan.rowsPerTail = split.rowsPerTail;
    }
}

// UB of the weights of a batch.
void SetBatch(HcPostTilingData& p, const HcPostShape& s, uint64_t rows) {
    const uint64_t n = p.hcMult, block = kBlockBytes / s.weightBytes;
    p.batchRows = static_cast<uint32_t>(rows);
    p.combOffset = static_cast<uint32_t>(AlignUp(rows * n, block));
    const uint64_t elements = p.combOffset + AlignUp(rows * n * n, block);
    p.weightBytes = static_cast<uint32_t>(elements * s.weightBytes);
    p.valueBytes = static_cast<uint32_t>(elements * 4);
}

// Sets the tile; true when everything fits.
bool SetTile(HcPostTilingData& p, const HcPostShape& s, const ChipSpec& chip, uint64_t rows, uint64_t columns) {
    const uint64_t pitch = AlignUp(columns, kBlockBytes / s.elementBytes), n = p.hcMult;
    if (rows * n * pitch * s.elementBytes > chip.ubBytes) return false;  // before a 32-bit field could overflow
    // regbase loads whole registers: the last load of a row may start on its last element.
    const uint64_t overrun = chip.regbase ? kFloatLanes * s.elementBytes : 0;
    const bool wide = !chip.regbase && s.elementBytes == 2;
    p.rowFactor = static_cast<uint32_t>(rows);
    p.dFactor = static_cast<uint32_t>(columns);
    p.residualOffset = static_cast<uint32_t>(rows * pitch);
    p.inBytes = static_cast<uint32_t>(rows * (1 + n) * pitch * s.elementBytes + overrun);
    p.outBytes = static_cast<uint32_t>(rows * n * pitch * s.elementBytes);
    p.sumBytes = static_cast<uint32_t>(wide ? rows * n * pitch * 4 : 0);
    p.wideBytes = static_cast<uint32_t>(wide ? rows * pitch * 4 : 0);
    p.ubBytes = 2 * p.weightBytes + p.valueBytes + 2 * p.inBytes + 2 * p.outBytes + p.sumBytes + 2 * p.wideBytes;
    return p.ubBytes <= chip.ubBytes;
}

// Cuts a core's share into tiles: whole rows if one fits, else equal pieces of one. Tiles larger than a full DMA only make the
// first load and the last store longer, which nothing overlaps; a share of one tile is cut in two for the same reason.
bool SplitIntoTiles(HcPostTilingData& p, const HcPostShape& s, const ChipSpec& chip) {
    const uint64_t rowBytes = p.columnsPerCore * static_cast<uint64_t>(p.hcMult) * s.elementBytes;
    const uint64_t shareBytes = p.rowsPerFormer * rowBytes;
    const uint64_t wanted = Max(kMinDmaBytes, Min(kFullDmaBytes, shareBytes / 2));

    const bool manyRows = p.rowsPerFormer >= kManyRows && rowBytes <= 2 * kFullDmaBytes;
    if (rowBytes <= wanted || manyRows) {
        uint64_t rows = Min(CeilDiv(wanted, rowBytes), Min(p.batchRows, kMaxDmaBlocks / p.hcMult));
        while (rows > 1 && !SetTile(p, s, chip, rows, p.columnsPerCore)) --rows;
        rows = CeilDiv(p.batchRows, CeilDiv(p.batchRows, rows));  // evened out
        p.dLoop = 1;
        if (SetTile(p, s, chip, rows, p.columnsPerCore)) return true;
    }
    uint64_t loops = Max(1, CeilDiv(rowBytes, wanted)), columns = p.columnsPerCore;
    do {
        columns = loops == 1 ? p.columnsPerCore : AlignUp(CeilDiv(p.columnsPerCore, loops), kFloatLanes);
        p.dLoop = static_cast<uint32_t>(CeilDiv(p.columnsPerCore, columns));
        if (SetTile(p, s, chip, 1, columns)) return true;
        ++loops;
    } while (columns > kFloatLanes);
    return false;
}

}  // namespace

Result<HcPostTilingData> TileHcPost(const HcPostShape& s, const ChipSpec& chip) {
    if (s.hcMult < 1 || s.hcMult > kMaxStreams)
        return Error("hc_post: residual has %" PRId64 " streams (dimension -2), supported are 1 to %u", s.hcMult, kMaxStreams);
    if (s.tokens >> 31) return Error("hc_post: residual has %" PRIu64 " tokens, supported are up to 2147483647", s.tokens);
    if (s.hidden == 0 || s.hidden >> 29)  // the stride of a DMA is 32 bits of bytes
        return Error("hc_post: residual has d = %" PRIu64 " (last dimension), supported are 1 to 536870911", s.hidden);

    HcPostTilingData plan{};
    plan.tokens = static_cast<uint32_t>(s.tokens);
    plan.hcMult = static_cast<uint32_t>(s.hcMult);
    plan.hidden = static_cast<uint32_t>(s.hidden);
    SplitOverCores(plan, chip);
    if (s.tokens == 0) return plan;

    const uint64_t perToken = plan.hcMult * (1 + plan.hcMult);
    const uint64_t batches = CeilDiv(plan.rowsPerFormer, Max(1, kMaxBatchWeights / perToken));
    SetBatch(plan, s, CeilDiv(plan.rowsPerFormer, batches));
    if (!SplitIntoTiles(plan, s, chip))
        return Error("hc_post: %s has %" PRIu64 " B of UB, one tile of 64 columns needs %u B", chip.name, chip.ubBytes,
                     plan.ubBytes);
    return plan;
}

}  // namespace custom_ops
