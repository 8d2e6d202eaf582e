// What the recurrent kernels do before a token meets the state, in instructions that both families have: q and k of a chunk of tokens after
// convolution, SiLU, L2 norm and scale, v after convolution and SiLU, decay and beta. `Kernel` adds InitState and Recur.
#pragma once

#include "conv_rows.h"
#include "recurrent_rows.h"

namespace hc {

// blocks[i] = 8 copies of values[i]; whole blocks of values are read
__aicore__ inline void Blocks(const AscendC::LocalTensor<float>& blocks, const AscendC::LocalTensor<float>& values, uint32_t count) {
    AscendC::Brcb(blocks, values, static_cast<uint8_t>(CeilDiv(count, kBlockFloats)), AscendC::BrcbRepeatParams(1, 8));
}

template <typename Kernel, typename T, typename G>
class RecurrentPrepare : public RecurrentRows<Kernel, T, G> {
protected:
    using Rows = RecurrentRows<Kernel, T, G>;
    friend Rows;
    using Rows::convOutQue_;
    using Rows::hasBias_;
    using Rows::history_;
    using Rows::inQue_;
    using Rows::outQue_;
    using Rows::plan_;
    using Rows::ub_;

    static constexpr bool kNarrow = sizeof(T) == 2;  // rows need a float32 copy
    static constexpr float kL2Epsilon = 1e-6f;

    __aicore__ inline AscendC::LocalTensor<float> Carve(uint32_t floats) {
        const AscendC::LocalTensor<float> part = workBuf_.template Get<float>()[carved_];
        carved_ += floats;
        return part;
    }

    // The sizes are those of PreparationFloats, op_host/fused_linear_attention/recurrent_tiling.cpp.
    __aicore__ inline void InitWork(AscendC::TPipe* pipe) {
        pipe->InitBuffer(workBuf_, ub_.workBytes);
        const uint32_t tokens = ub_.chunkTokens, eight = AlignUp(tokens, kBlockFloats), pair = AlignUp(2 * tokens, kBlockFloats);
        const uint32_t keyRow = 2 * ub_.keyPitch, valueRow = ub_.valuePitch;
        const uint32_t widest = keyRow / 2 > valueRow ? keyRow / 2 : valueRow;
        if constexpr (kNarrow) window_ = Carve((history_ + tokens) * (keyRow > valueRow ? keyRow : valueRow));
        keys_ = Carve(tokens * keyRow);
        values_ = Carve(tokens * valueRow);
        scratch_ = Carve(ub_.scratchFloats);
        keyWeights_ = Carve((plan_.taps + 1) * keyRow);
        valueWeights_ = Carve((plan_.taps + 1) * valueRow);
        decays_ = Carve(eight);
        betas_ = Carve(eight);
        products_ = Carve(eight);
        norms_ = Carve(pair);
        scales_ = Carve(pair);
        gateBlocks_ = Carve(tokens * 2 * kBlockFloats);
        normBlocks_ = Carve(pair * kBlockFloats);
        if (plan_.perChannelGate != 0) {
            gates_ = Carve(tokens * ub_.gatePitch);
            decayedKeys_ = Carve(tokens * keyRow);
        }
        stateOffsets_ = Carve(widest).template ReinterpretCast<uint32_t>();
        weightOffsets_ = Carve(widest).template ReinterpretCast<uint32_t>();
        keepKeys_ = Carve(AlignUp(plan_.keyDim * history_, kBlockFloats)).template ReinterpretCast<uint32_t>();
        keepValues_ = Carve(AlignUp(plan_.valueTile * history_, kBlockFloats)).template ReinterpretCast<uint32_t>();
        this->Self().InitState(eight);
        InitConstants(widest, pair, eight);
    }

