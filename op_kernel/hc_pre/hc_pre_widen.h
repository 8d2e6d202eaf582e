// 16-bit x as float32 for the cube, which then takes hc_fn as it is: for few tokens hc_fn is most of the bytes, and they move once.
#pragma once

#include "hc_pre_shares.h"

namespace hc {

template <typename T>
class WidenX {
public:
    // wide: [T][xPitch]
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR wide, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x));
        wide_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(wide));
        plan_ = plan;
        pipe->InitBuffer(xQue_, plan_.tileBuffers, plan_.xBytes);
        pipe->InitBuffer(wideQue_, plan_.tileBuffers, plan_.wideBytes);
    }

    // All tokens over a slice of the columns.
    __aicore__ inline void Process(const Span& slice) {
        if (slice.count == 0) return;
        for (uint32_t token = 0; token < plan_.rows.tokens; token += plan_.groupTokens)
            ProcessTokens(token, Min(plan_.groupTokens, plan_.rows.tokens - token), slice);
    }

private:
    // Rows of whole 32 B blocks of x: past the last column of K they get the zeros of its last block.
    __aicore__ inline void ProcessTokens(uint32_t token, uint32_t tokens, const Span& slice) {
        const uint32_t pitch = RowPitch<T>(slice.count);
        AscendC::LocalTensor<T> x = xQue_.template AllocTensor<T>();
        CopyRowsIn(x, x_[static_cast<uint64_t>(token) * plan_.rowElements + slice.first], tokens, slice.count, plan_.rowElements);
        xQue_.EnQue(x);
        x = xQue_.template DeQue<T>();
        AscendC::LocalTensor<float> wide = wideQue_.template AllocTensor<float>();
        AscendC::Cast(wide, x, AscendC::RoundMode::CAST_NONE, static_cast<int32_t>(tokens * pitch));
        xQue_.FreeTensor(x);
        wideQue_.EnQue(wide);
        wide = wideQue_.template DeQue<float>();
        CopyRowsOut(wide_[static_cast<uint64_t>(token) * plan_.xPitch + slice.first], wide, tokens, pitch, plan_.xPitch);
        wideQue_.FreeTensor(wide);
    }

    HcPreTilingData plan_;
    AscendC::GlobalTensor<T> x_;
    AscendC::GlobalTensor<float> wide_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> xQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> wideQue_;
};

}  // namespace hc
