// mixes and rsqrt as the caller gives them.
#pragma once

#include "../common/rows_copy.h"
#include "../common/sinkhorn_rows_plan.h"

namespace hc {

class GivenMixes {
public:
    __aicore__ inline void Init(GM_ADDR mixes, GM_ADDR rsqrt, const SinkhornRowsPlan& plan) {
        mixes_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(mixes));
        rsqrt_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(rsqrt));
        mix_ = (2 + plan.hcMult) * plan.hcMult;
        pitch_ = plan.mixPitch;
        rsqrtOffset_ = plan.rsqrtOffset / sizeof(float);
    }

    __aicore__ inline void CopyIn(const AscendC::LocalTensor<float>& mixes, uint64_t row, uint32_t rows, bool) {
        if (pitch_ == mix_) {
            CopyFlatIn(mixes, mixes_[row * mix_], rows * mix_);
        } else {
            CopyRowsIn(mixes, mixes_[row * mix_], rows, mix_, mix_);
        }
        CopyFlatIn(mixes[rsqrtOffset_], rsqrt_[row], rows);
    }

#if defined(__DAV_C310__)
    __aicore__ inline void Prepare(const AscendC::LocalTensor<float>&, uint32_t, __ubuf__ uint32_t*) {}  // as they are
#else
    // Tokens that fill up the last chunk get zeros.
    __aicore__ inline void Prepare(const AscendC::LocalTensor<float>& mixes, uint32_t rows, uint32_t slots,
                                   const AscendC::LocalTensor<float>&) {
        const uint32_t rows8 = AlignUp(rows, kBlockBytes / sizeof(float));
        if (rows < slots) AscendC::Duplicate(mixes[rows * pitch_], 0.0f, static_cast<int32_t>((slots - rows) * pitch_));
        if (rows8 < slots) AscendC::Duplicate(mixes[rsqrtOffset_ + rows8], 0.0f, static_cast<int32_t>(slots - rows8));
        AscendC::PipeBarrier<PIPE_V>();
    }
#endif

private:
    AscendC::GlobalTensor<float> mixes_, rsqrt_;
    uint32_t mix_ = 0, pitch_ = 0, rsqrtOffset_ = 0;
};

}  // namespace hc