    __aicore__ inline void InitConstants(uint32_t widest, uint32_t pair, uint32_t eight) {
        if (history_ != 0) {
            EvenOffsets(stateOffsets_, history_ * sizeof(T), widest);
            TransposedOffsets(keepKeys_, keyWeights_, history_, 2 * ub_.keyPitch * sizeof(T), sizeof(T), plan_.keyDim * history_);
        }
        EvenOffsets(weightOffsets_, plan_.taps * sizeof(T), widest);
        // What q and k of a token are multiplied with: dk^-0.5 and 1, over the norm.
        uint64_t even[2] = {0x5555555555555555ull, 0};
        AscendC::Duplicate(scales_, 1.0f, static_cast<int32_t>(pair));
        AscendC::Duplicate(norms_, 1.0f, static_cast<int32_t>(pair));
        AscendC::Duplicate(decays_, 0.0f, static_cast<int32_t>(eight));
        AscendC::Duplicate(betas_, 0.0f, static_cast<int32_t>(eight));
        AscendC::Duplicate(products_, 0.0f, static_cast<int32_t>(eight));
        FenceVector();
        for (uint32_t at = 0; at < pair; at += kLanes) {
            even[0] = pair - at < kLanes ? 0x5555555555555555ull >> (kLanes - (pair - at)) : 0x5555555555555555ull;
            AscendC::Duplicate(scales_[at], plan_.queryScale, even, static_cast<uint8_t>(1), 1, 8);
        }
        FenceVector();
    }

    __aicore__ inline void Compute(const Step& step) {
        if (!step.live) {
            FillOut(step);
            return;
        }
        AscendC::LocalTensor<T> in = inQue_.template DeQue<T>();
        const ConvGroup keys = Rows::Keys(), values = Rows::Values(step);
        FenceVector();  // the step before
        if (ub_.spare != 1) TakeWeights(in, step);
        if (step.newKeys) {
            FillOldRows(in, keys, step.sequence, step.firstToken);
            PrepareKeys(in, keys, step.tokens);
        }
        FillOldRows(in, values, step.sequence, step.firstToken);
        if (step.tokens != 0) {
            Convolve(values_, in, values, valueWeights_, step.tokens);
            Gates(in, step);
        }
        if (Rows::keepsConv_ && step.lastOfPiece) KeepConvStates(in, keys, values, step);
        inQue_.FreeTensor(in);
        this->Self().Recur(step, values.rowPitch);
    }

    __aicore__ inline void TakeWeights(const AscendC::LocalTensor<T>& in, const Step& step) {
        FenceVector();
        if (step.newKeyHead) Unpack(keyWeights_, in, Rows::Keys());
        if (step.newValueHead) Unpack(valueWeights_, in, Rows::Values(step));
    }

    __aicore__ inline void Unpack(const AscendC::LocalTensor<float>& weights, const AscendC::LocalTensor<T>& in, const ConvGroup& group) {
        UnpackWeights(weights, window_, in, weightOffsets_, group, plan_.taps, hasBias_);
    }

    __aicore__ inline void FillOut(const Step& step) {
        FillRows<T>(outQue_, scratch_, step.tokens * RowPitch<T>(step.columns), step.sequence.Fill());
    }

    // The window's rows that lie before the sequence. Ends fenced.
    __aicore__ inline void FillOldRows(const AscendC::LocalTensor<T>& in, const ConvGroup& group, const Sequence& sequence,
                                       uint32_t firstToken) {
        const uint32_t old = Rows::OldRows(firstToken);
        if (old == 0) return;
        const AscendC::LocalTensor<T> window = in[group.rows];
        if (Rows::ReadsConvState(sequence))
            GatherRows(window, in[group.states], group.stateStride, stateOffsets_, group, firstToken, old);
        else
            ClearRows(window, group, old);
    }

