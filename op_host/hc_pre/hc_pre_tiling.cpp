#include "hc_pre_tiling.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>

#include "../common/sinkhorn_rows_tiling.h"

namespace custom_ops {
namespace {

constexpr uint32_t kUnit = 16;               // columns of K, and rows of a cube fractal
constexpr uint32_t kMinUnits = 4;            // of K for a core: one repeat of 64 lanes
constexpr uint32_t kMaxTileColumns = 1024;   // repeat strides end at 255 blocks
constexpr uint32_t kMaxGroupTokens = 64;
constexpr uint32_t kTerms = 3;               // 16-bit numbers that make up a float32 one
constexpr uint32_t kMaxBlockRows = 256;
constexpr uint32_t kLineBytes = 512;         // of L2
constexpr uint32_t kMaxTileRows = 128;
constexpr uint32_t kMaxTileOfLongRows = 256; // columns of hc_fn in L1, so that there is room for long pieces of x
constexpr uint32_t kMaxPiece = 8192;         // bytes of a row that comes on its own: as long as the shortest copy takes
constexpr uint32_t kReservedL1 = 256;        // bytes at the end of L1 that belong to the system

// Modelled cycles, to choose between plans; facts on AscendC 1.4, 11.
constexpr double kGmBytesPerCycle = 32, kL2BytesPerCycle = 100, kVectorL2BytesPerCycleRegbase = 42;
constexpr double kLatency = 512, kShortestCopy = kLatency / 2;
constexpr double kSyncAll = 2000, kCrossCoreFlag = 200;
constexpr double kTermsStart = 1000, kTermsElement = 0.5;   // hc_fn -> terms: 10 bytes of HBM for each element of a core
constexpr double kWidenStart = 600, kWidenElement = 0.36;  // x -> float32: 6 bytes of HBM for each element of a core
constexpr double kScalesStart = 5000, kScalesElement = 0.25;  // float16: the maxima of its rows before, and one more SyncAll
constexpr double kLatencies = 1000;          // GM -> L1 -> L0 -> GM, beyond those of decode: from modelled times of both
constexpr double kImpossible = std::numeric_limits<double>::infinity();
constexpr double kMmadStart = 16;            // estimate: an array 16 deep fills up
constexpr double kHalfDepth = 16, kFloatDepth = 4, kFloatDepthRegbase = 1;  // of K in a cycle, facts on AscendC 7.2

HcPreShares Share(uint64_t units, uint64_t count) {
    return {static_cast<uint32_t>(count), static_cast<uint32_t>(units % count), static_cast<uint32_t>(units / count)};
}
uint64_t Longest(const HcPreShares& s) { return s.units + (s.longer != 0); }

// A way to project on the cube. `operand`: type of x there, another one than the call's if vector cores convert it.
struct CubePlan {
    uint64_t key;
    HcPreType operand;
    HcPreTilingData data;
    double cycles = kImpossible;
};

uint32_t ElementBytes(HcPreType type) { return type == HcPreType::Float32 ? 4 : 2; }
uint32_t Terms(HcPreType type) { return type == HcPreType::Float32 ? 1 : kTerms; }  // matrices that hc_fn is for the cube
// Whether a copy into L1 cannot step from row to row.
bool HasLongRows(const HcPreTilingData& p) { return p.rowElements > kWidestPitch; }
bool HasTerms(const HcPreTilingData& p, HcPreType type) { return Terms(type) != 1 || HasLongRows(p); }

// Cycles of the weighted sum of one token: n products, n - 1 sums of d columns; 16 bits: n + 1 casts.
double RowCycles(const HcPreShape& s) {
    const double passes = s.type == HcPreType::Float32 ? 2 : 3;
    return passes * static_cast<double>(s.hcMult) * static_cast<double>(s.hidden) / kFloatLanes;
}

void SliceK(HcPreTilingData& p, const ChipSpec& chip) {
    const uint64_t units = CeilDiv(p.rowElements, kUnit);
    p.slices = Share(units, Min(chip.vectorCores, CeilDiv(units, kMinUnits)));
}

// Vector cores put hc_fn into terms, for their own cube core or for all, written and ordered; 0: the cube takes it as it is.
double TermsCycles(const HcPreTilingData& p, HcPreType type, bool ofOwnPart) {
    if (!HasTerms(p, type)) return 0;
    const double elements = static_cast<double>(Longest(p.slices) * kUnit) * p.mix;
    const double scales = type == HcPreType::Float16 ? kScalesStart + kScalesElement * elements : 0;
    return kTermsStart + kTermsElement * elements + scales + (ofOwnPart ? kCrossCoreFlag : kSyncAll);
}

// Columns of a part of K that each of a cube core's two vector cores makes float32.
uint64_t HalfOfPart(uint64_t units) { return CeilDiv(units, 2) * kUnit; }
// In UB at a time: 16 bits twice, float32 twice. As many as fit: HBM bounds this, and the cube core takes hc_fn from there meanwhile.
uint64_t TokensToWiden(uint64_t columns, const ChipSpec& chip) { return chip.ubBytes / (2 * (2 + 4) * columns); }
// Written, and the cube core told.
double WidenCycles(uint64_t tokens, uint64_t columns) {
    return kWidenStart + kWidenElement * static_cast<double>(tokens * columns) + kCrossCoreFlag;
}

// --- decode -------------------------------------------------------------------------------------------------------------------

// Sets the buffers of the projection on vector cores; true when they fit.
bool SetDecodeTile(HcPreTilingData& p, const HcPreShape& s, const ChipSpec& chip, uint64_t tokens, uint64_t columns, uint32_t buffers) {
    const uint64_t element = ElementBytes(s.type);
    // regbase loads whole registers: the last load of a row may start on its last element.
    const uint64_t overrun = chip.regbase ? kFloatLanes : 0;
    p.groupTokens = static_cast<uint32_t>(tokens);
    p.tileColumns = static_cast<uint32_t>(columns);
    p.tileBuffers = buffers;
    p.fnBytes = static_cast<uint32_t>((p.mix * columns + overrun) * 4);
    p.xBytes = static_cast<uint32_t>((tokens * columns + overrun) * element);
    p.wideBytes = static_cast<uint32_t>(element == 4 || chip.regbase ? 0 : tokens * columns * 4);
    p.outBytes = static_cast<uint32_t>(tokens * p.partialPitch * 4);
    p.sumBytes = chip.regbase ? static_cast<uint32_t>(tokens * (p.mix + 1) * kFloatLanes * 4)
                              : static_cast<uint32_t>(tokens * ((p.mix + 1) * kFloatLanes + p.partialPitch * 8) * 4);
    p.ubBytes = buffers * (p.fnBytes + p.xBytes) + p.wideBytes + p.sumBytes + p.outBytes;
    return p.ubBytes <= chip.ubBytes;
}

// The busiest core multiplies and adds its slice by 64 lanes, with registers each also loads a factor, and its share of x and sums;
// meanwhile, or with one buffer before, it brings in hc_fn, again for every group of tokens, which starts with a tile and ends with sums
// of lanes that nothing hides.
double DecodeCycles(const HcPreTilingData& p, uint64_t tokens, const ChipSpec& chip) {
    const double columns = static_cast<double>(Longest(p.slices) * kUnit), sums = p.mix + 1;
    const double chunks = static_cast<double>(CeilDiv(Longest(p.slices) * kUnit, kFloatLanes));
    const double multiply = (chip.regbase ? 3 : 2) * chunks * static_cast<double>(tokens) * sums;
    const double groups = static_cast<double>(CeilDiv(tokens, p.groupTokens)), tiles = columns / p.tileColumns;
    const double l2Rate = chip.regbase ? kVectorL2BytesPerCycleRegbase : kL2BytesPerCycle, fnBytes = columns * p.mix * 4;
    const double transfer = std::max(fnBytes / kGmBytesPerCycle + (groups - 1) * fnBytes / l2Rate, 2 * kShortestCopy * groups * tiles);
    const double addLanes = 2 * sums * p.groupTokens;
    if (p.tileBuffers == 1) return multiply + transfer + groups * (std::ceil(tiles) * kLatency + addLanes);
    const double tile = std::max(p.tileColumns * static_cast<double>(p.mix) * 4 / l2Rate, kShortestCopy) + kLatency;
    return std::max(multiply, transfer) + groups * (tile + addLanes);
}

// All tokens at once if they fit, in tiles as wide as then fit.
bool TileDecode(HcPreTilingData& p, const HcPreShape& s, const ChipSpec& chip) {
    const uint64_t slice = Longest(p.slices) * kUnit;
    const uint64_t wanted = Min(AlignUp(CeilDiv(slice, 2), kFloatLanes), kMaxTileColumns);  // two tiles: the second arrives meanwhile
    const uint64_t all = Min(Longest(p.blocks) * kUnit, s.tokens);
    for (uint64_t tokens = Min(all, kMaxGroupTokens); tokens >= 1; --tokens) {
        const uint64_t least = tokens == 1 ? kFloatLanes : Min(wanted, 2 * kFloatLanes);
        for (uint64_t columns = wanted; columns >= least; columns -= kFloatLanes)
            if (SetDecodeTile(p, s, chip, CeilDiv(all, CeilDiv(all, tokens)), columns, 2)) return true;
    }
    return SetDecodeTile(p, s, chip, 1, kFloatLanes, 1);
}

Result<HcPrePlan> PlanDecode(HcPreTilingData p, const HcPreShape& s, const ChipSpec& chip) {
    p.blocks = Share(CeilDiv(s.tokens, kUnit), 1);
    p.partialPitch = static_cast<uint32_t>(AlignUp(p.mix + 1, 8));
    p.squareColumn = p.mix;
    p.parts = p.slices.count;
    if (!TileDecode(p, s, chip))
        return Error("hc_pre: %s has %" PRIu64 " B of UB, 64 columns of hc_fn at hc_mult %" PRId64 " need %u B", chip.name, chip.ubBytes,
                     s.hcMult, p.ubBytes);
    p.rows.mixPitch = p.partialPitch;
    p.rows.mixParts = p.parts;
    SplitSinkhornRows(p.rows, chip);
    if (!TileSinkhornRows(p.rows, chip, ElementBytes(s.type)))
        return Error("hc_pre: %s has %" PRIu64 " B of UB, too few for one token of hc_mult %" PRId64, chip.name, chip.ubBytes, s.hcMult);
    p.ubBytes = static_cast<uint32_t>(Max(p.ubBytes, p.rows.ubBytes));
    const uint32_t cores = static_cast<uint32_t>(Max(p.slices.count * p.blocks.count, p.rows.usedCores));
    return HcPrePlan{kHcPreDecode, cores, s.tokens * p.parts * p.partialPitch * 4, p};
}

// --- cube ---------------------------------------------------------------------------------------------------------------------

// Whether each cube core has the two vector cores that its plans are made for.
bool FitsCube(const ChipSpec& chip) {
    return chip.cubeCores != 0 && chip.vectorCores == 2 * chip.cubeCores;
}

// Columns of K in L0 by the room for the terms and 16 tokens in L0B, rows by the rest.
void SetL0(HcPreTilingData& p, HcPreType type, const ChipSpec& chip) {
    const uint64_t columns = Terms(type) * AlignUp(p.mix, kUnit) + kUnit, element = ElementBytes(type);
    p.kL0 = 8 * kUnit;
    while (p.kL0 > kUnit && 2 * columns * p.kL0 * element > chip.l0bBytes) p.kL0 /= 2;
    // L0A: two tiles; on the 950 also two groups of 16 tokens, which a tile there does not hold in one piece.
    const uint64_t rows = chip.l0aBytes / (2 * p.kL0 * element) - (chip.regbase ? kUnit : 0);
    p.tileRows = static_cast<uint32_t>(Min(kMaxTileRows, AlignDown(rows, kUnit)));
}
uint64_t MaxBlockRows(const HcPreTilingData& p, const ChipSpec& chip) {
    return Min(kMaxBlockRows, AlignDown(chip.l0cBytes / ((AlignUp(p.mix, kUnit) + kUnit) * 4), kUnit));
}

// Columns in L1: two buffers of a block's tokens and the terms. Whole 512 B of GM if they fit, as many of x as of hc_fn. Rows that come
// one by one: hc_fn gets a quarter of L1 and x pieces as long as the rest allows.
void SetL1(HcPreTilingData& p, HcPreType type, const ChipSpec& chip, uint64_t blockRows) {
    const uint64_t element = ElementBytes(type), line = kLineBytes / element, bytes = chip.l1Bytes - kReservedL1;
    const uint64_t xColumn = 2 * blockRows * element, termsColumn = 2 * Terms(type) * AlignUp(p.mix, kUnit) * element;
    if (HasLongRows(p)) {
        const uint64_t columns = Min(Max(AlignDown(bytes / 4 / termsColumn, p.kL0), p.kL0), kMaxTileOfLongRows);
        const uint64_t fit = Min((bytes - columns * termsColumn) / xColumn, kMaxPiece / element);
        p.kL1 = static_cast<uint32_t>(columns);
        p.xL1 = static_cast<uint32_t>(AlignDown(fit, columns));
        return;
    }
    const uint64_t fit = Min(bytes / (xColumn + termsColumn), 1024);
    p.kL1 = p.xL1 = static_cast<uint32_t>(fit >= 2 * line ? AlignDown(fit, line) : AlignDown(fit, p.kL0));
}

// Cycles of a cube core: it brings in its tokens, which no other one reads, and hc_fn or its terms, while the array multiplies. L1 is
// that of p.
double CubeCycles(const HcPreTilingData& p, HcPreType type, const ChipSpec& chip, double rows, double columns, double xRate, double fnRate) {
    const double terms = Terms(type), groups = rows / kUnit, element = ElementBytes(type);
    const double piece = HasLongRows(p) ? kShortestCopy / p.xL1 : 0;
    const double bytes = columns * (rows * std::max(element / xRate, piece) + element * terms * p.mix / fnRate);
    // Few tokens fill up a fractal copy by copy.
    const double copies = p.rows.tokens < kUnit ? static_cast<double>(CeilDiv(kUnit, p.rows.tokens)) * columns / p.xL1 : 0;
    const double transfer = bytes + copies * kShortestCopy;
    const double depth = type != HcPreType::Float32 ? kHalfDepth : chip.regbase ? kFloatDepthRegbase : kFloatDepth;
    const double steps = groups * (terms * static_cast<double>(CeilDiv(p.mix, kUnit)) + 1) / depth;
    const double starts = (rows / p.tileRows * terms + groups) * kMmadStart / p.kL0;
    const double multiply = columns * (steps + starts);
    return transfer > multiply ? transfer : multiply;
}

// One block of tokens and one part of K for each cube core; `widen`: a single block.
void PlanGrid(CubePlan& plan, const HcPreShape& s, const ChipSpec& chip) {
    HcPreTilingData& p = plan.data;
    const bool widens = plan.key == kHcPreWiden;
    const uint64_t rowUnits = CeilDiv(s.tokens, kUnit), units = CeilDiv(p.rowElements, kUnit);
    double least = kImpossible;
    for (uint64_t blocks = 1; blocks <= (widens ? 1 : Min(chip.cubeCores, rowUnits)); ++blocks) {
        const uint64_t rows = CeilDiv(rowUnits, blocks) * kUnit, parts = Min(chip.cubeCores / blocks, CeilDiv(units, kMinUnits));
        if (rows > MaxBlockRows(p, chip)) continue;
        HcPreTilingData tried = p;
        SetL1(tried, plan.operand, chip, rows);
        if (tried.xL1 == 0) continue;
        const uint64_t ofPart = CeilDiv(units, parts), half = HalfOfPart(ofPart);
        if (widens && TokensToWiden(half, chip) == 0) continue;
        // hc_fn itself comes from GM once.
        const double fnRate = blocks == 1 && !HasTerms(p, plan.operand) ? kGmBytesPerCycle : kL2BytesPerCycle;
        const double before = widens ? WidenCycles(s.tokens, half) : TermsCycles(p, plan.operand, blocks == 1);
        const double cycles = before + CubeCycles(tried, plan.operand, chip, static_cast<double>(rows), static_cast<double>(ofPart * kUnit),
                                                  widens ? kL2BytesPerCycle : kGmBytesPerCycle, fnRate);
        if (cycles > least) continue;  // of equals the one with most blocks: most of them are shorter
        least = cycles;
        p.blocks = Share(rowUnits, blocks);
        p.kParts = Share(units, parts);
        p.blockRows = static_cast<uint32_t>(rows);
    }
    const double element = ElementBytes(s.type), rowsAfter = static_cast<double>(CeilDiv(s.tokens, chip.vectorCores));
    // x that has left L2 comes from GM once more.
    const bool inL2 = s.tokens * p.rowElements * ElementBytes(s.type) <= chip.l2Bytes / 4 * 3;
    const double again = inL2 ? 0 : rowsAfter * p.rowElements * element / (kGmBytesPerCycle / 2);
    plan.cycles = kLatencies + least + kSyncAll + std::max(RowCycles(s) * rowsAfter, again);
}

// Rounds of blocks for every cube core. A block's tokens are read again during the round after theirs, in the first third of it or so:
// with what is written meanwhile, L2 has to hold those of less than two rounds.
void PlanStream(CubePlan& plan, const HcPreShape& s, const ChipSpec& chip) {
    HcPreTilingData& p = plan.data;
    const uint64_t rowUnits = CeilDiv(s.tokens, kUnit);
    const uint64_t roundBytes = chip.cubeCores * static_cast<uint64_t>(p.rowElements) * ElementBytes(s.type);  // a token for each core
    const uint64_t inL2 = AlignDown(chip.l2Bytes / (2 * roundBytes), kUnit);
    const uint64_t maxRows = Max(kUnit, Min(MaxBlockRows(p, chip), inL2));
    const auto ofTokens = [&](const HcPreTilingData& tried, double rows) {
        return CubeCycles(tried, plan.operand, chip, rows, p.rowElements, kGmBytesPerCycle, kL2BytesPerCycle);
    };
    for (uint64_t longest = maxRows; longest >= kUnit; longest -= kUnit) {
        const uint64_t rounds = CeilDiv(rowUnits * kUnit, longest * chip.cubeCores);
        const uint64_t blocks = Min(rowUnits, rounds * chip.cubeCores), rows = CeilDiv(rowUnits, blocks) * kUnit;
        const HcPreShares shares = Share(rowUnits, blocks);
        const uint64_t ofCore = (rounds * shares.units + CeilDiv(shares.longer, chip.cubeCores)) * kUnit;  // tokens, over all rounds
        HcPreTilingData tried = p;
        SetL1(tried, plan.operand, chip, rows);
        if (tried.xL1 == 0) continue;
        const double cycles = TermsCycles(p, plan.operand, false) + kLatencies + ofTokens(tried, static_cast<double>(ofCore)) +
                              static_cast<double>(rounds - 1) * ofTokens(tried, 0) + static_cast<double>(rows) / 2 * RowCycles(s);
        if (cycles >= plan.cycles) continue;
        plan.cycles = cycles;
        p.blocks = shares;
        p.kParts = Share(CeilDiv(p.rowElements, kUnit), 1);
        p.blockRows = static_cast<uint32_t>(rows);
    }
}

// Tile of hc_fn that a vector core splits: float32 twice, one term as float32, three terms twice as 16 bits; float32 x: hc_fn twice, in
// another order twice. float16: also 64 lanes of maxima, a scale and a block of it for each row.
bool TileTerms(HcPreTilingData& p, HcPreType type, const ChipSpec& chip) {
    const uint64_t terms = Terms(type), element = ElementBytes(type), wide = terms != 1 ? 4 : 0;
    const uint64_t perColumn = p.mix * (2 * 4 + wide + 2 * terms * element);
    p.sumBytes = static_cast<uint32_t>(p.scaled != 0 ? AlignUp(p.mix, 8) * (kFloatLanes + 8 + 1) * 4 : 0);
    if (p.sumBytes >= chip.ubBytes) return false;
    const uint64_t fit = Min(AlignDown((chip.ubBytes - p.sumBytes) / perColumn, kUnit), kMaxTileColumns);
    const uint64_t columns = Min(fit, Max(kUnit, AlignUp(CeilDiv(Longest(p.slices) * kUnit, 2), kUnit)));
    p.tileColumns = static_cast<uint32_t>(columns);
    p.tileBuffers = 2;
    p.fnBytes = static_cast<uint32_t>(p.mix * columns * 4);
    p.wideBytes = static_cast<uint32_t>(p.mix * columns * wide);
    p.outBytes = static_cast<uint32_t>(p.mix * columns * element);
    p.ubBytes = static_cast<uint32_t>(2 * p.fnBytes + p.wideBytes + 2 * terms * p.outBytes + p.sumBytes);
    return fit != 0;
}

void TileWiden(HcPreTilingData& p, const HcPreShape& s, const ChipSpec& chip) {
    const uint64_t columns = HalfOfPart(Longest(p.kParts)), elements = Min(s.tokens, TokensToWiden(columns, chip)) * columns;
    p.tileColumns = static_cast<uint32_t>(columns);
    p.groupTokens = static_cast<uint32_t>(elements / columns);
    p.tileBuffers = 2;
    p.xBytes = static_cast<uint32_t>(elements * 2);
    p.wideBytes = static_cast<uint32_t>(elements * 4);
    p.ubBytes = 2 * (p.xBytes + p.wideBytes);
}

Result<HcPrePlan> FinishCube(const CubePlan& plan, const HcPreShape& s, const ChipSpec& chip) {
    HcPreTilingData p = plan.data;
    p.partialPitch = static_cast<uint32_t>(AlignUp(p.mix, 8) + kUnit);
    p.squareColumn = static_cast<uint32_t>(AlignUp(p.mix, 8));
    p.parts = p.kParts.count;
    const bool split = HasTerms(p, plan.operand);
    p.termColumns = split ? static_cast<uint32_t>(AlignUp(p.rowElements, kUnit)) : 0;
    p.cubeCores = chip.cubeCores;
    p.scaled = plan.operand == HcPreType::Float16;
    SetL1(p, plan.operand, chip, p.blockRows);
    p.rows.mixPitch = p.partialPitch;
    p.rows.mixScales = p.scaled * p.squareColumn;
    p.rows.mixParts = p.parts;
    if (plan.key != kHcPreStream) {
        SplitSinkhornRows(p.rows, chip);
    } else {
        p.rows.coresPerToken = 1;
        p.rows.columnsPerCore = p.rows.hidden;
        p.rows.rowsPerFormer = p.rows.rowsPerTail = p.blockRows / 2;
        p.rows.usedCores = p.rows.formerCores = chip.vectorCores;
    }
    if (plan.key == kHcPreWiden) TileWiden(p, s, chip);
    if ((split && !TileTerms(p, plan.operand, chip)) || !TileSinkhornRows(p.rows, chip, ElementBytes(s.type)))
        return Error("hc_pre: %s has %" PRIu64 " B of UB, too few for one token of hc_mult %" PRId64, chip.name, chip.ubBytes, s.hcMult);
    p.ubBytes = static_cast<uint32_t>(Max(p.ubBytes, p.rows.ubBytes));
    const uint64_t terms = static_cast<uint64_t>(p.termColumns) * Terms(plan.operand) * p.mix * ElementBytes(plan.operand);
    const uint64_t wide = plan.key == kHcPreWiden ? s.tokens * p.xPitch * 4 : 0;
    const uint64_t scales = p.scaled * (p.slices.count + 1) * static_cast<uint64_t>(p.squareColumn);  // maxima of each slice, scales
    const uint64_t sums = s.tokens * p.parts * p.partialPitch;
    return HcPrePlan{plan.key, chip.cubeCores, AlignUp(terms + wide, kLineBytes) + (sums + scales) * 4, p};
}

// The fastest of those that fit this shape.
CubePlan PlanCube(const HcPreTilingData& p, const HcPreShape& s, const ChipSpec& chip) {
    CubePlan grid{kHcPreGrid, s.type, p}, stream{kHcPreStream, s.type, p}, widen{kHcPreWiden, HcPreType::Float32, p};
    widen.data.xPitch = static_cast<uint32_t>(AlignUp(p.rowElements, kUnit));
    for (CubePlan* plan : {&grid, &stream, &widen}) SetL0(plan->data, plan->operand, chip);
    PlanGrid(grid, s, chip);
    PlanStream(stream, s, chip);
    if (s.type != HcPreType::Float32 && widen.data.xPitch <= kWidestPitch) PlanGrid(widen, s, chip);
    const CubePlan& ofOperands = stream.cycles < grid.cycles ? stream : grid;
    return widen.cycles < ofOperands.cycles ? widen : ofOperands;
}

}  // namespace

Result<HcPrePlan> TileHcPre(const HcPreShape& s, const ChipSpec& chip) {
    const std::string misfit = SinkhornRowsMisfit("hc_pre", s.tokens, s.hcMult, s.hidden, s.sinkhornIters, s.hcEps);
    if (!misfit.empty()) return Failure{misfit};
    if (!(s.normEps >= 0) || std::isinf(s.normEps))
        return Error("hc_pre: norm_eps must be a finite number >= 0, got %g", static_cast<double>(s.normEps));
    const uint64_t rowElements = static_cast<uint64_t>(s.hcMult) * s.hidden;
    if (rowElements > INT32_MAX)
        return Error("hc_pre: x has hc_mult * d = %" PRIu64 " columns, supported are up to 2147483647", rowElements);

    HcPreTilingData p{};
    p.rowElements = p.xPitch = static_cast<uint32_t>(rowElements);
    p.inverseCount = static_cast<float>(1.0 / static_cast<double>(rowElements));
    p.normEps = s.normEps;
    p.mix = static_cast<uint32_t>((2 + s.hcMult) * s.hcMult);
    p.rows.tokens = static_cast<uint32_t>(s.tokens);
    p.rows.hcMult = static_cast<uint32_t>(s.hcMult);
    p.rows.hidden = static_cast<uint32_t>(s.hidden);
    p.rows.sinkhornIters = static_cast<uint32_t>(s.sinkhornIters);
    p.rows.hcEps = s.hcEps;
    if (s.tokens == 0) return HcPrePlan{kHcPreDecode, 1, 0, p};
    SliceK(p, chip);
    const Result<HcPrePlan> decode = PlanDecode(p, s, chip);
    if (!FitsCube(chip)) return decode;

    const CubePlan cube = PlanCube(p, s, chip);
    const double rows = static_cast<double>(CeilDiv(s.tokens, chip.vectorCores));
    if (decode && DecodeCycles(decode->data, s.tokens, chip) + RowCycles(s) * rows + kSyncAll <= cube.cycles) return decode;
    return cube.cycles == kImpossible ? decode : FinishCube(cube, s, chip);
}

}  // namespace custom_ops
