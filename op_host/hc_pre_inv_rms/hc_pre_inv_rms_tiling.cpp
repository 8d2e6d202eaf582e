#include "hc_pre_inv_rms_tiling.h"

#include <cinttypes>
#include <cmath>

namespace custom_ops {
namespace {

constexpr uint32_t kMaxOutRows = 256;   // 1 KiB of results per write: more would only take UB from x
constexpr uint32_t kMinWorkLanes = 4096;  // 64 repeats per instruction: the start-up of a fenced one (about 20 cycles) is below a third

// Elements a row occupies in UB: rows start on 32 B blocks.
uint64_t Pitch(uint64_t columns, uint32_t elementBytes) { return AlignUp(columns, kBlockBytes / elementBytes); }

// Rows finished together: a multiple of rowFactor, so that batches do not add DMA tiles.
uint64_t OutRows(uint64_t coreRows, uint64_t rowFactor) {
    return Min(coreRows, rowFactor * Max(1, kMaxOutRows / rowFactor));
}

// Fills in the UB bytes of a tile of `rows` x `columns`, with `lanes` float lanes of work space (membase).
void SetBytes(HcPreInvRmsTilingData& plan, const HcPreInvRmsShape& s, const ChipSpec& chip, uint64_t rows, uint64_t columns,
              uint64_t lanes) {
    const uint64_t outRows = AlignUp(OutRows(plan.rowsPerFormer, rows), 8);
    // membase: squares (4 B per lane); 16-bit x also its float32 copy (4 B). regbase keeps both in registers.
    const uint64_t workPerLane = chip.regbase ? 0 : s.elementBytes == 2 ? 8 : 4;
    // regbase loads whole registers: the last load of a row may start 4 B before its end and reads 64 elements.
    const uint64_t overrun = chip.regbase ? kFloatLanes * s.elementBytes : 0;
    plan.rowFactor = static_cast<uint32_t>(rows);
    plan.columnFactor = static_cast<uint32_t>(columns);
    plan.outRows = static_cast<uint32_t>(OutRows(plan.rowsPerFormer, rows));
    plan.xBytes = static_cast<uint32_t>(rows * Pitch(columns, s.elementBytes) * s.elementBytes + overrun);
    plan.workBytes = static_cast<uint32_t>(lanes * workPerLane);
    plan.sumBytes = static_cast<uint32_t>(2 * outRows * 4);  // sums; ones
    plan.outBytes = static_cast<uint32_t>(outRows * 4);
    plan.ubBytes = 2 * plan.xBytes + plan.workBytes + plan.sumBytes + 2 * plan.outBytes;
}

// Work lanes a tile needs at least: one row of it, or kMinWorkLanes of a long row.
uint64_t MinLanes(uint64_t columns, uint32_t elementBytes) { return Min(Pitch(columns, elementBytes), kMinWorkLanes); }

bool Fits(HcPreInvRmsTilingData& plan, const HcPreInvRmsShape& s, const ChipSpec& chip, uint64_t rows, uint64_t columns) {
    // Anything wider than UB cannot fit; said before the 32-bit fields could overflow.
    if (rows * Pitch(columns, s.elementBytes) * s.elementBytes > chip.ubBytes) return false;
    SetBytes(plan, s, chip, rows, columns, MinLanes(columns, s.elementBytes));
    return plan.ubBytes <= chip.ubBytes;
}

// Membase: gives the work space what is left of UB, up to the whole tile, and cuts the tile into vector passes.
void SplitWork(HcPreInvRmsTilingData& plan, const HcPreInvRmsShape& s, const ChipSpec& chip) {
    const uint64_t pitch = Pitch(plan.columnFactor, s.elementBytes), tile = plan.rowFactor * pitch;
    const uint64_t perLane = s.elementBytes == 2 ? 8 : 4;
    const uint64_t spare = (chip.ubBytes - plan.ubBytes + plan.workBytes) / perLane;
    const uint64_t lanes = Min(tile, AlignDown(spare, kFloatLanes));
    if (lanes >= pitch) {
        plan.workRows = static_cast<uint32_t>(lanes / pitch);
        plan.workColumns = static_cast<uint32_t>(pitch);
        SetBytes(plan, s, chip, plan.rowFactor, plan.columnFactor, plan.workRows * pitch);
    } else {
        const uint64_t passes = CeilDiv(pitch, lanes);
        plan.workRows = 1;
        plan.workColumns = static_cast<uint32_t>(AlignUp(CeilDiv(pitch, passes), kFloatLanes));
        SetBytes(plan, s, chip, plan.rowFactor, plan.columnFactor, plan.workColumns);
    }
}

}  // namespace

Result<HcPreInvRmsTilingData> TileHcPreInvRms(const HcPreInvRmsShape& s, const ChipSpec& chip) {
    if (s.tokens >> 31) return Error("hc_pre_inv_rms: x has %" PRIu64 " tokens, supported are up to 2147483647", s.tokens);
    if (s.rowElements == 0 || s.rowElements >> 40)
        return Error("hc_pre_inv_rms: the last two dimensions of x hold %" PRIu64 " elements, supported are 1 to 2^40 - 1",
                     s.rowElements);
    if (!(s.epsilon >= 0) || std::isinf(s.epsilon))
        return Error("hc_pre_inv_rms: epsilon must be a finite number >= 0, got %g", static_cast<double>(s.epsilon));

    HcPreInvRmsTilingData plan{};
    plan.rowElements = s.rowElements;
    plan.tokens = static_cast<uint32_t>(s.tokens);
    plan.epsilon = s.epsilon;
    plan.inverseCount = static_cast<float>(1.0 / static_cast<double>(s.rowElements));
    const RowSplit split = SplitRows(plan.tokens, chip.vectorCores);
    plan.usedCores = split.usedCores;
    plan.formerCores = split.formerCores;
    plan.rowsPerFormer = split.rowsPerFormer;
    plan.rowsPerTail = split.rowsPerTail;
    if (s.tokens == 0) return plan;

    // Whole rows, as many as fit; the tiles of a core are evened out.
    uint64_t rows = 0;
    const uint64_t mostRows = Min(Min(plan.rowsPerFormer, kMaxOutRows), kMaxDmaBlocks);
    if (s.rowElements <= chip.ubBytes)
        while (rows < mostRows && Fits(plan, s, chip, rows + 1, s.rowElements)) ++rows;
    uint64_t columns = s.rowElements;
    plan.columnLoop = 1;
    if (rows != 0) {
        rows = CeilDiv(plan.rowsPerFormer, CeilDiv(plan.rowsPerFormer, rows));
    } else {  // a row does not fit: pieces of it, equal up to 64 elements
        rows = 1;
        uint64_t loops = Max(2, CeilDiv(s.rowElements * s.elementBytes * 2, chip.ubBytes));
        do columns = AlignUp(CeilDiv(s.rowElements, loops++), kFloatLanes);
        while (columns > kFloatLanes && !Fits(plan, s, chip, 1, columns));
        plan.columnLoop = static_cast<uint32_t>(CeilDiv(s.rowElements, columns));
    }
    if (!Fits(plan, s, chip, rows, columns))
        return Error("hc_pre_inv_rms: %s has %" PRIu64 " B of UB, one tile of 64 elements needs %u B", chip.name, chip.ubBytes,
                     plan.ubBytes);
    if (!chip.regbase) SplitWork(plan, s, chip);
    return plan;
}

}  // namespace custom_ops
