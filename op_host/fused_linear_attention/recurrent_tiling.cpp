#include "recurrent_tiling.h"

namespace custom_ops {
namespace {

constexpr uint64_t kMaxChunkTokens = 16;   // more only costs UB
constexpr uint64_t kUsefulChunkTokens = 4;  // fewer: every instruction of the preparation is mostly start-up
constexpr uint64_t kMinValueTile = 16;
constexpr uint64_t kMaxSumRows = 64;        // a power of two that divides kGroupRows
constexpr uint64_t kGroupRows = 128;        // of op_kernel/fused_linear_attention/state_membase.h

// Cycles of a vector core, of the 910B family; they only weigh plans against each other.
constexpr uint64_t kCyclesPerToken = 1100;      // preparation, fences
constexpr uint64_t kCyclesPerStateRepeat = 6;   // reads for uk and uq, decay and update of 64 elements of the state
constexpr uint64_t kCyclesPerPiece = 1000;      // latencies
constexpr uint64_t kStateBytesPerCycle = 22;    // load and store, all cores at once: 1.6 TB/s over 40 cores of 1.8 GHz
constexpr uint64_t kCyclesOfSync = 2500;
constexpr uint64_t kCyclesPerKeyState = 1800;   // conv_state of q and k of an item, after the SyncAll

uint64_t TokenCycles(const FusedLinearAttentionTilingData& p, uint64_t tile) {
    return kCyclesPerToken + kCyclesPerStateRepeat * p.keyDim * CeilDiv(tile, kFloatLanes);
}
uint64_t StateCycles(const FusedLinearAttentionTilingData& p, uint64_t tile) {
    return kCyclesPerPiece + 8 * p.keyDim * tile / kStateBytesPerCycle;
}

// UB of a tile and a chunk of tokens. True: it fits.
bool SetBuffers(FusedLinearAttentionTilingData& p, const FusedLinearAttentionShape& s, const ChipSpec& chip, uint64_t tile, uint64_t chunk,
                uint32_t spare) {
    RecurrentBuffers& b = p.buffers;
    const uint64_t block = kBlockBytes / s.elementBytes, taps = p.taps, history = taps - 1, rows = history + chunk;
    const bool channels = p.perChannelGate != 0, narrow = s.elementBytes == 2;
    const uint64_t keyPitch = AlignUp(p.keyDim, block), valuePitch = AlignUp(tile, block);
    const uint64_t gatePitch = channels ? AlignUp(p.keyDim, kBlockBytes / s.gateBytes) : 0;
    b.keyPitch = static_cast<uint32_t>(keyPitch);
    b.valuePitch = static_cast<uint32_t>(valuePitch);
    b.gatePitch = static_cast<uint32_t>(gatePitch);
    b.chunkTokens = static_cast<uint32_t>(chunk);
    b.spare = spare;

    Places place{block};
    b.keyStateStride = static_cast<uint32_t>(AlignUp(p.keyDim * history, block));
    b.keyWeightStride = static_cast<uint32_t>(AlignUp(p.keyDim * taps, block));
    place(rows * 2 * keyPitch);
    b.inValues = place(rows * valuePitch);
    b.inKeyStates = place(2 * b.keyStateStride);
    b.inValueStates = place(tile * history);
    Places before{block};  // one buffer: weights are in it before the rest comes
    Places& weights = spare == 1 ? before : place;
    b.inKeyWeights = weights(2 * b.keyWeightStride);
    b.inValueWeights = weights(tile * taps);
    b.inKeyBias = weights(2 * keyPitch);
    b.inValueBias = weights(valuePitch);
    b.inGate = place((channels ? gatePitch * s.gateBytes : kBlockBytes) * chunk / s.elementBytes) * s.elementBytes;
    b.inBeta = place(kBlockBytes * chunk / s.elementBytes) * s.elementBytes;
    b.inGateBias = place(channels && s.gateFold ? AlignUp(p.keyDim, kBlockFloats) * 4 / s.elementBytes : 0) * s.elementBytes;
    b.inBytes = static_cast<uint32_t>(Max(before.end, place.end) * s.elementBytes);

    const uint64_t widest = Max(p.keyDim, tile), eight = AlignUp(chunk, kBlockFloats);
    const uint64_t stateRow = AlignUp(tile, kBlockFloats), keyRow = 2 * keyPitch;
    // regbase loads whole registers: the last load of a row may start on its last element.
    const uint64_t overrun = chip.regbase && stateRow % kFloatLanes != 0 ? kFloatLanes * 4 : 0;
    b.stateBytes = static_cast<uint32_t>(p.keyDim * stateRow * 4 + overrun);
    b.outBytes = static_cast<uint32_t>(chunk * valuePitch * s.elementBytes);
    b.convOutBytes = static_cast<uint32_t>(AlignUp(Max(1, widest * history) * s.elementBytes, kBlockBytes));
    b.sumRows = kMaxSumRows;
    while (b.sumRows / 2 >= p.keyDim) b.sumRows /= 2;

    b.scratchFloats = static_cast<uint32_t>(Max(Max(chunk * Max(keyRow, valuePitch), AlignUp(tile * history, kBlockFloats)),
                                                3 * (channels ? chunk * gatePitch : eight)));
    uint64_t floats = PreparationFloats(p, s, tile);
    // RecurrentMembase::InitState
    const uint64_t keyBlocks = AlignUp(Min(p.keyDim, kGroupRows), kBlockFloats) * kBlockFloats;
    if (!chip.regbase) floats += 3 * eight * kBlockFloats + (channels ? 3 : 2) * keyBlocks + (narrow ? chunk * valuePitch : 0);
    const auto total = [&] {
        b.workBytes = static_cast<uint32_t>((floats + (chip.regbase ? 0 : 2 * b.sumRows * stateRow)) * 4);
        const uint64_t spared = b.inBytes + b.stateBytes + (s.keepsConvState && history != 0 ? b.convOutBytes : 0);
        return b.spare * spared + 2 * AlignUp(b.outBytes, kBlockBytes) + b.workBytes;
    };
    while (b.sumRows > 8 && total() > chip.ubBytes) b.sumRows /= 2;
    const uint64_t ubBytes = total();
    b.ubBytes = static_cast<uint32_t>(ubBytes);
    return ubBytes <= chip.ubBytes;
}

// The widest tile of at most `tile` columns that fits, with as many tokens as do; without room for the next step's input if need be.
bool FitTile(FusedLinearAttentionTilingData& p, const FusedLinearAttentionShape& s, const ChipSpec& chip, uint64_t tile) {
    const uint64_t tokens = Max(1, CeilDiv(p.tokens, p.sequences));
    const uint64_t most = s.packed && tokens > 1 ? kMaxChunkTokens : Min(kMaxChunkTokens, tokens);
    const struct {
        uint32_t spare;
        uint64_t leastTokens;
    } rooms[] = {{2, Min(most, kUsefulChunkTokens)}, {2, 1}, {1, 1}};
    for (const auto& room : rooms)
        for (uint64_t columns = tile;; columns = AlignUp(CeilDiv(columns, 2), kBlockFloats)) {
            for (uint64_t chunk = most; chunk >= room.leastTokens; chunk /= 2)
                if (SetBuffers(p, s, chip, columns, chunk, room.spare)) {
                    p.valueTile = static_cast<uint32_t>(columns);
                    return true;
                }
            if (columns <= kBlockFloats) break;
        }
    return false;
}

// Cycles of the busiest core.
uint64_t SplitOverCores(FusedLinearAttentionTilingData& p, const FusedLinearAttentionShape& s, const ChipSpec& chip) {
    p.valueTiles = static_cast<uint32_t>(CeilDiv(p.valueDim, p.valueTile));
    p.pieces = p.valueHeads / p.keyHeads * p.valueTiles;
    const uint64_t items = static_cast<uint64_t>(p.sequences) * p.keyHeads, pieces = items * p.pieces;
    const uint64_t token = TokenCycles(p, p.valueTile), state = StateCycles(p, p.valueTile);
    const uint64_t piece = state + CeilDiv(p.tokens, p.sequences) * token;
    const uint64_t whole = CeilDiv(items, chip.vectorCores) * p.pieces * piece;
    uint64_t split = CeilDiv(pieces, chip.vectorCores) * piece;
    if (s.keepsConvState && p.taps > 1) split += kCyclesOfSync + CeilDiv(items, chip.vectorCores) * kCyclesPerKeyState;
    p.wholeItems = whole <= split;
    // As many cores as the busiest one's share needs: those with less would only take bandwidth from it. Sequences of unknown lengths are
    // split by tokens, over all.
    const uint64_t units = p.wholeItems != 0 ? items : pieces, cores = Min(chip.vectorCores, units);
    const bool uneven = s.packed && p.tokens != p.sequences;
    p.usedCores = static_cast<uint32_t>(uneven ? cores : CeilDiv(units, CeilDiv(units, cores)));
    p.sequenceWeight = static_cast<uint32_t>(Max(1, state / token));
    return Min(whole, split);
}

}  // namespace

uint64_t PreparationFloats(const FusedLinearAttentionTilingData& p, const FusedLinearAttentionShape& s, uint64_t tile) {
    const RecurrentBuffers& b = p.buffers;
    const uint64_t tokens = b.chunkTokens, taps = p.taps, history = taps - 1, keyRow = 2 * b.keyPitch, valueRow = b.valuePitch;
    const uint64_t eight = AlignUp(tokens, kBlockFloats), pair = AlignUp(2 * tokens, kBlockFloats);
    uint64_t floats = s.elementBytes == 2 ? (history + tokens) * Max(keyRow, valueRow) : 0;
    floats += tokens * (keyRow + valueRow) + b.scratchFloats + (taps + 1) * (keyRow + valueRow);
    floats += 3 * eight + 2 * pair + tokens * 2 * kBlockFloats + pair * kBlockFloats;
    if (p.perChannelGate != 0) floats += tokens * (b.gatePitch + keyRow);
    return floats + 2 * Max(b.keyPitch, valueRow) + AlignUp(p.keyDim * history, kBlockFloats) + AlignUp(tile * history, kBlockFloats);
}

bool TileRecurrent(FusedLinearAttentionTilingData& data, const FusedLinearAttentionShape& shape, const ChipSpec& chip,
                   uint64_t* modelled) {
    FusedLinearAttentionTilingData best = data;
    uint64_t least = UINT64_MAX;
    for (uint64_t tile = data.valueDim;; tile = AlignUp(CeilDiv(tile, 2), kBlockFloats)) {
        if (!FitTile(data, shape, chip, tile)) return false;
        const uint64_t cycles = SplitOverCores(data, shape, chip);
        if (cycles < least) {
            least = cycles;
            best = data;
        }
        if (tile <= kMinValueTile) break;
    }
    data = best;
    *modelled = least;
    return true;
}

}  // namespace custom_ops
