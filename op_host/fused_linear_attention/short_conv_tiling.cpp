#include "short_conv_tiling.h"

namespace custom_ops {
namespace {

constexpr uint64_t kMaxChunkTokens = 32;
constexpr uint64_t kMinRowBytes = 256;  // of a tile: shorter rows are all latency

// Cycles of a vector core, of the 910B family; they only weigh plans against each other.
constexpr uint64_t kBytesPerCycle = 22;     // of HBM, all cores at once: 1.6 TB/s over 40 cores of 1.8 GHz
constexpr uint64_t kCyclesPerStep = 700;    // latencies
constexpr uint64_t kCyclesOfSync = 3500;    // SyncAll, then conv_state

// UB of a tile and a chunk of tokens. True: it fits.
bool SetBuffers(FusedLinearAttentionTilingData& p, const FusedLinearAttentionShape& s, const ChipSpec& chip, uint64_t tile,
                uint64_t chunk) {
    ShortConvBuffers& b = p.conv;
    const uint64_t block = kBlockBytes / s.elementBytes, taps = p.taps, history = taps - 1, rows = history + chunk;
    const uint64_t pitch = AlignUp(tile, block);
    const bool narrow = s.elementBytes == 2;
    Places place{block};
    place(rows * pitch);
    b.inX = place(rows * pitch);
    b.inC = place(chunk * pitch);
    b.inStates = place(tile * history);
    b.inWeights = place(tile * taps);
    b.inBias = place(pitch);
    // Work, in the order of ShortConv::InitWork.
    const uint64_t keep = AlignUp(tile * history, kBlockFloats);
    const uint64_t planes = narrow ? Max(Max(2 * rows * pitch, AlignUp(taps * pitch / 2, kBlockFloats)), keep) : keep;
    const uint64_t floats = planes + (taps + 1) * pitch + (narrow ? chunk * pitch : 0) + 2 * pitch + keep;
    const uint64_t out = chunk * pitch * s.elementBytes, window = rows * pitch * s.elementBytes;
    const uint64_t convOut = s.keepsConvState && history != 0 ? AlignUp(tile * history * s.elementBytes, kBlockBytes) : 0;
    const uint64_t total = 2 * place.end * s.elementBytes + 2 * out + 2 * convOut + window + floats * 4;
    if (total > chip.ubBytes && total >> 31) return false;  // before a 32-bit field could overflow
    b.chunkTokens = static_cast<uint32_t>(chunk);
    b.pitch = static_cast<uint32_t>(pitch);
    b.inBytes = static_cast<uint32_t>(place.end * s.elementBytes);
    b.outBytes = static_cast<uint32_t>(out);
    b.convOutBytes = static_cast<uint32_t>(convOut);
    b.windowBytes = static_cast<uint32_t>(window);
    b.workBytes = static_cast<uint32_t>(floats * 4);
    b.planeFloats = static_cast<uint32_t>(planes);
    b.ubBytes = static_cast<uint32_t>(total);
    return total <= chip.ubBytes;
}

// A split of the tokens of all tiles over cores. Cycles of the busiest core; UINT64_MAX: the tile does not fit.
uint64_t Split(FusedLinearAttentionTilingData& p, const FusedLinearAttentionShape& s, const ChipSpec& chip, uint64_t tile, bool whole) {
    const uint64_t tiles = CeilDiv(p.valueDim, tile), groups = Min(tiles, chip.vectorCores), tokens = Max(1, p.tokens);
    const uint64_t parts = Min(chip.vectorCores / groups, whole ? p.sequences : tokens);
    const uint64_t length = CeilDiv(tokens, p.sequences);
    const uint64_t rows = whole ? CeilDiv(p.sequences, parts) * length : CeilDiv(tokens, parts);
    uint64_t chunk = Min(kMaxChunkTokens, s.packed && length > 1 ? rows : Min(rows, length));
    while (chunk > 1 && !SetBuffers(p, s, chip, tile, chunk)) --chunk;
    if (!SetBuffers(p, s, chip, tile, chunk)) return UINT64_MAX;
    p.valueTile = static_cast<uint32_t>(tile);
    p.valueTiles = static_cast<uint32_t>(tiles);
    p.wholeItems = whole;
    p.conv.parts = static_cast<uint32_t>(parts);
    p.conv.tileGroups = static_cast<uint32_t>(groups);
    p.usedCores = static_cast<uint32_t>(parts * groups);
    const uint64_t steps = CeilDiv(rows, Min(chunk, length)), rounds = CeilDiv(tiles, groups);
    const uint64_t bytes = (4 * rows + (whole ? 0 : 2 * (p.taps - 1))) * tile * s.elementBytes;
    const bool sync = !whole && s.keepsConvState && p.taps > 1;
    return rounds * (bytes / kBytesPerCycle + steps * kCyclesPerStep) + (sync ? kCyclesOfSync : 0);
}

}  // namespace

bool TileShortConv(FusedLinearAttentionTilingData& data, const FusedLinearAttentionShape& shape, const ChipSpec& chip) {
    const uint64_t narrowest = Min(data.valueDim, kMinRowBytes / shape.elementBytes);
    FusedLinearAttentionTilingData best = data;
    uint64_t least = UINT64_MAX;
    for (uint64_t tiles = 1;; ++tiles) {
        const uint64_t tile = tiles == 1 ? data.valueDim : AlignUp(CeilDiv(data.valueDim, tiles), kFloatLanes);
        for (const bool whole : {true, false}) {
            FusedLinearAttentionTilingData plan = data;
            const uint64_t cycles = Split(plan, shape, chip, tile, whole);
            if (cycles >= least) continue;
            least = cycles;
            best = plan;
        }
        if (tile <= Max(narrowest, kFloatLanes) || (least != UINT64_MAX && tiles >= chip.vectorCores)) break;
    }
    if (least == UINT64_MAX) SetBuffers(best, shape, chip, Min(data.valueDim, kFloatLanes), 1);
    data = best;
    return least != UINT64_MAX;
}

}  // namespace custom_ops
