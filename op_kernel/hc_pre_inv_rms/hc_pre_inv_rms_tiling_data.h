// Plan of hc_pre_inv_rms, written by op_host/hc_pre_inv_rms/hc_pre_inv_rms_tiling.cpp and read by both kernels.
#pragma once

#include <cstdint>

struct HcPreInvRmsTilingData {
    uint64_t rowElements;    // R = hc_mult * d: elements under one root mean square
    uint32_t tokens;         // T, rows of the call; 0 is legal
    float epsilon;           // inside the root; 0 is legal
    float inverseCount;      // 1 / R

    // Cores: the first formerCores cores take rowsPerFormer rows, the others rowsPerTail.
    uint32_t usedCores;      // 1 .. vector cores of the chip
    uint32_t formerCores;
    uint32_t rowsPerFormer;
    uint32_t rowsPerTail;    // rowsPerFormer or one row less

    // One DMA: rowFactor whole rows, or one columnFactor wide piece of a row.
    uint32_t rowFactor;
    uint32_t columnFactor;   // elements; R when whole rows fit, else a multiple of 64
    uint32_t columnLoop;     // ceil(R / columnFactor)

    // One pass of the vector unit inside a DMA tile (membase): workRows rows, or workColumns of one row.
    uint32_t workRows;
    uint32_t workColumns;    // elements; a padded row, or a multiple of 64

    uint32_t outRows;        // rows whose sums are finished and written out together

    // UB, bytes of one buffer each (membase and regbase use different subsets; unused ones are 0).
    uint32_t xBytes;         // x tile, two buffers
    uint32_t workBytes;      // squares, and float32 copy of 16-bit x
    uint32_t sumBytes;       // sums of outRows rows, and as many ones
    uint32_t outBytes;       // results of outRows rows, two buffers
    uint32_t ubBytes;        // all of them
};
