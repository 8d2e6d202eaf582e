// Plan of the rows of hc_pre_sinkhorn and hc_pre (weights, Sinkhorn, weighted sum), written by op_host/common/sinkhorn_rows_tiling.cpp.
#pragma once

#include <cstdint>

struct SinkhornRowsPlan {
    uint32_t tokens;           // T, rows of the call; 0 is legal
    uint32_t hcMult;           // n, residual streams: 1 .. 16
    uint32_t hidden;           // d
    uint32_t sinkhornIters;    // 1 .. 2^31 - 1
    float hcEps;

    // Cores. coresPerToken cores share the columns of the same rows (1 unless T is at most half the cores): core c works on
    // row group c / coresPerToken, columns from (c % coresPerToken) * columnsPerCore. The first formerCores groups have
    // rowsPerFormer rows, the others rowsPerTail.
    uint32_t usedCores;
    uint32_t coresPerToken;
    uint32_t columnsPerCore;   // d, or a multiple of 256 so that every slice starts on 512 B
    uint32_t formerCores;      // row groups
    uint32_t rowsPerFormer;
    uint32_t rowsPerTail;

    // Weights (pre, post, comb) are computed for batchRows tokens at a time, tokens across lanes, chunkTokens to a plane.
    uint32_t batchRows;
    uint32_t chunkTokens;      // membase: lanes of a plane, multiple of 8, at most 64; regbase: 64
    uint32_t mixPitch;         // floats between the mixes of two tokens in UB
    uint32_t mixScales;        // floats behind rsqrt that come with the mixes: 0, or factors of hc_pre's columns
    uint32_t mixParts;         // sums that make up a token's mixes: 1, or the parts of hc_pre's projection

    // The x tile: rowFactor rows of dFactor columns.
    uint32_t rowFactor;        // 1 when dLoop > 1
    uint32_t dFactor;          // elements; columnsPerCore when they fit, else a multiple of 64
    uint32_t dLoop;            // ceil(columnsPerCore / dFactor)

    // UB, bytes of one buffer each.
    uint32_t mixBytes;         // mixes of a batch (all parts), then its rsqrt from rsqrtOffset
    uint32_t rsqrtOffset;      // bytes
    uint32_t postBytes;        // post of a batch
    uint32_t combBytes;        // comb_frag of a batch
    uint32_t preBytes;         // pre of a batch: one 32 B block (membase) or one float (regbase) per token and stream
    uint32_t constantBytes;    // hc_base, hc_scale
    uint32_t planeBytes;       // comb as planes, and their sums: of a batch (membase), of 64 tokens (regbase, n != 4)
    uint32_t workBytes;        // membase: pre and post as planes, later the float32 copy of a 16-bit x tile
    uint32_t xBytes;           // x tile, two buffers
    uint32_t yBytes;           // y tile, two buffers
    uint32_t ubBytes;          // all of them
};
