// The recurrent kernel on the 910B family. For every token:
//
//   uk = S^T k, uq = S^T q   from the state before the token; kda: with exp(g) k and exp(g) q
//   delta = beta (v - a uk)
//   out   = a uq + (k . q) delta
//   S     = a S + k delta^T   kda: rows by exp(g)
#pragma once

#include "recurrent_prepare.h"
#include "state_membase.h"

namespace hc {

template <typename T, typename G>
class RecurrentMembase : public RecurrentPrepare<RecurrentMembase<T, G>, T, G> {
    using Prepare = RecurrentPrepare<RecurrentMembase<T, G>, T, G>;
    using Rows = RecurrentRows<RecurrentMembase<T, G>, T, G>;
    friend Prepare;
    friend Rows;
    using Prepare::betas_;
    using Prepare::Carve;
    using Prepare::decayedKeys_;
    using Prepare::decays_;
    using Prepare::gates_;
    using Prepare::keys_;
    using Prepare::kNarrow;
    using Prepare::products_;
    using Prepare::values_;
    using Rows::outQue_;
    using Rows::plan_;
    using Rows::ub_;

    __aicore__ inline void InitState(uint32_t eight) {
        const uint32_t keyBlocks = AlignUp(Min(plan_.keyDim, kGroupRows), kBlockFloats) * kBlockFloats;
        const uint32_t stateRow = AlignUp(plan_.valueTile, kBlockFloats), out = ub_.chunkTokens * ub_.valuePitch;
        decayBlocks_ = Carve(eight * kBlockFloats);
        betaBlocks_ = Carve(eight * kBlockFloats);
        productBlocks_ = Carve(eight * kBlockFloats);
        kBlocks_ = Carve(keyBlocks);
        qBlocks_ = Carve(keyBlocks);
        if (plan_.perChannelGate != 0) rowBlocks_ = Carve(keyBlocks);
        sumK_ = Carve(ub_.sumRows * stateRow);
        sumQ_ = Carve(ub_.sumRows * stateRow);
        if constexpr (kNarrow) {
            out32_ = Carve(out);
            AscendC::Duplicate(out32_, 0.0f, static_cast<int32_t>(out));
        }
    }

    __aicore__ inline void Recur(const Step& step, uint32_t rowPitch) {
        const AscendC::LocalTensor<float> state = Rows::TakeState(step);
        const uint32_t lanes = AlignUp(step.columns, kBlockFloats);
        if (step.firstOfPiece && !Rows::ReadsState(step)) {
            AscendC::Duplicate(state, 0.0f, static_cast<int32_t>(plan_.keyDim * lanes));
            FenceVector();
        }
        if (step.tokens != 0) {
            if (plan_.perChannelGate == 0) Blocks(decayBlocks_, decays_, step.tokens);
            Blocks(betaBlocks_, betas_, step.tokens);
            Blocks(productBlocks_, products_, step.tokens);
            AscendC::LocalTensor<T> out = outQue_.template AllocTensor<T>();
            AscendC::LocalTensor<float> sums;
            if constexpr (kNarrow) sums = out32_;
            else sums = out;
            for (uint32_t t = 0; t < step.tokens; ++t) Token(sums[t * rowPitch], state, values_[t * rowPitch], t, lanes);
            if constexpr (kNarrow) AscendC::Cast(out, sums, AscendC::RoundMode::CAST_RINT, step.tokens * rowPitch);
            outQue_.EnQue(out);
        }
        Rows::GiveState(step);
    }

    __aicore__ inline void Token(const AscendC::LocalTensor<float>& out, const AscendC::LocalTensor<float>& state,
                                 const AscendC::LocalTensor<float>& v, uint32_t t, uint32_t lanes) {
        const bool channels = plan_.perChannelGate != 0;
        const uint32_t rows = plan_.keyDim, q = 2 * t * ub_.keyPitch, k = q + ub_.keyPitch;
        const int32_t count = static_cast<int32_t>(lanes);
        const AscendC::LocalTensor<float> decay = decayBlocks_[t * kBlockFloats], beta = betaBlocks_[t * kBlockFloats];
        const AscendC::LocalTensor<float> product = productBlocks_[t * kBlockFloats];
        const AscendC::LocalTensor<float> reads = channels ? decayedKeys_ : keys_;
        for (uint32_t row = 0; row < rows; row += kGroupRows) {
            const uint32_t group = Min(kGroupRows, rows - row);
            Blocks(kBlocks_, reads[k + row], group);
            Blocks(qBlocks_, reads[q + row], group);
            FenceVector();
            WeighState(sumK_, sumQ_, state[row * lanes], kBlocks_, qBlocks_, row == 0, group, lanes, ub_.sumRows);
        }
        AddSums(sumK_, sumQ_, Min(rows, ub_.sumRows), lanes);
        if (!channels) {
            MulByBlock(sumK_, sumK_, decay, lanes);
            MulByBlock(sumQ_, sumQ_, decay, lanes);
            MulByBlock(state, state, decay, rows * lanes);
            FenceVector();
        }
        AscendC::Sub(sumK_, v, sumK_, count);
        FenceVector();
        MulByBlock(sumK_, sumK_, beta, lanes);  // delta
        FenceVector();
        MulByBlock(out, sumK_, product, lanes);
        for (uint32_t row = 0; row < rows; row += kGroupRows) {
            const uint32_t group = Min(kGroupRows, rows - row);
            if (channels || rows > kGroupRows) {
                Blocks(kBlocks_, keys_[k + row], group);
                if (channels) Blocks(rowBlocks_, gates_[t * ub_.gatePitch + row], group);
                FenceVector();
                if (channels) MulRowsByBlock(state[row * lanes], rowBlocks_, lanes, group, lanes);
                FenceVector();
            }
            AddOuter(state[row * lanes], kBlocks_, sumK_, group, lanes);
            FenceVector();
        }
        AscendC::Add(out, out, sumQ_, count);
        FenceVector();
    }

    AscendC::LocalTensor<float> decayBlocks_, betaBlocks_, productBlocks_, kBlocks_, qBlocks_, sumK_, sumQ_, out32_;
    AscendC::LocalTensor<float> rowBlocks_;  // kda
};

}  // namespace hc
