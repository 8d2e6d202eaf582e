// Plan of hc_post, written by op_host/hc_post/hc_post_tiling.cpp and read by both kernels.
#pragma once

#include <cstdint>

struct HcPostTilingData {
    uint32_t tokens;           // T, rows of the call; 0 is legal
    uint32_t hcMult;           // n, residual streams: 1 .. 16
    uint32_t hidden;           // d

    // Cores. coresPerToken cores share the columns of the same rows: core c works on row group c / coresPerToken, columns from
    // (c % coresPerToken) * columnsPerCore. The first formerCores groups have rowsPerFormer rows, the others rowsPerTail.
    uint32_t usedCores;
    uint32_t coresPerToken;
    uint32_t columnsPerCore;   // d, or a multiple of 256 so that every slice starts on 512 B
    uint32_t formerCores;      // row groups
    uint32_t rowsPerFormer;
    uint32_t rowsPerTail;

    uint32_t batchRows;        // tokens whose post and comb are fetched together

    // The tile: rowFactor tokens, dFactor columns of x and of all streams.
    uint32_t rowFactor;        // 1 when dLoop > 1
    uint32_t dFactor;          // elements; columnsPerCore, or a multiple of 64
    uint32_t dLoop;            // ceil(columnsPerCore / dFactor)

    // UB, bytes of one buffer each.
    uint32_t weightBytes;      // post of a batch, then its comb from combOffset; two buffers
    uint32_t combOffset;       // elements
    uint32_t valueBytes;       // the same values in float32
    uint32_t inBytes;          // tile of x, then of residual from residualOffset; two buffers
    uint32_t residualOffset;   // elements
    uint32_t outBytes;         // tile of the result; two buffers
    uint32_t sumBytes;         // membase, 16-bit x: the result in float32
    uint32_t wideBytes;        // membase, 16-bit x: one stream in float32; two buffers
    uint32_t ubBytes;          // all of them
};
