#include "chunked_tiling.h"

#include "recurrent_tiling.h"

namespace custom_ops {
namespace {

constexpr uint64_t kFractal = 16;
constexpr uint64_t kMaxHead = 128;        // dk and dv: a state is one result of the cube in half of L0C
constexpr uint64_t kMaxLanes = 4;         // of op_kernel/fused_linear_attention/chunked_chunks.h
constexpr uint64_t kSolveBytes = 192 << 10;  // UB of ChunkedSolve with float32 operands, rounded up
constexpr uint64_t kL1Bytes = 512 << 10;
constexpr uint64_t kScanBytes = 1024;     // ChunkedScan: factors
constexpr uint64_t kSquare = kChunkTokens * kChunkTokens;
constexpr uint64_t kWindowBytes = 96 << 20;  // of the workspace that grows with the chunks of a window
constexpr uint64_t kMaxWindow = 128;      // chunks: of op_kernel/fused_linear_attention/chunked_solve.h
constexpr uint64_t kMinMeanTokens = kChunkTokens + 1;  // of a sequence: one chunk or less has no scan to split

// Cycles of the 910B family, of which the 950 takes up to a third less; they only weigh plans against each other.
constexpr uint64_t kCyclesOfStages = 12000;      // of a window: SyncAll, first copies
constexpr uint64_t kCyclesPerHeadChunk = 6000;   // convolution of 64 tokens of 128 channels
constexpr uint64_t kCyclesPerSolve = 12000;      // of a value head and chunk
constexpr uint64_t kCyclesPerStep = 4500, kCyclesPerStepTile = 3500;  // of a state and chunk: from operand to operand; for 128 columns
constexpr uint64_t kBusyPerStep = 2200, kBusyPerStepTile = 1200;      // of them those that no other lane uses
constexpr uint64_t kFloatSumsPerCycle = 256;  // of the 950's cube, for float32: 16 x 16

bool Takes(const FusedLinearAttentionShape& s, const ChipSpec& chip) {
    const uint64_t keyDim = static_cast<uint64_t>(s.heads.keyDim), valueDim = static_cast<uint64_t>(s.heads.valueDim);
    return chip.cubeCores != 0 && chip.ubBytes >= kSolveBytes && s.type->state == linear_attention::State::kDelta &&
           s.type->gate == linear_attention::Gate::kPerHead && s.useQkL2norm && keyDim <= kMaxHead && valueDim <= kMaxHead &&
           keyDim % kFractal == 0 && valueDim % kFractal == 0 && s.batch * s.length >= kMinMeanTokens * s.sequences;
}

// The prepare stage's UB: as for the recurrent kernel, with rows of one head and no state.
bool SetBuffers(FusedLinearAttentionTilingData& p, const FusedLinearAttentionShape& s, const ChipSpec& chip, uint32_t spare) {
    RecurrentBuffers& b = p.buffers;
    const uint64_t block = kBlockBytes / s.elementBytes, taps = p.taps, history = taps - 1, rows = history + kChunkTokens;
    const uint64_t pitch = Max(p.keyDim, p.valueDim);
    b = {};
    b.valuePitch = static_cast<uint32_t>(pitch);
    b.chunkTokens = kChunkTokens;
    b.spare = spare;
    Places place{block};
    place(rows * pitch);
    b.inValueStates = place(pitch * history);
    b.inValueWeights = place(pitch * taps);
    b.inValueBias = place(pitch);
    b.inBytes = static_cast<uint32_t>(place.end * s.elementBytes);
    b.stateBytes = kBlockBytes;
    b.outBytes = static_cast<uint32_t>(kChunkTokens * pitch * s.elementBytes);
    b.convOutBytes = static_cast<uint32_t>(AlignUp(Max(1, pitch * history) * s.elementBytes, kBlockBytes));
    b.scratchFloats = static_cast<uint32_t>(kChunkTokens * pitch);
    // ChunkedPrepare::InitState
    const uint64_t floats = PreparationFloats(p, s, p.valueTile) + AlignUp(pitch * history, kBlockFloats);
    b.workBytes = static_cast<uint32_t>(floats * 4);
    const uint64_t total = b.spare * (b.inBytes + b.stateBytes + b.convOutBytes) + 2 * b.outBytes + b.workBytes;
    b.ubBytes = static_cast<uint32_t>(total);
    return total <= chip.ubBytes;
}

void PlaceWorkspace(FusedLinearAttentionTilingData& p, const FusedLinearAttentionShape& s) {
    ChunkedPlan& w = p.chunked;
    const uint64_t operand = s.elementBytes, chunks = w.windowChunks, tile = uint64_t{p.keyDim} * p.valueTile;
    Places place{512};
    w.queries = place(p.keyHeads * chunks * kChunkTokens * p.keyDim * operand);
    w.keys = place(p.keyHeads * chunks * kChunkTokens * p.keyDim * operand);
    w.values = place(p.valueHeads * chunks * kChunkTokens * p.valueDim * operand);
    w.scales = place(p.valueHeads * chunks * kBlockBytes);
    w.products = place(p.keyHeads * chunks * 2 * kSquare * 4);
    w.squares = place(p.valueHeads * chunks * 3 * kSquare * operand);
    w.scaled = place(p.valueHeads * chunks * 2 * kChunkTokens * p.keyDim * operand);
    w.factors = place(p.valueHeads * chunks * 3 * kBlockBytes);
    w.operands = place(w.cubeCores * w.lanes * tile * operand);
    w.updates = place(w.cubeCores * w.lanes * tile * 4);
    w.carried = place(2 * uint64_t{p.valueHeads} * p.keyDim * p.valueDim * 4);
    w.bytes = place.end;
}

// Bytes of the workspace for a chunk of a window.
uint64_t ChunkBytes(const FusedLinearAttentionTilingData& p, uint64_t operand) {
    const uint64_t key = kChunkTokens * (2 * p.keyDim * operand) + 2 * kSquare * 4;
    const uint64_t value = (kChunkTokens * (p.valueDim + 2 * p.keyDim) + 3 * kSquare) * operand + 4 * kBlockBytes;
    return p.keyHeads * key + p.valueHeads * value;
}

}  // namespace

uint64_t TileChunked(FusedLinearAttentionTilingData& p, const FusedLinearAttentionShape& s, const ChipSpec& chip) {
    if (!Takes(s, chip)) return UINT64_MAX;
    ChunkedPlan& w = p.chunked;
    const uint64_t operand = s.elementBytes;
    const uint64_t chunks = s.packed ? p.tokens / kChunkTokens + s.sequences : s.sequences * CeilDiv(s.length, kChunkTokens);
    w.cubeCores = static_cast<uint32_t>(Min(chip.cubeCores, chip.vectorCores / 2));
    w.windowChunks = static_cast<uint32_t>(Min(Min(chunks, kMaxWindow), Max(4, kWindowBytes / ChunkBytes(p, operand))));
    p.usedCores = 2 * w.cubeCores;

    // Halves of a head where that spreads the states better; as many lanes as hide one another's handing over.
    const uint64_t half = AlignUp(CeilDiv(p.valueDim, 2), kFractal), heads = s.sequences * p.valueHeads;
    const auto lanesOf = [&](uint64_t tile) {
        const uint64_t room = (chip.ubBytes - kScanBytes) / (p.keyDim / 2 * tile * 4) - 3;
        return Min(Min(kMaxLanes, room), CeilDiv(heads * CeilDiv(p.valueDim, tile), w.cubeCores));
    };
    const auto scan = [&](uint64_t tile) {
        const uint64_t perBlock = CeilDiv(heads * CeilDiv(p.valueDim, tile), w.cubeCores);
        const uint64_t chain = kCyclesPerStep + kCyclesPerStepTile * tile / kMaxHead;
        const uint64_t products = kChunkTokens * (kChunkTokens * p.keyDim + 2 * kChunkTokens * tile + 3 * tile * p.keyDim);
        const uint64_t multiply = chip.regbase && operand == 4 ? products / kFloatSumsPerCycle : 0;  // else in the shadow of the copies
        const uint64_t busy = Max(kBusyPerStep + kBusyPerStepTile * tile / kMaxHead, multiply);
        return perBlock * Max(busy, chain / lanesOf(tile)) * CeilDiv(chunks, s.sequences);
    };
    const uint64_t tile = half < p.valueDim && scan(half) < scan(p.valueDim) ? half : p.valueDim;
    p.valueTile = static_cast<uint32_t>(tile);
    p.valueTiles = static_cast<uint32_t>(CeilDiv(p.valueDim, tile));
    w.lanes = static_cast<uint32_t>(lanesOf(tile));
    const uint64_t frame = (3 * kSquare + kChunkTokens * (3 * p.keyDim + tile)) * operand;
    const uint64_t kept = kChunkTokens * (p.keyDim + tile) * operand;
    w.operandBuffers = 2 * frame + kept + 2 * p.keyDim * tile * operand <= kL1Bytes ? 2 : 1;
    w.spare = (w.lanes + 5) * (p.keyDim / 2 * tile * 4) + kScanBytes <= chip.ubBytes ? 2 : 1;
    if (!SetBuffers(p, s, chip, 2) && !SetBuffers(p, s, chip, 1)) return UINT64_MAX;
    PlaceWorkspace(p, s);

    const uint64_t windows = CeilDiv(chunks, w.windowChunks), all = 2 * p.keyHeads + p.valueHeads;
    const uint64_t vectors = p.usedCores;
    return windows * kCyclesOfStages + CeilDiv(chunks * all, vectors) * kCyclesPerHeadChunk +
           CeilDiv(chunks * p.keyHeads, vectors) * (p.valueHeads / p.keyHeads) * kCyclesPerSolve + scan(tile);
}

}  // namespace custom_ops
