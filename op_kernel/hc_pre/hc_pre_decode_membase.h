// Projection on the vector cores of the 910B family: a core multiplies its slice of the columns of x and hc_fn.
//
//   partial[part][t][m]   = sum over the slice of x[t, k] * fn[m, k],   partial[part][t][mix] = sum of x[t, k]^2
//
// 64 lanes are accumulated per token and mix, chunk by chunk; then lanes are added in pairs.
#pragma once

#include "../common/rows_membase.h"
#include "hc_pre_shares.h"

namespace hc {

template <typename T>
class ProjectDecode {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR fn, GM_ADDR partials, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x));
        fn_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(fn));
        partials_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(partials));
        plan_ = plan;
        pipe->InitBuffer(fnQue_, plan_.tileBuffers, plan_.fnBytes);
        pipe->InitBuffer(xQue_, plan_.tileBuffers, plan_.xBytes);
        pipe->InitBuffer(outQue_, 1, plan_.outBytes);
        pipe->InitBuffer(sumBuf_, plan_.sumBytes);
        if (plan_.wideBytes != 0) pipe->InitBuffer(wideBuf_, plan_.wideBytes);
        sums_ = sumBuf_.Get<float>();
        eighths_ = sums_[plan_.groupTokens * (plan_.mix + 1) * kLanes];
    }

    __aicore__ inline void Process(uint32_t core) {
        const Span slice(plan_.slices, core, plan_.rowElements);
        if (slice.count == 0) return;
        for (uint32_t token = 0; token < plan_.rows.tokens; token += plan_.groupTokens) {
            const uint32_t tokens = Min(plan_.groupTokens, plan_.rows.tokens - token);
            FenceVector();  // eighths_ and sums_ of the group before
            AscendC::Duplicate(sums_, 0.0f, static_cast<int32_t>(tokens * (plan_.mix + 1) * kLanes));
            AscendC::Duplicate(eighths_, 0.0f, static_cast<int32_t>(tokens * plan_.partialPitch * kBlockFloats));
            CopyIn(token, tokens, slice, 0);
            for (uint32_t column = 0; column < slice.count; column += plan_.tileColumns) {
                const bool ahead = plan_.tileBuffers > 1;
                if (ahead) CopyIn(token, tokens, slice, column + plan_.tileColumns);
                Accumulate(tokens, Min(plan_.tileColumns, slice.count - column));
                if (!ahead) CopyIn(token, tokens, slice, column + plan_.tileColumns);
            }
            Reduce(tokens);
            CopyOut(core, token, tokens);
        }
    }

private:
    static constexpr bool kNarrow = sizeof(T) == 2;  // x needs a float32 copy

    __aicore__ inline void CopyIn(uint32_t token, uint32_t tokens, const Span& slice, uint32_t column) {
        if (column >= slice.count) return;
        const uint32_t columns = Min(plan_.tileColumns, slice.count - column), k = slice.first + column;
        AscendC::LocalTensor<T> x = xQue_.template AllocTensor<T>();
        CopyRowsIn(x, x_[static_cast<uint64_t>(token) * plan_.rowElements + k], tokens, columns, plan_.rowElements);
        xQue_.EnQue(x);
        AscendC::LocalTensor<float> fn = fnQue_.AllocTensor<float>();
        CopyRowsIn(fn, fn_[k], plan_.mix, columns, plan_.rowElements);
        fnQue_.EnQue(fn);
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
        AscendC::LocalTensor<float> fn = fnQue_.DeQue<float>();
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
        AscendC::LocalTensor<float> out = outQue_.AllocTensor<float>();
        const uint32_t repeats = tokens * pitch / kBlockFloats;
        for (uint32_t r = 0; r < repeats; r += kMaxRepeats)
            AscendC::BlockReduceSum(out[r * kBlockFloats], eighths_[r * kLanes], static_cast<int32_t>(Min(kMaxRepeats, repeats - r)),
                                    static_cast<int32_t>(kLanes), 1, 1, 8);
        outQue_.EnQue(out);
    }

    __aicore__ inline void CopyOut(uint32_t part, uint32_t token, uint32_t tokens) {
        AscendC::LocalTensor<float> out = outQue_.DeQue<float>();
        CopyFlatOut(partials_[(static_cast<uint64_t>(part) * plan_.rows.tokens + token) * plan_.partialPitch], out,
                    tokens * plan_.partialPitch);
        outQue_.FreeTensor(out);
    }

    HcPreTilingData plan_;
    AscendC::GlobalTensor<T> x_;
    AscendC::GlobalTensor<float> fn_, partials_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> fnQue_, xQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> sumBuf_, wideBuf_;
    AscendC::LocalTensor<float> sums_, eighths_;
};

}  // namespace hc
