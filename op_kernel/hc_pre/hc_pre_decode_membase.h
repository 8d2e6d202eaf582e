// Projection on the vector cores of the 910B family (hc_pre_project.h): chunk by chunk of 64 columns; then lanes are added in pairs.
#pragma once

#include "../common/rows_membase.h"
#include "hc_pre_project.h"

namespace hc {

template <typename T>
class ProjectDecode : public ProjectRows<ProjectDecode<T>, T> {
    using Rows = ProjectRows<ProjectDecode<T>, T>;
    friend Rows;
    using Rows::fnQue_;
    using Rows::outQue_;
    using Rows::plan_;
    using Rows::sumBuf_;
    using Rows::xQue_;

    static constexpr bool kNarrow = sizeof(T) == 2;  // x needs a float32 copy

    __aicore__ inline void InitWork(AscendC::TPipe* pipe) {
        if (plan_.wideBytes != 0) pipe->InitBuffer(wideBuf_, plan_.wideBytes);
        sums_ = sumBuf_.template Get<float>();
        eighths_ = sums_[plan_.groupTokens * (plan_.mix + 1) * kLanes];
    }

    __aicore__ inline void StartSums(uint32_t tokens) {
        FenceVector();  // sums_ and eighths_ of the group before
        AscendC::Duplicate(sums_, 0.0f, static_cast<int32_t>(tokens * (plan_.mix + 1) * kLanes));
        AscendC::Duplicate(eighths_, 0.0f, static_cast<int32_t>(tokens * plan_.partialPitch * kBlockFloats));
    }

    __aicore__ inline void Accumulate(uint32_t tokens, uint32_t columns) {
        AscendC::LocalTensor<T> x = xQue_.template DeQue<T>();
        const uint32_t xPitch = RowPitch<T>(columns);
        AscendC::LocalTensor<float> wide;
        FenceVector();  // sums_ are zero, the copy's last use is over
        if constexpr (kNarrow) {
            wide = wideBuf_.Get<float>();
            AscendC::Cast(wide, x, AscendC::RoundMode::CAST_NONE, tokens * xPitch);
            xQue_.FreeTensor(x);
            FenceVector();
        } else {
            wide = x;
        }
        AscendC::LocalTensor<float> fn = fnQue_.template DeQue<float>();
        for (uint32_t lane = 0; lane < columns; lane += kLanes) {
            AddChunk(wide[lane], fn[lane], tokens, Min(kLanes, columns - lane), xPitch, RowPitch<float>(columns));
            FenceVector();
        }
        fnQue_.FreeTensor(fn);
        if constexpr (!kNarrow) xQue_.FreeTensor(x);
    }

    // sums[t][m] += x[t] * fn[m], sums[t][mix] += x[t] * x[t], lane by lane.
    __aicore__ inline void AddChunk(const AscendC::LocalTensor<float>& x, const AscendC::LocalTensor<float>& fn, uint32_t tokens,
                                    uint64_t lanes, uint32_t xPitch, uint32_t fnPitch) {
        const uint32_t fnStride = fnPitch / kBlockFloats, token = (plan_.mix + 1) * kLanes;
        for (uint32_t t = 0; t < tokens; ++t)
            for (uint32_t m = 0; m < plan_.mix; m += kMaxRepeats)
                AscendC::MulAddDst(sums_[t * token + m * kLanes], fn[m * fnPitch], x[t * xPitch], lanes,
                                   static_cast<uint8_t>(Min(kMaxRepeats, plan_.mix - m)), BinaryStrides(1, 8, fnStride, 0));
        const uint32_t tokenStride = token / kBlockFloats, xStride = xPitch / kBlockFloats;
        const uint32_t step = tokenStride <= kMaxStride ? kMaxRepeats : 1;
        for (uint32_t t = 0; t < tokens; t += step)
            AscendC::MulAddDst(sums_[t * token + plan_.mix * kLanes], x[t * xPitch], x[t * xPitch], lanes,
                               static_cast<uint8_t>(Min(step, tokens - t)), BinaryStrides(1, tokenStride, xStride, xStride));
    }

    // out[t][m] = sum of the 64 lanes, 8 and 8 of them; columns after mix: zeros.
    __aicore__ inline void Reduce(uint32_t tokens) {
        const uint32_t pitch = plan_.partialPitch, rows = plan_.mix + 1;
        for (uint32_t t = 0; t < tokens; ++t)
            for (uint32_t m = 0; m < rows; m += kMaxRepeats)
                AscendC::BlockReduceSum(eighths_[(t * pitch + m) * kBlockFloats], sums_[(t * rows + m) * kLanes],
                                        static_cast<int32_t>(Min(kMaxRepeats, rows - m)), static_cast<int32_t>(kLanes), 1, 1, 8);
        FenceVector();
        AscendC::LocalTensor<float> out = outQue_.template AllocTensor<float>();
        const uint32_t repeats = tokens * pitch / kBlockFloats;
        for (uint32_t r = 0; r < repeats; r += kMaxRepeats)
            AscendC::BlockReduceSum(out[r * kBlockFloats], eighths_[r * kLanes], static_cast<int32_t>(Min(kMaxRepeats, repeats - r)),
                                    static_cast<int32_t>(kLanes), 1, 1, 8);
        outQue_.EnQue(out);
    }

    AscendC::TBuf<AscendC::TPosition::VECCALC> wideBuf_;
    AscendC::LocalTensor<float> sums_, eighths_;
};

}  // namespace hc