    // y[t] = silu(bias + sum over j of weights[j] * window[t + j])
    __aicore__ inline void Convolve(const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<T>& in, const ConvGroup& group,
                                    const AscendC::LocalTensor<float>& weights, uint32_t tokens) {
        const uint32_t pitch = group.rowPitch;
        AscendC::LocalTensor<float> window;
        if constexpr (kNarrow) {
            window = window_;
            AscendC::Cast(window, in[group.rows], AscendC::RoundMode::CAST_NONE, (history_ + tokens) * pitch);
            FenceVector();
        } else {
            window = in[group.rows];
        }
        ConvolveRows(y, window, weights, pitch, plan_.taps, tokens, hasBias_);
        SigmoidTimes(y, scratch_, tokens * pitch);
    }

    // keys_ = q | k of the tokens: normalised, q times dk^-0.5; products_ = k . q
    __aicore__ inline void PrepareKeys(const AscendC::LocalTensor<T>& in, const ConvGroup& group, uint32_t tokens) {
        if (tokens == 0) return;
        const uint32_t pitch = group.partPitch, rows = 2 * tokens;
        Convolve(keys_, in, group, keyWeights_, tokens);
        if (plan_.useQkL2norm != 0) {
            AscendC::Mul(scratch_, keys_, keys_, static_cast<int32_t>(rows * pitch));
            FenceVector();
            SumLanes(norms_, scratch_, pitch, rows, pitch);
            AscendC::Adds(norms_, norms_, kL2Epsilon, static_cast<int32_t>(rows));
            FenceVector();
            AscendC::Sqrt(norms_, norms_, static_cast<int32_t>(rows));
            FenceVector();
            AscendC::Div(norms_, scales_, norms_, static_cast<int32_t>(rows));
            FenceVector();
        }
        Blocks(normBlocks_, plan_.useQkL2norm != 0 ? norms_ : scales_, rows);
        FenceVector();
        MulRowsByBlock(keys_, normBlocks_, pitch, rows, pitch);
        FenceVector();
        for (uint32_t t = 0; t < tokens; ++t)
            AscendC::Mul(scratch_[t * pitch], keys_[2 * t * pitch], keys_[(2 * t + 1) * pitch], static_cast<int32_t>(pitch));
        FenceVector();
        SumLanes(products_, scratch_, pitch, tokens, pitch);
    }

    // decays_ = exp(g), kda: gates_ = exp(g) and decayedKeys_ = exp(g) q | exp(g) k; betas_ = beta
    __aicore__ inline void Gates(const AscendC::LocalTensor<T>& in, const Step& step) {
        const uint32_t tokens = step.tokens;
        const bool fold = plan_.gateFold != 0;
        OfBlocks(betas_, Rows::BetaOf(in), tokens);
        if (fold) Sigmoid(betas_, scratch_, tokens);
        if (plan_.perChannelGate != 0) {
            DecayChannels(in, step);
            return;
        }
        OfBlocks(decays_, Rows::GateOf(in), tokens);
        if (fold) {
            AscendC::Adds(decays_, decays_, Rows::gateBias_.GetValue(step.valueHead), static_cast<int32_t>(tokens));
            FenceVector();
            FoldGate(decays_, AlignUp(tokens, kBlockFloats), tokens, step.valueHead);
        }
        AscendC::Exp(decays_, decays_, static_cast<int32_t>(tokens));
        FenceVector();
    }
    // values[t] = the number that block t begins with; the others of the block are zeros
    __aicore__ inline void OfBlocks(const AscendC::LocalTensor<float>& values, const AscendC::LocalTensor<G>& blocks, uint32_t tokens) {
        if constexpr (sizeof(G) == 2) {
            AscendC::Cast(gateBlocks_, blocks, AscendC::RoundMode::CAST_NONE, tokens * 2 * kBlockFloats);
            FenceVector();
            AscendC::WholeReduceSum(values, gateBlocks_, 2 * kBlockFloats, tokens, 1, 1, 2);
        } else {
            AscendC::WholeReduceSum(values, blocks, kBlockFloats, tokens, 1, 1, 1);
        }
        FenceVector();
    }
    // g = coef * softplus(g)
    __aicore__ inline void FoldGate(const AscendC::LocalTensor<float>& g, uint32_t pitch, uint32_t count, uint32_t valueHead) {
        Softplus(g, scratch_, pitch, count);
        AscendC::Muls(g, g, Rows::gateCoef_.GetValue(valueHead), static_cast<int32_t>(count));
        FenceVector();
    }
    __aicore__ inline void DecayChannels(const AscendC::LocalTensor<T>& in, const Step& step) {
        const uint32_t pitch = ub_.gatePitch, count = step.tokens * pitch, row = AlignUp(plan_.keyDim, kBlockFloats);
        if constexpr (sizeof(G) == 2) AscendC::Cast(gates_, Rows::GateOf(in), AscendC::RoundMode::CAST_NONE, count);
        else AscendC::DataCopy(gates_, Rows::GateOf(in), count);
        FenceVector();
        if (plan_.gateFold != 0) {
            for (uint32_t t = 0; t < step.tokens; ++t)
                AscendC::Add(gates_[t * pitch], gates_[t * pitch], Rows::GateBiasOf(in), static_cast<int32_t>(row));
            FenceVector();
            FoldGate(gates_, count, count, step.valueHead);
        }
        AscendC::Exp(gates_, gates_, static_cast<int32_t>(count));
        FenceVector();
        for (uint32_t t = 0; t < step.tokens; ++t)
            for (uint32_t part = 0; part < 2; ++part) {
                const uint32_t at = (2 * t + part) * ub_.keyPitch;
                AscendC::Mul(decayedKeys_[at], keys_[at], gates_[t * pitch], static_cast<int32_t>(row));
            }
        FenceVector();
    }

