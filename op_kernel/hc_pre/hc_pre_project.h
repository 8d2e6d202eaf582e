// Projection on vector cores: a core multiplies its slice of the columns of its tokens and hc_fn.
//
//   partial[part][t][m]   = sum over the slice of x[t, k] * fn[m, k],   partial[part][t][mix] = sum of x[t, k]^2
//
// `Kernel`, which derives from this, adds InitWork, StartSums, Accumulate and Reduce: 64 lanes are accumulated per token and mix.
#pragma once

#include "hc_pre_shares.h"

namespace hc {

template <typename Kernel, typename T>
class ProjectRows {
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
        Self().InitWork(pipe);
    }

    __aicore__ inline void Process(uint32_t core) {
        const uint32_t part = core % plan_.slices.count;
        const Span slice(plan_.slices, part, plan_.rowElements), block(plan_.blocks, core / plan_.slices.count, plan_.rows.tokens);
        const bool ahead = plan_.tileBuffers > 1;
        for (uint32_t token = block.first; token < block.first + block.count; token += plan_.groupTokens) {
            const uint32_t tokens = Min(plan_.groupTokens, block.first + block.count - token);
            CopyIn(token, tokens, slice, 0);
            Self().StartSums(tokens);
            for (uint32_t column = 0; column < slice.count; column += plan_.tileColumns) {
                if (ahead) CopyIn(token, tokens, slice, column + plan_.tileColumns);
                Self().Accumulate(tokens, Min(plan_.tileColumns, slice.count - column));
                if (!ahead) CopyIn(token, tokens, slice, column + plan_.tileColumns);
            }
            Self().Reduce(tokens);
            CopyOut(part, token, tokens);
        }
    }

private:
    __aicore__ inline Kernel& Self() { return *static_cast<Kernel*>(this); }

    __aicore__ inline void CopyIn(uint32_t token, uint32_t tokens, const Span& slice, uint32_t column) {
        if (column >= slice.count) return;
        const uint32_t columns = Min(plan_.tileColumns, slice.count - column), k = slice.first + column;
        AscendC::LocalTensor<T> x = xQue_.template AllocTensor<T>();
        CopyRowsIn(x, x_[static_cast<uint64_t>(token) * plan_.rowElements + k], tokens, columns, plan_.rowElements);
        xQue_.EnQue(x);
        AscendC::LocalTensor<float> fn = fnQue_.template AllocTensor<float>();
        CopyRowsIn(fn, fn_[k], plan_.mix, columns, plan_.rowElements);
        fnQue_.EnQue(fn);
    }

    __aicore__ inline void CopyOut(uint32_t part, uint32_t token, uint32_t tokens) {
        AscendC::LocalTensor<float> out = outQue_.template DeQue<float>();
        CopyFlatOut(partials_[(static_cast<uint64_t>(part) * plan_.rows.tokens + token) * plan_.partialPitch], out,
                    tokens * plan_.partialPitch);
        outQue_.FreeTensor(out);
    }

    AscendC::GlobalTensor<T> x_;
    AscendC::GlobalTensor<float> fn_, partials_;

protected:
    HcPreTilingData plan_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> fnQue_, xQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> sumBuf_;
};

}  // namespace hc
