#include "sinkhorn_rows_tiling.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "result.h"

namespace custom_ops {
namespace {

constexpr uint32_t kMaxStreams = 16;
constexpr uint32_t kMinColumnsPerCore = 512;   // below 1 KiB per stream and core a DMA is all latency
constexpr uint32_t kColumnSlice = 256;         // 512 B of 16-bit x: aligned GM addresses

// Cycles, from modelled times.
constexpr double kRoundStart = 170, kRound = 4, kRoundRegbase = 7;  // of a Sinkhorn round; for each of the n * n planes
constexpr double kTileStart = 300;
constexpr double kClearlyLess = 0.6;

uint64_t Float8(uint64_t count) { return AlignUp(count, 8); }  // floats padded to a block

// Tokens per block in an output of `lanes` floats per token: 2 for post at n = 4. 1: every token starts on its own block.
uint64_t TokensPerBlock(uint64_t lanes) { return 8 % lanes == 0 ? 8 / lanes : 1; }
uint64_t OutFloats(uint64_t lanes) { return 8 % lanes == 0 ? lanes : Float8(lanes); }

uint32_t ChunkTokens(uint64_t rows, uint64_t n, const ChipSpec& chip) {
    if (chip.regbase) return kFloatLanes;
    // The instructions that interleave planes into rows take 8 blocks, of TokensPerBlock tokens each.
    return static_cast<uint32_t>(AlignUp(CeilDiv(rows, CeilDiv(rows, kFloatLanes)), 8 * TokensPerBlock(n)));
}

// Tokens that the planes of a batch have room for.
uint64_t Slots(const SinkhornRowsPlan& p) { return AlignUp(p.batchRows, p.chunkTokens); }

// UB of a batch on membase.
void SetBatchMembase(SinkhornRowsPlan& p) {
    const uint64_t n = p.hcMult, mix = (2 + n) * n, slots = Slots(p);
    p.rsqrtOffset = static_cast<uint32_t>(Max(slots, p.batchRows * static_cast<uint64_t>(p.mixParts)) * p.mixPitch * 4);
    p.mixBytes = static_cast<uint32_t>(p.rsqrtOffset + (slots + p.mixScales) * 4);
    p.postBytes = static_cast<uint32_t>(slots * OutFloats(n) * 4);
    p.combBytes = static_cast<uint32_t>(slots * OutFloats(n * n) * 4);
    p.preBytes = static_cast<uint32_t>(slots * n * kBlockBytes);
    // base, scale; base and scale with a block per value; one block of ones
    p.constantBytes = static_cast<uint32_t>((Float8(mix) + 8) * 4 + (Float8(mix) + 8) * kBlockBytes + kBlockBytes);
    // comb (n * n planes) and its half sums (n * n / 2)
    p.planeBytes = static_cast<uint32_t>(slots * (n * n + n * Max(n / 2, 1)) * 4);
    // pre and post (2n planes); a block per token for eight planes
    p.workBytes = static_cast<uint32_t>(slots * 2 * n * 4 + 8 * p.chunkTokens * kBlockBytes);
}

// UB of a batch on regbase: gathers and scatters make every layout dense.
void SetBatchRegbase(SinkhornRowsPlan& p) {
    const uint64_t n = p.hcMult, mix = (2 + n) * n, rows = p.batchRows;
    // The last register of a part starts inside it.
    p.rsqrtOffset = static_cast<uint32_t>((Float8(rows * p.mixParts * p.mixPitch) + (p.mixParts > 1 ? kFloatLanes : 0)) * 4);
    p.mixBytes = static_cast<uint32_t>(p.rsqrtOffset + (Float8(rows) + p.mixScales) * 4);
    p.postBytes = static_cast<uint32_t>(Float8(rows * n) * 4);
    p.combBytes = static_cast<uint32_t>(Float8(rows * n * n) * 4);
    p.preBytes = static_cast<uint32_t>(n * Float8(rows) * 4);
    p.constantBytes = static_cast<uint32_t>((Float8(mix) + 8 + kFloatLanes) * 4);  // base, scale, the lane numbers
    // n = 4 keeps its 16 planes in registers; other n keep one chunk's planes in UB.
    p.planeBytes = static_cast<uint32_t>(n == 4 ? 0 : n * n * kFloatLanes * 4);
}

// Adds the x tile; true when everything fits.
bool SetTile(SinkhornRowsPlan& p, const ChipSpec& chip, uint32_t elementBytes, uint64_t rows, uint64_t columns) {
    const uint64_t pitch = AlignUp(columns, kBlockBytes / elementBytes), n = p.hcMult;
    if (rows * n * pitch * elementBytes > chip.ubBytes) return false;  // before a 32-bit field could overflow
    // regbase loads whole registers: the last load of a row may start on its last element.
    const uint64_t overrun = chip.regbase ? kFloatLanes * elementBytes : 0;
    p.rowFactor = static_cast<uint32_t>(rows);
    p.dFactor = static_cast<uint32_t>(columns);
    p.xBytes = static_cast<uint32_t>(rows * n * pitch * elementBytes + overrun);
    p.yBytes = static_cast<uint32_t>(rows * pitch * elementBytes);
    // membase multiplies 16-bit x as float32; pre and post have left their planes by then.
    if (!chip.regbase && elementBytes == 2)
        p.workBytes = static_cast<uint32_t>(Max(p.workBytes, rows * n * pitch * 4));
    p.ubBytes = p.mixBytes + p.postBytes + p.combBytes + p.preBytes + p.constantBytes + p.planeBytes + p.workBytes +
                2 * p.xBytes + 2 * p.yBytes;
    return p.ubBytes <= chip.ubBytes;
}

// x tiles of the busiest core.
uint64_t TileLoops(const SinkhornRowsPlan& p) {
    const uint64_t full = p.rowsPerFormer / p.batchRows, rest = p.rowsPerFormer % p.batchRows;
    return (full * CeilDiv(p.batchRows, p.rowFactor) + CeilDiv(rest, p.rowFactor)) * p.dLoop;
}

// What a plan decides about the busiest core's time: the chain of dependent instructions behind comb, which takes as long for 8 tokens as
// for 64, and what a tile costs beside its bytes.
double CoreCycles(const SinkhornRowsPlan& p, const ChipSpec& chip) {
    const double square = static_cast<double>(p.hcMult) * p.hcMult;
    const double chunks = chip.regbase ? static_cast<double>(CeilDiv(p.batchRows, p.chunkTokens)) : 1;
    const double chain = p.sinkhornIters * (chip.regbase ? kRoundRegbase * square * chunks : kRoundStart + kRound * square);
    return static_cast<double>(CeilDiv(p.rowsPerFormer, p.batchRows)) * chain + static_cast<double>(TileLoops(p)) * kTileStart;
}

// The widest tile beside batches of `batchRows`; dLoop stays 0 when not even 64 columns fit.
SinkhornRowsPlan PlanBatch(SinkhornRowsPlan p, uint64_t batchRows, const ChipSpec& chip, uint32_t elementBytes) {
    p.batchRows = static_cast<uint32_t>(batchRows);
    p.chunkTokens = ChunkTokens(batchRows, p.hcMult, chip);
    chip.regbase ? SetBatchRegbase(p) : SetBatchMembase(p);
    const SinkhornRowsPlan batch = p;
    const auto fits = [&](uint64_t rows, uint64_t columns) {
        p = batch;
        return SetTile(p, chip, elementBytes, rows, columns);
    };

    if (fits(1, p.columnsPerCore)) {  // whole rows: as many as fit
        uint64_t rows = 1, most = Min(batchRows, kMaxDmaBlocks / p.hcMult);
        while (rows < most) {
            const uint64_t middle = (rows + most + 1) / 2;
            fits(middle, batch.columnsPerCore) ? rows = middle : most = middle - 1;
        }
        const uint64_t held = chip.regbase || p.mixParts > 1 ? batchRows : Slots(batch);
        // One batch: evened out over it. Several: as many rows to a batch as its planes hold and tiles divide.
        if (batchRows == batch.rowsPerFormer) rows = CeilDiv(batchRows, CeilDiv(batchRows, rows));
        fits(rows, batch.columnsPerCore);
        if (batchRows != batch.rowsPerFormer)
            p.batchRows = static_cast<uint32_t>(Min(AlignDown(held, rows), batch.rowsPerFormer));
        p.dLoop = 1;
        return p;
    }
    // Pieces of one row, equal up to 64 columns. First guess: what would fit if nothing else were in UB.
    const uint64_t bytesPerColumn = 2 * (p.hcMult + 1) * elementBytes;
    uint64_t loops = Max(2, CeilDiv(batch.columnsPerCore * bytesPerColumn, chip.ubBytes));
    uint64_t columns;
    do columns = AlignUp(CeilDiv(batch.columnsPerCore, loops++), kFloatLanes);
    while (!fits(1, columns) && columns > kFloatLanes);
    p.dLoop = p.ubBytes <= chip.ubBytes ? static_cast<uint32_t>(CeilDiv(batch.columnsPerCore, columns)) : 0;
    return p;
}

}  // namespace

std::string SinkhornRowsMisfit(const char* op, uint64_t tokens, int64_t hcMult, uint64_t hidden, int64_t sinkhornIters, float hcEps) {
    if (hcMult < 1 || hcMult > kMaxStreams)
        return Error("%s: hc_mult is %" PRId64 ", supported are 1 to %u", op, hcMult, kMaxStreams).message;
    if (tokens >> 31) return Error("%s: x has %" PRIu64 " tokens, supported are up to 2147483647", op, tokens).message;
    if (hidden == 0 || hidden >> 29)  // the stride of a DMA is 32 bits of bytes
        return Error("%s: x has d = %" PRIu64 " (last dimension), supported are 1 to 536870911", op, hidden).message;
    if (sinkhornIters < 1 || sinkhornIters > INT32_MAX)
        return Error("%s: hc_sinkhorn_iters is %" PRId64 ", supported are 1 to 2147483647", op, sinkhornIters).message;
    if (!(hcEps >= 0) || std::isinf(hcEps))
        return Error("%s: hc_eps must be a finite number >= 0, got %g", op, static_cast<double>(hcEps)).message;
    return "";
}

void SplitSinkhornRows(SinkhornRowsPlan& plan, const ChipSpec& chip) {
    const RowSplit split = SplitRows(plan.tokens, chip.vectorCores);
    plan.usedCores = split.usedCores;
    plan.formerCores = split.formerCores;
    plan.rowsPerFormer = split.rowsPerFormer;
    plan.rowsPerTail = split.rowsPerTail;
    plan.coresPerToken = 1;
    plan.columnsPerCore = plan.hidden;
    if (plan.tokens == 0) return;
    // Fewer tokens than half the cores: several cores share a token's columns. Each recomputes the token's weights (a few
    // hundred bytes of mixes); the first writes post and comb_frag.
    const uint64_t share = chip.vectorCores / plan.usedCores;
    const uint64_t columns = AlignUp(Max(CeilDiv(plan.hidden, share), kMinColumnsPerCore), kColumnSlice);
    if (share > 1 && columns < plan.hidden) {
        plan.columnsPerCore = static_cast<uint32_t>(columns);
        plan.coresPerToken = static_cast<uint32_t>(CeilDiv(plan.hidden, columns));
        plan.usedCores *= plan.coresPerToken;
    }
}

bool TileSinkhornRows(SinkhornRowsPlan& plan, const ChipSpec& chip, uint32_t elementBytes) {
    // The largest x tile first, then the fewest batches. On membase a row less per tile is given up for larger batches: the chain of
    // dependent instructions behind comb takes as long for 8 tokens as for 64.
    constexpr uint32_t kTargets[] = {256, 192, 128, 96, 64, 48, 32, 24, 16, 8, 1};  // tokens per batch
    SinkhornRowsPlan candidates[sizeof(kTargets) / sizeof(kTargets[0])];
    uint64_t count = 0, fewest = UINT64_MAX, mostRows = 0;
    for (const uint64_t target : kTargets) {
        const uint64_t batchRows = CeilDiv(plan.rowsPerFormer, CeilDiv(plan.rowsPerFormer, target));
        const SinkhornRowsPlan candidate = PlanBatch(plan, batchRows, chip, elementBytes);
        if (candidate.dLoop == 0) continue;
        fewest = Min(fewest, TileLoops(candidate));
        mostRows = Max(mostRows, candidate.rowFactor);
        candidates[count++] = candidate;
    }
    for (uint64_t i = 0; i < count; ++i) {  // from few batches to many
        const bool oneRowLess = !chip.regbase && candidates[i].rowFactor + 1 >= mostRows && candidates[i].dLoop == 1;
        if (TileLoops(candidates[i]) == fewest || oneRowLess) {
            plan = candidates[i];
            break;
        }
    }
    // Smaller tiles where the chains of small batches would take far longer than the tiles save.
    if (count == 0) return false;
    const double most = kClearlyLess * CoreCycles(plan, chip);
    const auto less = [&](const SinkhornRowsPlan& a, const SinkhornRowsPlan& b) { return CoreCycles(a, chip) < CoreCycles(b, chip); };
    const auto* least = std::min_element(candidates, candidates + count, less);
    if (CoreCycles(*least, chip) < most) plan = *least;
    return true;
}

}  // namespace custom_ops
