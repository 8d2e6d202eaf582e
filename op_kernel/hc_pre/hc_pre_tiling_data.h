// Plan of hc_pre, written by op_host/hc_pre/hc_pre_tiling.cpp and read by its kernels.
#pragma once

#include <cstdint>

#include "../common/sinkhorn_rows_plan.h"

// The ways to project, as tiling keys.
constexpr uint64_t kHcPreDecode = 0;   // vector cores, K = n * d (or many tokens) split over all of them; SyncAll; rows
constexpr uint64_t kHcPreGrid = 1;     // cube cores, tokens and K split; SyncAll; rows
constexpr uint64_t kHcPreStream = 2;   // cube cores, tokens split; the vector cores of each work on its last block of tokens
constexpr uint64_t kHcPreWiden = 3;    // grid of one block, whose 16-bit x the vector cores make float32 for the cube

constexpr uint32_t kWidestPitch = 65535;  // elements from row to row that a copy into L1 can step over; wider rows come one by one

// Equal shares of `units` up to one: the first (count - longer) take `units`, the others one more.
struct HcPreShares {
    uint32_t count;
    uint32_t longer;
    uint32_t units;
};

struct HcPreTilingData {
    uint32_t rowElements;      // K = n * d, 1 .. 2^31 - 1
    float inverseCount;        // 1 / K
    float normEps;
    uint32_t mix;              // n (n + 2)
    uint32_t partialPitch;     // floats of a token in a partial sum: mix of them from 0, its square sum(s) from squareColumn
    uint32_t squareColumn;     // decode: the sum of squares; cube: 16 products of rows, token t's square in column t % 16
    uint32_t parts;            // partial sums of a token

    // Vector cores before SyncAll: the columns of hc_fn (units of 16) that a core projects with (decode) or splits into terms.
    // Decode: core c has slice c % slices.count and token block c / slices.count.
    HcPreShares slices;
    uint32_t tileColumns;      // in UB at a time, multiple of 16
    uint32_t tileBuffers;      // 1 or 2
    uint32_t groupTokens;      // decode, widen: tokens in UB at a time
    uint32_t fnBytes;          // tile of hc_fn
    uint32_t xBytes;           // decode, widen: tile of x
    uint32_t wideBytes;        // decode, widen: float32 copy of a 16-bit x tile; grid, stream: a term as float32
    uint32_t sumBytes;         // decode: 64 lanes per token and mix, then (membase) 8 of each; cube, float16: maxima and scales of rows
    uint32_t outBytes;         // decode: partial sums; cube: a term
    uint32_t scaled;           // cube, float16: rows of hc_fn are scaled by powers of two

    // Blocks of tokens (units of 16); cube cores: parts of K (units of 16).
    HcPreShares blocks;        // decode: 1 or all cores; grid: one each; stream: block b is cube core b % cubeCores's
    HcPreShares kParts;        // stream: 1
    uint32_t cubeCores;        // that run
    uint32_t xPitch;           // elements from token to token of the cube's x: K; widen: K rounded up to 16
    uint32_t termColumns;      // of the terms of hc_fn in the workspace: K rounded up to 16; 0: the cube takes hc_fn itself
    uint32_t blockRows;        // of the longest block, multiple of 16
    uint32_t xL1;              // columns of x in L1 at a time: kL1, or a multiple of it if rows come one by one
    uint32_t kL1, kL0;         // columns of hc_fn in L1, and of both in L0 at a time
    uint32_t tileRows;         // tokens in L0A at a time, multiple of 16

    SinkhornRowsPlan rows;     // stream: of half a block
    uint32_t ubBytes;          // the larger of the two stages
};
