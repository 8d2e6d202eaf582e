// short_conv: B * x -> convolution -> C times its result, in one pass over qkv = B | C | x. Rows are tokens, lanes are channels.
//
// The window's first K - 1 rows come from conv_state, from the step before, or, where a core starts inside a sequence, from qkv. Where
// several cores share a sequence, conv_state is written after all have read it.
#pragma once

#include "conv_group.h"
#include "conv_rows.h"
#include "fill_rows.h"
#include "short_conv_steps.h"

namespace hc {

template <typename T>
class ShortConv {
public:
    __aicore__ inline void Init(const LinearAttentionTensors& tensors, const FusedLinearAttentionTilingData* plan, AscendC::TPipe* pipe) {
        plan_ = *plan;
        ub_ = plan_.conv;
        history_ = plan_.taps - 1;
        sequences_.Init(tensors.cuSeqlens, tensors.stateIndices, tensors.hasInitialState, plan_);
        keeps_ = tensors.convState != nullptr && history_ != 0;
        hasBias_ = tensors.convBias != nullptr;
        qkv_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.qkv));
        weight_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.convWeight));
        bias_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.convBias));
        state_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.convState));
        stateOut_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.convStateOut));
        out_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.attnOut));
        pipe->InitBuffer(inQue_, 2, ub_.inBytes);
        pipe->InitBuffer(outQue_, 2, ub_.outBytes);
        if (keeps_) pipe->InitBuffer(keptQue_, 2, ub_.convOutBytes);
        pipe->InitBuffer(windowBuf_, ub_.windowBytes);
        pipe->InitBuffer(workBuf_, ub_.workBytes);
        window_ = windowBuf_.template Get<T>();
        InitWork();
    }

    __aicore__ inline void Process() {
        const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx()), part = core % ub_.parts;
        for (uint32_t tile = core / ub_.parts; tile < plan_.valueTiles; tile += ub_.tileGroups) Walk(tile * plan_.valueTile, part);
        if (plan_.wholeItems != 0 || !keeps_) return;
        AscendC::SyncAll();  // all cores have read conv_state
        for (uint32_t tile = core / ub_.parts; tile < plan_.valueTiles; tile += ub_.tileGroups) StoreStates(tile * plan_.valueTile, part);
    }

    // Rows behind the sequences that are in order: NaN.
    __aicore__ inline void FillRest() {
        const uint64_t row = plan_.valueDim;
        FillWithNan(out_, outQue_, planes_, sequences_.End(plan_.sequences) * row, plan_.tokens * row, plan_.usedCores,
                    ub_.outBytes / sizeof(T));
    }

