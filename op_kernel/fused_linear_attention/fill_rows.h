// Rows of the result that no sequence computes: zeros for padding, NaN where a call does not fit.
#pragma once

#include "../common/rows_membase.h"
#include "sequences.h"

namespace hc {

using OutQue = AscendC::TQue<AscendC::TPosition::VECOUT, 1>;

// `count` equal elements into the queue; 16-bit ones by way of as many floats of scratch.
template <typename T>
__aicore__ inline void FillRows(OutQue& que, const AscendC::LocalTensor<float>& scratch, uint32_t count, float value) {
    AscendC::LocalTensor<T> out = que.AllocTensor<T>();
    FenceVector();
    if constexpr (sizeof(T) == 2) {
        AscendC::Duplicate(scratch, value, static_cast<int32_t>(count));
        FenceVector();
        AscendC::Cast(out, scratch, AscendC::RoundMode::CAST_RINT, count);
    } else {
        AscendC::Duplicate(out, value, static_cast<int32_t>(count));
    }
    que.EnQue(out);
}

// result[first, end) = NaN, shared out over `cores`, at most `most` elements at a time
template <typename T>
__aicore__ inline void FillWithNan(const AscendC::GlobalTensor<T>& result, OutQue& que, const AscendC::LocalTensor<float>& scratch,
                                   uint64_t first, uint64_t end, uint32_t cores, uint32_t most) {
    const uint64_t core = static_cast<uint64_t>(AscendC::GetBlockIdx()), own = first + (end - first) * (core + 1) / cores;
    for (uint64_t at = first + (end - first) * core / cores; at < own; at += most) {
        const uint32_t count = own - at < most ? static_cast<uint32_t>(own - at) : most;
        FillRows<T>(que, scratch, count, QuietNan());
        AscendC::LocalTensor<T> out = que.DeQue<T>();
        CopyFlatOut(result[at], out, count);
        que.FreeTensor(out);
    }
}

}  // namespace hc
