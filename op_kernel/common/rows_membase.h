// float32 rows in UB by instructions that both families have, written for the 910B family: one covers as many rows or columns as its 255
// repeats reach.
#pragma once

#include "rows_copy.h"

namespace hc {

constexpr uint32_t kBlockFloats = 8;
constexpr uint32_t kMaxRepeats = 255;
constexpr uint32_t kMaxStride = 255;    // of a repeat, in blocks

// The vector pipe of the 950 is in order.
__aicore__ inline void FenceVector() {
#if !defined(__DAV_C310__)
    AscendC::PipeBarrier<PIPE_V>();
#endif
}

__aicore__ inline AscendC::BinaryRepeatParams BinaryStrides(uint32_t src1Block, uint32_t dst, uint32_t src0, uint32_t src1) {
    return AscendC::BinaryRepeatParams(1, 1, static_cast<uint8_t>(src1Block), static_cast<uint8_t>(dst), static_cast<uint8_t>(src0),
                                       static_cast<uint8_t>(src1));
}

// Whether to go down the columns (a repeat per row) instead of along the rows (an instruction per row).
__aicore__ inline bool ByColumn(uint32_t lanes, uint32_t rows, uint32_t pitch) {
    return rows > CeilDiv(lanes, kLanes) && pitch / kBlockFloats <= kMaxStride;
}

// dst[r, 0:lanes] += src[r, 0:lanes]; rows `pitch` floats apart (a multiple of 8).
__aicore__ inline void AddRows(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& src, uint32_t lanes,
                               uint32_t rows, uint32_t pitch) {
    if (!ByColumn(lanes, rows, pitch)) {
        for (uint32_t row = 0; row < rows; ++row)
            AscendC::Add(dst[row * pitch], dst[row * pitch], src[row * pitch], static_cast<int32_t>(lanes));
        return;
    }
    const uint32_t stride = pitch / kBlockFloats;
    for (uint32_t lane = 0; lane < lanes; lane += kLanes)
        for (uint32_t row = 0; row < rows; row += kMaxRepeats) {
            const uint32_t at = row * pitch + lane;
            AscendC::Add(dst[at], dst[at], src[at], static_cast<uint64_t>(Min(kLanes, lanes - lane)),
                         static_cast<uint8_t>(Min(kMaxRepeats, rows - row)), BinaryStrides(1, stride, stride, stride));
        }
}

// dst = src * block[0], `count` floats; block holds 8 copies.
__aicore__ inline void MulByBlock(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& src,
                                  const AscendC::LocalTensor<float>& block, uint32_t count) {
    const uint32_t repeats = count / kLanes, tail = count % kLanes;
    for (uint32_t r = 0; r < repeats; r += kMaxRepeats)
        AscendC::Mul(dst[r * kLanes], src[r * kLanes], block, static_cast<uint64_t>(kLanes),
                     static_cast<uint8_t>(Min(kMaxRepeats, repeats - r)), BinaryStrides(0, 8, 8, 0));
    if (tail != 0)
        AscendC::Mul(dst[repeats * kLanes], src[repeats * kLanes], block, static_cast<uint64_t>(tail), static_cast<uint8_t>(1),
                     BinaryStrides(0, 8, 8, 0));
}

// data[r, 0:lanes] *= blocks[r]: a block holds 8 copies of one value.
__aicore__ inline void MulRowsByBlock(const AscendC::LocalTensor<float>& data, const AscendC::LocalTensor<float>& blocks,
                                      uint32_t lanes, uint32_t rows, uint32_t pitch) {
    if (ByColumn(lanes, rows, pitch)) {
        const uint32_t stride = pitch / kBlockFloats;
        for (uint32_t lane = 0; lane < lanes; lane += kLanes)
            for (uint32_t row = 0; row < rows; row += kMaxRepeats) {
                const uint32_t at = row * pitch + lane;
                AscendC::Mul(data[at], data[at], blocks[row * kBlockFloats], static_cast<uint64_t>(Min(kLanes, lanes - lane)),
                             static_cast<uint8_t>(Min(kMaxRepeats, rows - row)), BinaryStrides(0, stride, stride, 1));
            }
        return;
    }
    for (uint32_t row = 0; row < rows; ++row) MulByBlock(data[row * pitch], data[row * pitch], blocks[row * kBlockFloats], lanes);
}

// data[r, 0:width] = sum of the `count` pieces of `width` floats that row r consists of. Halves are added until one piece is
// left, (p0 + p2) + (p1 + p3) for four; an odd piece joins the first. Ends fenced.
__aicore__ inline void SumPieces(const AscendC::LocalTensor<float>& data, uint32_t width, uint32_t count, uint32_t rows,
                                 uint32_t pitch) {
    while (count > 1) {
        const uint32_t half = count / 2;
        AddRows(data, data[half * width], half * width, rows, pitch);
        FenceVector();
        if (count % 2 != 0) {
            AddRows(data, data[2 * half * width], width, rows, pitch);
            FenceVector();
        }
        count = half;
    }
}

// sums[r] = sum of data[r, 0:lanes]; `lanes` a multiple of 8. Halves are added down to one repeat, then its lanes pairwise.
// Destroys data. Ends fenced.
__aicore__ inline void SumLanes(const AscendC::LocalTensor<float>& sums, const AscendC::LocalTensor<float>& data, uint32_t lanes,
                                uint32_t rows, uint32_t pitch) {
    while (lanes > kLanes) {
        const uint32_t half = AlignUp(CeilDiv(lanes, 2), kBlockFloats);
        AddRows(data, data[half], lanes - half, rows, pitch);
        FenceVector();
        lanes = half;
    }
    const uint32_t stride = pitch / kBlockFloats, step = stride <= kMaxStride ? kMaxRepeats : 1;
    for (uint32_t row = 0; row < rows; row += step)
        AscendC::WholeReduceSum(sums[row], data[row * pitch], static_cast<int32_t>(lanes), static_cast<int32_t>(Min(step, rows - row)), 1, 1,
                                static_cast<int32_t>(step == 1 ? 0 : stride));
    FenceVector();
}

}  // namespace hc
