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
        const AscendC::LocalTensor<float> state = Rows::StateTile(Rows::pieces_);
        const bool fresh = step.firstOfPiece && !Rows::ReadsState(step);
        const uint32_t lanes = AlignUp(step.columns, kBlockFloats);
        if (fresh || (step.firstOfPiece && step.tokens == 0)) Rows::TakeState();
        if (fresh) {
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
            for (uint32_t t = 0; t < step.tokens; ++t)
                Token(sums[t * rowPitch], state, values_[t * rowPitch], t, lanes, step.firstOfPiece && !fresh && t == 0,
                      step.lastOfPiece && t + 1 == step.tokens);
            if constexpr (kNarrow) AscendC::Cast(out, sums, AscendC::RoundMode::CAST_RINT, step.tokens * rowPitch);
            outQue_.EnQue(out);
        }
        if (step.lastOfPiece && step.tokens == 0) Rows::GiveState();
    }

    // `take`: the state is still coming; `give`: it leaves.
    __aicore__ inline void Token(const AscendC::LocalTensor<float>& out, const AscendC::LocalTensor<float>& state,
                                 const AscendC::LocalTensor<float>& v, uint32_t t, uint32_t lanes, bool take, bool give) {
        const int32_t count = static_cast<int32_t>(lanes);
        const AscendC::LocalTensor<float> decay = decayBlocks_[t * kBlockFloats], beta = betaBlocks_[t * kBlockFloats];
        const AscendC::LocalTensor<float> product = productBlocks_[t * kBlockFloats];
        Read(state, t, lanes, take);
        if (plan_.perChannelGate == 0) {
            MulByBlock(sumK_, sumK_, decay, lanes);
            MulByBlock(sumQ_, sumQ_, decay, lanes);
            FenceVector();
        }
        AscendC::Sub(sumK_, v, sumK_, count);
        FenceVector();
        MulByBlock(sumK_, sumK_, beta, lanes);  // delta
        FenceVector();
        MulByBlock(out, sumK_, product, lanes);
        FenceVector();
        AscendC::Add(out, out, sumQ_, count);
        Update(state, decay, t, lanes, give);
    }

    // Rows from `row` on whose factors are in UB as blocks and which belong to one part of the state.
    __aicore__ inline uint32_t Span(uint32_t row) const {
        const uint32_t group = Min(kGroupRows - row % kGroupRows, plan_.keyDim - row);
        return Min(group, Rows::partRows_ - row % Rows::partRows_);
    }
    __aicore__ inline bool StartsPart(uint32_t row) const { return row % Rows::partRows_ == 0; }

    // sumK_ = S^T k, sumQ_ = S^T q
    __aicore__ inline void Read(const AscendC::LocalTensor<float>& state, uint32_t t, uint32_t lanes, bool take) {
        const AscendC::LocalTensor<float> q = (plan_.perChannelGate != 0 ? decayedKeys_ : keys_)[2 * t * ub_.keyPitch], k = q[ub_.keyPitch];
        for (uint32_t row = 0, rows; row < plan_.keyDim; row += rows) {
            rows = Span(row);
            if (row % kGroupRows == 0) {
                const uint32_t group = Min(kGroupRows, plan_.keyDim - row);
                Blocks(kBlocks_, k[row], group);
                Blocks(qBlocks_, q[row], group);
                FenceVector();
            }
            if (take && StartsPart(row)) Rows::TakePart(row / Rows::partRows_);
            const uint32_t block = row % kGroupRows * kBlockFloats;
            WeighState(sumK_, sumQ_, state[row * lanes], kBlocks_[block], qBlocks_[block], row == 0, rows, lanes, ub_.sumRows);
        }
        AddSums(sumK_, sumQ_, Min(plan_.keyDim, ub_.sumRows), lanes);
    }

    // S = a S + k delta^T, delta in sumK_
    __aicore__ inline void Update(const AscendC::LocalTensor<float>& state, const AscendC::LocalTensor<float>& decay, uint32_t t,
                                  uint32_t lanes, bool give) {
        const bool channels = plan_.perChannelGate != 0;
        const AscendC::LocalTensor<float> k = keys_[(2 * t + 1) * ub_.keyPitch];
        for (uint32_t row = 0, rows; row < plan_.keyDim; row += rows) {
            rows = Span(row);
            if (row % kGroupRows == 0 && (channels || plan_.keyDim > kGroupRows)) {  // else kBlocks_ has them
                const uint32_t group = Min(kGroupRows, plan_.keyDim - row);
                Blocks(kBlocks_, k[row], group);
                if (channels) Blocks(rowBlocks_, gates_[t * ub_.gatePitch + row], group);
                FenceVector();
            }
            const uint32_t block = row % kGroupRows * kBlockFloats;
            const AscendC::LocalTensor<float> part = state[row * lanes];
            if (channels) MulRowsByBlock(part, rowBlocks_[block], lanes, rows, lanes);
            else MulByBlock(part, part, decay, rows * lanes);
            FenceVector();
            AddOuter(part, kBlocks_[block], sumK_, rows, lanes);
            FenceVector();
            const uint32_t end = row + rows;
            if (give && (StartsPart(end) || end == plan_.keyDim)) Rows::GivePart(row / Rows::partRows_);
        }
    }

    AscendC::LocalTensor<float> decayBlocks_, betaBlocks_, productBlocks_, kBlocks_, qBlocks_, sumK_, sumQ_, out32_;
    AscendC::LocalTensor<float> rowBlocks_;  // kda
};

}  // namespace hc
