// Plan of fused_linear_attention, written by op_host/fused_linear_attention/fused_linear_attention_tiling.cpp and read by its kernels.
#pragma once

#include <cstdint>

// UB of the recurrent kernel. Offsets in elements of the buffer's type; a row of q, k starts every keyPitch elements, a row of v every
// valuePitch, both whole blocks of 32 B.
struct RecurrentBuffers {
    uint32_t keyPitch;
    uint32_t valuePitch;   // of the widest piece
    uint32_t gatePitch;    // kda: of a row of gate
    uint32_t chunkTokens;  // tokens that are prepared together

    uint32_t spare;        // 2: the next step's input and state come while a step computes; 1: no room for that, nor for weights beside it

    // One step's input, `spare` buffers: K - 1 + chunkTokens rows of q | k, as many of v, then what is brought when it changes.
    uint32_t inBytes;
    uint32_t inValues;      // rows of v
    uint32_t inKeyStates;   // conv_state of q, then of k, each keyStateStride long
    uint32_t keyStateStride;
    uint32_t inValueStates;
    uint32_t inKeyWeights;  // conv_weight of q, then of k
    uint32_t keyWeightStride;
    uint32_t inValueWeights;
    uint32_t inKeyBias;     // of q, then of k, keyPitch apart
    uint32_t inValueBias;
    uint32_t inGate;        // bytes; gate, a block of 32 B per token, kda a row
    uint32_t inBeta;        // bytes; a block per token
    uint32_t inGateBias;    // bytes; kda: the head's row of gate_bias

    uint32_t stateBytes;    // a tile of the state; `spare` buffers
    uint32_t outBytes;      // chunkTokens rows of the result; two buffers
    uint32_t convOutBytes;  // new conv_state of q, of k or of v; `spare` buffers

    // Work, float32.
    uint32_t workBytes;
    uint32_t scratchFloats;
    uint32_t sumRows;       // rows of the state whose products are summed side by side
    uint32_t ubBytes;       // all of them
};

// Split and UB of short_conv. A tile has valueTile of the H channels; offsets in elements.
struct ShortConvBuffers {
    uint32_t parts;        // cores that share the tokens of a tile
    uint32_t tileGroups;   // tiles that are worked on at a time
    uint32_t chunkTokens;  // tokens of a step
    uint32_t pitch;        // of a row in UB: whole blocks of 32 B

    // One step's input, two buffers: K - 1 + chunkTokens rows of B, as many of x, chunkTokens of C, then conv_state, weights and bias.
    uint32_t inBytes;
    uint32_t inX;
    uint32_t inC;
    uint32_t inStates;
    uint32_t inWeights;
    uint32_t inBias;

    uint32_t outBytes;      // chunkTokens rows of the result; two buffers
    uint32_t convOutBytes;  // new conv_state; two buffers
    uint32_t windowBytes;   // K - 1 + chunkTokens rows of B * x in the dtype of qkv
    uint32_t workBytes;     // float32
    uint32_t planeFloats;   // of it: rows of B and of x, one after the other, then the taps of a weight in the dtype of qkv
    uint32_t ubBytes;       // all of them
};

// Chunked: chunks of kChunkTokens tokens of one sequence, a window of them at a time, each head by head. Tc: float16; float32 for a
// float32 qkv.
constexpr uint32_t kChunkTokens = 64;
struct ChunkedPlan {
    uint32_t cubeCores;     // that run, each with two vector cores
    uint32_t windowChunks;  // chunks that are in the workspace together
    uint32_t lanes;         // states that a cube core walks by turns
    uint32_t spare;         // buffers of what comes and goes with a step of the scan: 2 where there is room
    uint32_t operandBuffers;  // of the state in L1

    // Bytes of the workspace; h of Hv or Hk heads, c of windowChunks chunks, n = kChunkTokens.
    uint64_t queries, keys;  // Tc [Hk, c, n, dk], prepared
    uint64_t values;         // Tc [Hv, c, n, dv], prepared; float16: times 2^-f
    uint64_t scales;         // float32 [Hv, c, 8]: f of a chunk
    uint64_t products;       // float32 [Hk, c, 2, n, n]: K K^T and K Q^T
    uint64_t squares;        // Tc [Hv, c, 3, n, n]: operands of the scan
    uint64_t scaled;         // Tc [Hv, c, 2, n, dk]: e^G Q, e^(Gn - G) K
    uint64_t factors;        // float32 [Hv, c, 3, 8]: e^Gn, 2^F, 2^-F, F the largest f of a sequence in the window
    uint64_t operands;       // Tc [cubeCores, lanes, dk, valueTile]: the state as an operand
    uint64_t updates;        // float32 [cubeCores, lanes, dk, valueTile]: what a chunk adds to the state
    uint64_t carried;        // float32 [2, Hv, dk, dv]: the state of a sequence that goes on in the next window
    uint64_t bytes;          // all of them
};

struct FusedLinearAttentionTilingData {
    // The call.
    uint32_t sequences;       // N
    uint32_t tokens;          // rows of qkv, B * L
    uint32_t sequenceTokens;  // of every sequence, where there is no cu_seqlens
    uint32_t slots;           // of the states
    uint32_t channels;        // D
    uint32_t convChannels;    // C
    uint32_t taps;            // K
    uint32_t keyHeads;
    uint32_t valueHeads;
    uint32_t keyDim;          // dk
    uint32_t valueDim;        // dv
    uint32_t perChannelGate;  // 1: a decay per row of the state
    uint32_t useQkL2norm;
    uint32_t gateFold;
    float queryScale;         // dk^-0.5

    uint32_t usedCores;

    // Recurrent: an item is a sequence and a key head; its pieces are the tiles of dv columns of the states of its value heads.
    uint32_t valueTile;       // columns of a piece; the last of a head may have fewer
    uint32_t valueTiles;      // per value head
    uint32_t pieces;          // of an item
    uint32_t wholeItems;      // 1: all pieces of an item on one core, which then writes the conv_state of its q and k. 0: after a SyncAll
    uint32_t sequenceWeight;  // tokens that loading and storing the state of a piece is worth

    RecurrentBuffers buffers;
    ShortConvBuffers conv;  // of short_conv, which uses valueTile and wholeItems too: 1: a core has whole sequences
    ChunkedPlan chunked;    // which uses valueTile, valueTiles and `buffers` too
};
