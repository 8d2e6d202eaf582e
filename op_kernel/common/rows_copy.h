// Rows between GM and UB with exact tails: a row starts on a 32 B block in UB, wherever it starts in GM.
#pragma once

#include "kernel_operator.h"

namespace hc {

constexpr uint32_t kBlockBytes = 32;
constexpr uint32_t kLanes = 64;  // floats of a vector repeat or register

__aicore__ inline uint32_t CeilDiv(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit; }
__aicore__ inline uint32_t AlignUp(uint32_t value, uint32_t unit) { return CeilDiv(value, unit) * unit; }
__aicore__ inline uint32_t Min(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Elements between the starts of two rows in UB.
template <typename T>
__aicore__ inline uint32_t RowPitch(uint32_t columns) {
    return AlignUp(columns, kBlockBytes / sizeof(T));
}

// GM rows are `gmPitch` elements apart. The rest of a row's last block is filled with zeros.
template <typename T>
__aicore__ inline void CopyRowsIn(const AscendC::LocalTensor<T>& local, const AscendC::GlobalTensor<T>& global, uint32_t rows,
                                  uint32_t columns, uint32_t gmPitch) {
    const uint32_t rowBytes = columns * sizeof(T);
    AscendC::DataCopyExtParams params;
    AscendC::DataCopyPadExtParams<T> pad;
    if (gmPitch == columns && rowBytes % kBlockBytes == 0) {  // one burst
        params.blockCount = 1;
        params.blockLen = rows * rowBytes;
        params.srcStride = 0;
    } else {
        params.blockCount = static_cast<uint16_t>(rows);
        params.blockLen = rowBytes;
        params.srcStride = (gmPitch - columns) * sizeof(T);
        pad.isPad = rowBytes % kBlockBytes != 0;
        pad.rightPadding = static_cast<uint8_t>(RowPitch<T>(columns) - columns);
    }
    params.dstStride = 0;
    params.rsv = 0;
    AscendC::DataCopyPad(local, global, params, pad);
}

// The reverse; only the `columns` elements of each row are written.
template <typename T>
__aicore__ inline void CopyRowsOut(const AscendC::GlobalTensor<T>& global, const AscendC::LocalTensor<T>& local, uint32_t rows,
                                   uint32_t columns, uint32_t gmPitch) {
    const uint32_t rowBytes = columns * sizeof(T);
    AscendC::DataCopyExtParams params;
    if (gmPitch == columns && rowBytes % kBlockBytes == 0) {
        params.blockCount = 1;
        params.blockLen = rows * rowBytes;
        params.dstStride = 0;
    } else {
        params.blockCount = static_cast<uint16_t>(rows);
        params.blockLen = rowBytes;
        params.dstStride = (gmPitch - columns) * sizeof(T);
    }
    params.srcStride = 0;
    params.rsv = 0;
    AscendC::DataCopyPad(global, local, params);
}

// `count` elements that are contiguous on both sides.
template <typename T>
__aicore__ inline void CopyFlatIn(const AscendC::LocalTensor<T>& local, const AscendC::GlobalTensor<T>& global, uint32_t count) {
    CopyRowsIn(local, global, 1, count, count);
}
template <typename T>
__aicore__ inline void CopyFlatOut(const AscendC::GlobalTensor<T>& global, const AscendC::LocalTensor<T>& local, uint32_t count) {
    CopyRowsOut(global, local, 1, count, count);
}

}  // namespace hc