    __aicore__ inline void KeepConvStates(const AscendC::LocalTensor<T>& in, const ConvGroup& keys, const ConvGroup& values,
                                          const Step& step) {
        if (values.rowPitch != keptPitch_) {
            keptPitch_ = values.rowPitch;
            TransposedOffsets(keepValues_, scratch_, history_, keptPitch_ * sizeof(T), sizeof(T), plan_.valueTile * history_);
        }
        KeepConvState(in, values, 0, step.tokens);
        Rows::CopyConvStateOut(step.sequence, Rows::ValueChannel(step), step.columns);
        if (!Rows::StoresKeys(step)) return;
        for (uint32_t part = 0; part < 2; ++part) {
            KeepConvState(in, keys, part, step.tokens);
            Rows::CopyConvStateOut(step.sequence, Rows::KeyChannel(step.keyHead, part), plan_.keyDim);
        }
    }
    // The last K - 1 rows of a part's window as [channels, K - 1].
    __aicore__ inline void KeepConvState(const AscendC::LocalTensor<T>& in, const ConvGroup& group, uint32_t part, uint32_t tokens) {
        AscendC::LocalTensor<T> kept = convOutQue_.template AllocTensor<T>();
        AscendC::Gather(AsBits(kept), AsBits(in[group.rows + tokens * group.rowPitch + part * group.partPitch]),
                        group.parts == 2 ? keepKeys_ : keepValues_, 0, group.channels * history_);
        convOutQue_.EnQue(kept);
    }

    AscendC::TBuf<AscendC::TPosition::VECCALC> workBuf_;
    uint32_t carved_ = 0, keptPitch_ = 0;
    AscendC::LocalTensor<float> window_;  // of 16-bit rows as float32
    AscendC::LocalTensor<float> keys_, values_, scratch_, keyWeights_, valueWeights_;
    AscendC::LocalTensor<float> decays_, betas_, products_, norms_, scales_, gateBlocks_, normBlocks_;
    AscendC::LocalTensor<float> gates_, decayedKeys_;  // kda
    AscendC::LocalTensor<uint32_t> stateOffsets_, weightOffsets_, keepKeys_, keepValues_;
};

}  // namespace hc
