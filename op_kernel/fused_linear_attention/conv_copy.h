// Copies of the convolution's inputs: rows at a pitch of their own in UB.
#pragma once

#include "../common/rows_copy.h"

namespace hc {

// 16- and 32-bit types as the bits that gathers move.
template <typename T>
struct BitsOf {
    using Type = uint16_t;
};
template <>
struct BitsOf<float> {
    using Type = uint32_t;
};
template <typename T>
using Bits = typename BitsOf<T>::Type;

template <typename T>
__aicore__ inline AscendC::LocalTensor<Bits<T>> AsBits(const AscendC::LocalTensor<T>& tensor) {
    return tensor.template ReinterpretCast<Bits<T>>();
}

// Rows `gmPitch` elements apart in GM, `ubPitch` apart in UB, where both are whole blocks. The rest of a row's last block: zeros.
template <typename T>
__aicore__ inline void CopyRowsTo(const AscendC::LocalTensor<T>& local, uint32_t ubPitch, const AscendC::GlobalTensor<T>& global,
                                  uint32_t rows, uint32_t columns, uint32_t gmPitch) {
    AscendC::DataCopyExtParams params;
    AscendC::DataCopyPadExtParams<T> pad;
    params.blockCount = static_cast<uint16_t>(rows);
    params.blockLen = columns * sizeof(T);
    params.srcStride = rows == 1 ? 0 : (gmPitch - columns) * sizeof(T);
    params.dstStride = (ubPitch - RowPitch<T>(columns)) * sizeof(T) / kBlockBytes;
    params.rsv = 0;
    pad.isPad = RowPitch<T>(columns) != columns;
    pad.rightPadding = static_cast<uint8_t>(RowPitch<T>(columns) - columns);
    AscendC::DataCopyPad(local, global, params, pad);
}

}  // namespace hc