private:
    static constexpr bool kNarrow = sizeof(T) == 2;

    __aicore__ inline void InitWork() {
        const uint32_t pitch = ub_.pitch;
        const AscendC::LocalTensor<float> work = workBuf_.template Get<float>();
        planes_ = work;
        weights_ = work[ub_.planeFloats];
        y_ = weights_[(plan_.taps + 1) * pitch];
        const AscendC::LocalTensor<float> next = y_[kNarrow ? ub_.chunkTokens * pitch : 0];
        stateOffsets_ = next.template ReinterpretCast<uint32_t>();
        weightOffsets_ = next[pitch].template ReinterpretCast<uint32_t>();
        keepOffsets_ = next[2 * pitch].template ReinterpretCast<uint32_t>();
        EvenOffsets(weightOffsets_, plan_.taps * sizeof(T), pitch);
        if (history_ != 0) EvenOffsets(stateOffsets_, history_ * sizeof(T), pitch);
    }

    // A tile may be narrower than the others, and its rows closer to each other.
    __aicore__ inline void StartTile(uint32_t column) {
        const uint32_t pitch = RowPitch<T>(Min(plan_.valueTile, plan_.valueDim - column));
        if (pitch == pitch_) return;
        pitch_ = pitch;
        if (history_ != 0) TransposedOffsets(keepOffsets_, planes_, history_, pitch * sizeof(T), sizeof(T), plan_.valueTile * history_);
    }

    __aicore__ inline void Walk(uint32_t column, uint32_t part) {
        StartTile(column);
        steps_.Init(sequences_, plan_, column, part);
        ConvStep ahead{}, step{};
        bool more = steps_.Next(ahead);
        if (more) CopyIn(ahead);
        while (more) {
            step = ahead;
            more = steps_.Next(ahead);
            if (more) CopyIn(ahead);
            Compute(step);
            CopyOut(step);
        }
    }

    // `rows` are those of B: the window's have a buffer of their own.
    __aicore__ inline ConvGroup Group(const ConvStep& step) const {
        return {1, step.columns, pitch_, pitch_, 0, ub_.inStates, 0, ub_.inWeights, 0, ub_.inBias};
    }
    // Rows of the window that the span's first step cannot take from the sequence itself.
    __aicore__ inline uint32_t OldRows(uint32_t firstToken) const { return firstToken < history_ ? history_ - firstToken : 0; }
    // Rows of B and x that a step loads before its tokens.
    __aicore__ inline uint32_t Halo(const ConvStep& step) const { return step.firstOfSpan ? history_ - OldRows(step.firstToken) : 0; }
    __aicore__ inline uint64_t StateOffset(const ConvStep& step) const {
        return (static_cast<uint64_t>(step.sequence.slot) * plan_.convChannels + step.column) * history_;
    }

    __aicore__ inline void CopyIn(const ConvStep& step) {
        if (!step.live) return;
        AscendC::LocalTensor<T> in = inQue_.template AllocTensor<T>();
        CopyInputs(in, step, step.tokens);
        if (step.newColumns) {
            CopyFlatIn(in[ub_.inWeights], weight_[static_cast<uint64_t>(step.column) * plan_.taps], step.columns * plan_.taps);
            if (hasBias_) CopyFlatIn(in[ub_.inBias], bias_[step.column], step.columns);
        }
        inQue_.EnQue(in);
    }
    // B and x of `tokens` tokens and of those before them that the step needs, C, and conv_state.
    __aicore__ inline void CopyInputs(const AscendC::LocalTensor<T>& in, const ConvStep& step, uint32_t tokens) {
        const uint32_t halo = Halo(step), channels = plan_.channels, pitch = pitch_;
        const uint64_t first = (step.sequence.firstRow + step.firstToken) * channels + step.column;
        if (halo + tokens != 0) {
            const AscendC::GlobalTensor<T> b = qkv_[first - static_cast<uint64_t>(halo) * channels], x = b[2 * plan_.valueDim];
            CopyRowsTo(in, pitch, b, halo + tokens, step.columns, channels);
            CopyRowsTo(in[ub_.inX], pitch, x, halo + tokens, step.columns, channels);
        }
        if (tokens != 0) CopyRowsTo(in[ub_.inC], pitch, qkv_[first + plan_.valueDim], tokens, step.columns, channels);
        if (step.firstOfSpan && OldRows(step.firstToken) != 0 && keeps_ && !step.sequence.fresh)
            CopyFlatIn(in[ub_.inStates], state_[StateOffset(step)], step.columns * history_);
    }

    __aicore__ inline void Compute(const ConvStep& step) {
        if (!step.live) {
            FillRows<T>(outQue_, planes_, step.tokens * pitch_, step.sequence.Fill());
            return;
        }
        AscendC::LocalTensor<T> in = inQue_.template DeQue<T>();
        FenceVector();  // the step before
        if (step.newColumns) UnpackWeights(weights_, planes_, in, weightOffsets_, Group(step), plan_.taps, hasBias_);
        FillWindow(in, step, step.tokens);
        if (plan_.wholeItems != 0 && keeps_ && step.lastOfSequence) Keep(step.columns, step.tokens);
        if (step.tokens != 0) Convolve(in, step.tokens);
        inQue_.FreeTensor(in);
        if (step.tokens != 0) CarryWindow(step.tokens);
    }

    // The window's rows that the step adds: B * x rounded to T, at a sequence's start after its conv_state. Ends fenced.
    __aicore__ inline void FillWindow(const AscendC::LocalTensor<T>& in, const ConvStep& step, uint32_t tokens) {
        const uint32_t pitch = pitch_, halo = Halo(step), count = (halo + tokens) * pitch;
        if (step.firstOfSpan) FillOldRows(in, step);
        if (count == 0) return;
        const AscendC::LocalTensor<T> rows = window_[(history_ - halo) * pitch];
        if constexpr (kNarrow) {
            const AscendC::LocalTensor<float> b = planes_, x = planes_[(history_ + ub_.chunkTokens) * pitch];
            AscendC::Cast(b, in, AscendC::RoundMode::CAST_NONE, count);
            AscendC::Cast(x, in[ub_.inX], AscendC::RoundMode::CAST_NONE, count);
            FenceVector();
            AscendC::Mul(b, b, x, static_cast<int32_t>(count));
            FenceVector();
            AscendC::Cast(rows, b, AscendC::RoundMode::CAST_RINT, count);
        } else {
            AscendC::Mul(rows, in, in[ub_.inX], static_cast<int32_t>(count));
        }
        FenceVector();
    }
    __aicore__ inline void FillOldRows(const AscendC::LocalTensor<T>& in, const ConvStep& step) {
        const uint32_t old = OldRows(step.firstToken);
        if (old == 0) return;
        if (keeps_ && !step.sequence.fresh)
            GatherRows(window_, in[ub_.inStates], 0, stateOffsets_, Group(step), step.firstToken, old);
        else
            ClearRows(window_, Group(step), old);
    }

    // out[t] = C[t] * (bias + sum over j of weights[j] * window[t + j])
    __aicore__ inline void Convolve(const AscendC::LocalTensor<T>& in, uint32_t tokens) {
        const uint32_t pitch = pitch_, count = tokens * pitch;
        AscendC::LocalTensor<T> out = outQue_.template AllocTensor<T>();
        AscendC::LocalTensor<float> window, c, y;
        if constexpr (kNarrow) {
            window = planes_;
            c = planes_[(history_ + ub_.chunkTokens) * pitch];
            y = y_;
            AscendC::Cast(window, window_, AscendC::RoundMode::CAST_NONE, history_ * pitch + count);
            AscendC::Cast(c, in[ub_.inC], AscendC::RoundMode::CAST_NONE, count);
            FenceVector();
        } else {
            window = window_;
            c = in[ub_.inC];
            y = out;
        }
        ConvolveRows(y, window, weights_, pitch, plan_.taps, tokens, hasBias_);
        AscendC::Mul(y, y, c, static_cast<int32_t>(count));
        if constexpr (kNarrow) {
            FenceVector();
            AscendC::Cast(out, y, AscendC::RoundMode::CAST_RINT, count);
        }
        outQue_.EnQue(out);
    }

    // The window's last K - 1 rows become the first of the next step.
    __aicore__ inline void CarryWindow(uint32_t tokens) {
        FenceVector();
        for (uint32_t row = 0; row < history_; ++row) {
            AscendC::DataCopy(window_[row * pitch_], window_[(tokens + row) * pitch_], pitch_);
            FenceVector();
        }
    }

    // The last K - 1 rows of the window as [channels, K - 1].
    __aicore__ inline void Keep(uint32_t columns, uint32_t tokens) {
        AscendC::LocalTensor<T> kept = keptQue_.template AllocTensor<T>();
        AscendC::Gather(AsBits(kept), AsBits(window_[tokens * pitch_]), keepOffsets_, 0, columns * history_);
        keptQue_.EnQue(kept);
    }
    __aicore__ inline void CopyStateOut(const ConvStep& step) {
        AscendC::LocalTensor<T> kept = keptQue_.template DeQue<T>();
        CopyFlatOut(stateOut_[StateOffset(step)], kept, step.columns * history_);
        keptQue_.FreeTensor(kept);
    }

    __aicore__ inline void CopyOut(const ConvStep& step) {
        if (step.tokens != 0) {
            AscendC::LocalTensor<T> out = outQue_.template DeQue<T>();
            CopyRowsOut(out_[(step.sequence.firstRow + step.firstToken) * plan_.valueDim + step.column], out, step.tokens, step.columns,
                        plan_.valueDim);
            outQue_.FreeTensor(out);
        }
        if (step.live && plan_.wholeItems != 0 && keeps_ && step.lastOfSequence) CopyStateOut(step);
    }
    // conv_state of all sequences, sequences over the cores of a tile: the K - 1 rows before a sequence's end.
    __aicore__ inline void StoreStates(uint32_t column, uint32_t part) {
        StartTile(column);
        for (uint32_t index = part; index < plan_.sequences; index += ub_.parts) {
            ConvStep step{};
            step.sequence = sequences_.Get(index);
            if (!step.sequence.StoresConvState()) continue;
            step.column = column;
            step.columns = Min(plan_.valueTile, plan_.valueDim - column);
            step.firstToken = step.sequence.tokens;
            step.firstOfSpan = true;
            AscendC::LocalTensor<T> in = inQue_.template AllocTensor<T>();
            CopyInputs(in, step, 0);
            inQue_.EnQue(in);
            in = inQue_.template DeQue<T>();
            FenceVector();
            FillWindow(in, step, 0);
            Keep(step.columns, 0);
            inQue_.FreeTensor(in);
            CopyStateOut(step);
        }
    }

    FusedLinearAttentionTilingData plan_;
    ShortConvBuffers ub_;
    Sequences sequences_;
    ConvSteps steps_;
    uint32_t history_ = 0;  // K - 1
    uint32_t pitch_ = 0;    // of a row of the tile
    bool keeps_ = false, hasBias_ = false;
    AscendC::GlobalTensor<T> qkv_, weight_, bias_, state_, stateOut_, out_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> inQue_;
    OutQue outQue_, keptQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> windowBuf_, workBuf_;
    AscendC::LocalTensor<T> window_;
    AscendC::LocalTensor<float> planes_, weights_, y_;
    AscendC::LocalTensor<uint32_t> stateOffsets_, weightOffsets_, keepOffsets_;
};

}  // namespace hc
