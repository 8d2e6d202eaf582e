// What both recurrent kernels share: the copies of a step and their order. `Kernel`, which derives from this, adds InitWork and Compute.
//
//   CopyIn   rows of qkv with their K - 1 predecessors, gate, beta, what the step needs anew of weights and conv_state; a piece's state
//   Compute  q, k, v (convolution, SiLU, L2 norm), decay, beta; token by token the state and the result
//   CopyOut  rows of the result; after a piece's last token its state. The conv_state leaves with Compute, which has the input's rows
#pragma once

#include "conv_group.h"
#include "fill_rows.h"
#include "recurrent_steps.h"

namespace hc {

template <typename Kernel, typename T, typename G>
class RecurrentRows {
public:
    __aicore__ inline void Init(const LinearAttentionTensors& tensors, const FusedLinearAttentionTilingData* plan, AscendC::TPipe* pipe) {
        plan_ = *plan;
        ub_ = plan_.buffers;
        history_ = plan_.taps - 1;
        sequences_.Init(tensors.cuSeqlens, tensors.stateIndices, tensors.hasInitialState, plan_);
        keepsConv_ = tensors.convState != nullptr && history_ != 0;
        keepsState_ = tensors.recurrentState != nullptr;
        hasBias_ = tensors.convBias != nullptr;
        qkv_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.qkv));
        gate_.SetGlobalBuffer(reinterpret_cast<__gm__ G*>(tensors.gate));
        beta_.SetGlobalBuffer(reinterpret_cast<__gm__ G*>(tensors.beta));
        weight_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.convWeight));
        bias_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.convBias));
        convState_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.convState));
        convStateOut_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.convStateOut));
        state_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.recurrentState));
        stateOut_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.recurrentStateOut));
        gateCoef_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.gateCoef));
        gateBias_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.gateBias));
        attnOut_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.attnOut));

        pipe->InitBuffer(inQue_, ub_.spare, ub_.inBytes);
        pipe->InitBuffer(outQue_, 2, ub_.outBytes);
        if (keepsConv_) pipe->InitBuffer(convOutQue_, ub_.spare, ub_.convOutBytes);
        pipe->InitBuffer(stateBuf_, ub_.spare * ub_.stateBytes);
        partRows_ = AlignUp(CeilDiv(plan_.keyDim, kStateParts), kStateRows);
        for (uint32_t slot = 0; slot < 2; ++slot)
            for (uint32_t part = 0; part < kStateParts; ++part) {
                loaded_[slot][part] = pipe->AllocEventID<AscendC::HardEvent::MTE2_V>();
                updated_[slot][part] = pipe->AllocEventID<AscendC::HardEvent::V_MTE3>();
                stored_[slot][part] = pipe->AllocEventID<AscendC::HardEvent::MTE3_MTE2>();
            }
        Self().InitWork(pipe);
    }

    __aicore__ inline void Process() {
        const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx());
        steps_.Init(sequences_, plan_, core);
        Step ahead{}, step{};
        bool more = steps_.Next(ahead);
        if (more) CopyIn(ahead);
        while (more) {
            step = ahead;
            more = steps_.Next(ahead);
            if (more && ub_.spare == 2) CopyIn(ahead);
            Self().Compute(step);
            CopyOut(step);
            if (more && ub_.spare == 1) CopyIn(ahead);
        }
        for (uint32_t slot = 0; slot < Min(loads_, ub_.spare); ++slot)
            for (uint32_t part = 0; part < StateParts(); ++part) AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(stored_[slot][part]);
        if (plan_.wholeItems == 0 && keepsConv_) {
            AscendC::SyncAll();  // all cores have read the conv_state of q and k
            StoreKeyStates(core);
        }
    }

    // Rows behind the sequences that are in order: NaN.
    __aicore__ inline void FillRest() {
        const uint64_t row = plan_.valueHeads * static_cast<uint64_t>(plan_.valueDim);
        FillWithNan(attnOut_, outQue_, Self().scratch_, sequences_.End(plan_.sequences) * row, plan_.tokens * row, plan_.usedCores,
                    ub_.outBytes / sizeof(T));
    }

protected:
    static constexpr uint32_t kStateParts = 2;  // at most
    static constexpr uint32_t kStateRows = 64;  // the most rows of sums in recurrent_membase.h

    __aicore__ inline Kernel& Self() { return *static_cast<Kernel*>(this); }

    __aicore__ inline ConvGroup Keys() const {
        return {2, plan_.keyDim, ub_.keyPitch, 2 * ub_.keyPitch, 0, ub_.inKeyStates, ub_.keyStateStride, ub_.inKeyWeights,
                ub_.keyWeightStride, ub_.inKeyBias};
    }
    __aicore__ inline ConvGroup Values(const Step& step) const {
        const uint32_t pitch = RowPitch<T>(step.columns);
        return {1, step.columns, pitch, pitch, ub_.inValues, ub_.inValueStates, RowPitch<T>(step.columns * history_), ub_.inValueWeights,
                RowPitch<T>(step.columns * plan_.taps), ub_.inValueBias};
    }
    // The first of the convolution's channels of part `part` of a group.
    __aicore__ inline uint32_t KeyChannel(uint32_t keyHead, uint32_t part) const {
        return (part * plan_.keyHeads + keyHead) * plan_.keyDim;
    }
    __aicore__ inline uint32_t ValueChannel(const Step& step) const {
        return 2 * plan_.keyHeads * plan_.keyDim + step.valueHead * plan_.valueDim + step.column;
    }
    // Rows of a step's window that lie before the sequence: its first rows, from conv_state or zeros.
    __aicore__ inline uint32_t OldRows(uint32_t firstToken) const { return firstToken < history_ ? history_ - firstToken : 0; }
    __aicore__ inline bool ReadsConvState(const Sequence& sequence) const { return keepsConv_ && !sequence.fresh; }

    __aicore__ inline AscendC::LocalTensor<float> StateTile(uint32_t index) const {
        return stateBuf_.template Get<float>()[index % ub_.spare * (ub_.stateBytes / sizeof(float))];
    }

    // The K - 1 + tokens rows of a group that end with the step's tokens, those before the sequence left out, and the conv_state they come
    // from. Parts are keyHeads * keyDim channels apart.
    __aicore__ inline void CopyWindow(const AscendC::LocalTensor<T>& in, const ConvGroup& group, uint32_t channel, const Sequence& sequence,
                                      uint32_t firstToken, uint32_t tokens) {
        const uint32_t old = OldRows(firstToken), rows = history_ - old + tokens, apart = plan_.keyHeads * plan_.keyDim;
        const AscendC::LocalTensor<T> window = in[group.rows + old * group.rowPitch];
        const AscendC::GlobalTensor<T> first = qkv_[(sequence.firstRow + firstToken - (history_ - old)) * plan_.channels + channel];
        if (rows == 1) {
            CopyRowsTo(window, group.partPitch, first, group.parts, group.channels, apart);
        } else if (rows != 0) {
            for (uint32_t part = 0; part < group.parts; ++part)
                CopyRowsTo(window[part * group.partPitch], group.rowPitch, first[part * apart], rows, group.channels, plan_.channels);
        }
        if (old != 0 && ReadsConvState(sequence))
            CopyRowsTo(in[group.states], group.stateStride,
                       convState_[(static_cast<uint64_t>(sequence.slot) * plan_.convChannels + channel) * history_], group.parts,
                       group.channels * history_, apart * history_);
    }
    __aicore__ inline void CopyWeights(const AscendC::LocalTensor<T>& in, const ConvGroup& group, uint32_t channel) {
        const uint32_t apart = plan_.keyHeads * plan_.keyDim;
        CopyRowsTo(in[group.weights], group.weightStride, weight_[static_cast<uint64_t>(channel) * plan_.taps], group.parts,
                   group.channels * plan_.taps, apart * plan_.taps);
        if (hasBias_) CopyRowsTo(in[group.bias], group.partPitch, bias_[channel], group.parts, group.channels, apart);
    }

    __aicore__ inline void CopyNewWeights(const AscendC::LocalTensor<T>& in, const Step& step) {
        if (step.newKeyHead) CopyWeights(in, Keys(), KeyChannel(step.keyHead, 0));
        if (step.newValueHead) CopyWeights(in, Values(step), ValueChannel(step));
    }

    __aicore__ inline void CopyIn(const Step& step) {
        if (!step.live) return;
        if (ub_.spare == 1 && (step.newKeyHead || step.newValueHead)) {
            const AscendC::LocalTensor<T> weights = inQue_.template AllocTensor<T>();
            CopyNewWeights(weights, step);
            inQue_.EnQue(weights);
            const AscendC::LocalTensor<T> ready = inQue_.template DeQue<T>();
            Self().TakeWeights(ready, step);
            inQue_.FreeTensor(ready);
        }
        AscendC::LocalTensor<T> in = inQue_.template AllocTensor<T>();
        if (ub_.spare != 1) CopyNewWeights(in, step);
        if (step.newKeys) CopyWindow(in, Keys(), KeyChannel(step.keyHead, 0), step.sequence, step.firstToken, step.tokens);
        CopyWindow(in, Values(step), ValueChannel(step), step.sequence, step.firstToken, step.tokens);
        if (step.tokens != 0) CopyGates(in, step);
        inQue_.EnQue(in);
        if (step.firstOfPiece) CopyState(step);
    }

    // A block of 32 B per token and number, kda: a row per token.
    __aicore__ inline void CopyGates(const AscendC::LocalTensor<T>& in, const Step& step) {
        const AscendC::LocalTensor<G> gate = GateOf(in), beta = BetaOf(in);
        const uint64_t first = (step.sequence.firstRow + step.firstToken) * plan_.valueHeads + step.valueHead;
        if (plan_.perChannelGate != 0) {
            CopyRowsTo(gate, ub_.gatePitch, gate_[first * plan_.keyDim], step.tokens, plan_.keyDim, plan_.valueHeads * plan_.keyDim);
            if (plan_.gateFold != 0)
                CopyFlatIn(GateBiasOf(in), gateBias_[static_cast<uint64_t>(step.valueHead) * plan_.keyDim], plan_.keyDim);
        } else {
            CopyRowsTo(gate, kBlockBytes / sizeof(G), gate_[first], step.tokens, 1, plan_.valueHeads);
        }
        CopyRowsTo(beta, kBlockBytes / sizeof(G), beta_[first], step.tokens, 1, plan_.valueHeads);
    }
    __aicore__ inline AscendC::LocalTensor<G> GateOf(const AscendC::LocalTensor<T>& in) const {
        return in[ub_.inGate / sizeof(T)].template ReinterpretCast<G>();
    }
    __aicore__ inline AscendC::LocalTensor<G> BetaOf(const AscendC::LocalTensor<T>& in) const {
        return in[ub_.inBeta / sizeof(T)].template ReinterpretCast<G>();
    }
    __aicore__ inline AscendC::LocalTensor<float> GateBiasOf(const AscendC::LocalTensor<T>& in) const {
        return in[ub_.inGateBias / sizeof(T)].template ReinterpretCast<float>();
    }

    __aicore__ inline bool ReadsState(const Step& step) const { return keepsState_ && !step.sequence.fresh; }
    __aicore__ inline uint64_t StateOffset(const Step& step) const {
        const uint64_t head = static_cast<uint64_t>(step.sequence.slot) * plan_.valueHeads + step.valueHead;
        return head * plan_.keyDim * plan_.valueDim + step.column;
    }
    // A tile comes and goes in parts of partRows_ rows, each with flags of its own: a part is read when it is there, while the next one
    // comes, and leaves while the next one is updated.
    __aicore__ inline uint32_t StateParts() const { return CeilDiv(plan_.keyDim, partRows_); }
    __aicore__ inline uint32_t PartRows(uint32_t part) const { return Min(partRows_, plan_.keyDim - part * partRows_); }
    // The tile stays in its buffer from its load to its store, which must be over before the buffer's next load.
    __aicore__ inline void CopyState(const Step& step) {
        const uint32_t slot = loads_ % ub_.spare, pitch = RowPitch<float>(step.columns);
        for (uint32_t part = 0; part < StateParts(); ++part) {
            const uint32_t row = part * partRows_;
            if (loads_ >= ub_.spare) AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(stored_[slot][part]);
            if (ReadsState(step))
                CopyRowsIn(StateTile(loads_)[row * pitch], state_[StateOffset(step) + static_cast<uint64_t>(row) * plan_.valueDim],
                           PartRows(part), step.columns, plan_.valueDim);
            AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(loaded_[slot][part]);
        }
        ++loads_;
    }
    // For Compute, once per part and piece: before its first use and after its last.
    __aicore__ inline void TakePart(uint32_t part) { AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(loaded_[pieces_ % ub_.spare][part]); }
    __aicore__ inline void GivePart(uint32_t part) { AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(updated_[pieces_ % ub_.spare][part]); }
    __aicore__ inline void TakeState() {
        for (uint32_t part = 0; part < StateParts(); ++part) TakePart(part);
    }
    __aicore__ inline void GiveState() {
        for (uint32_t part = 0; part < StateParts(); ++part) GivePart(part);
    }

    __aicore__ inline void CopyOut(const Step& step) {
        if (step.tokens != 0) {
            AscendC::LocalTensor<T> out = outQue_.template DeQue<T>();
            const uint64_t row = (step.sequence.firstRow + step.firstToken) * plan_.valueHeads + step.valueHead;
            CopyRowsOut(attnOut_[row * plan_.valueDim + step.column], out, step.tokens, step.columns, plan_.valueHeads * plan_.valueDim);
            outQue_.FreeTensor(out);
        }
        if (!step.live || !step.lastOfPiece) return;
        const uint32_t slot = pieces_ % ub_.spare, pitch = RowPitch<float>(step.columns);
        for (uint32_t part = 0; part < StateParts(); ++part) {
            const uint32_t row = part * partRows_;
            AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(updated_[slot][part]);
            if (keepsState_)
                CopyRowsOut(stateOut_[StateOffset(step) + static_cast<uint64_t>(row) * plan_.valueDim], StateTile(pieces_)[row * pitch],
                            PartRows(part), step.columns, plan_.valueDim);
            AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(stored_[slot][part]);
        }
        ++pieces_;
    }
    // With the last of the item's steps that read the conv_state of q and k.
    __aicore__ inline bool StoresKeys(const Step& step) const {
        return plan_.wholeItems != 0 && step.newKeys && step.lastOfPiece && (step.firstOfPiece || step.lastOfItem);
    }
    __aicore__ inline void CopyConvStateOut(const Sequence& sequence, uint32_t channel, uint32_t channels) {
        AscendC::LocalTensor<T> kept = convOutQue_.template DeQue<T>();
        CopyFlatOut(convStateOut_[(static_cast<uint64_t>(sequence.slot) * plan_.convChannels + channel) * history_], kept,
                    channels * history_);
        convOutQue_.FreeTensor(kept);
    }

    // conv_state of q and k of all sequences, items over cores: the K - 1 rows before the sequence's end.
    __aicore__ inline void StoreKeyStates(uint32_t core) {
        const uint64_t items = static_cast<uint64_t>(plan_.sequences) * plan_.keyHeads;
        const ConvGroup keys = Keys();
        for (uint64_t item = core; item < items; item += plan_.usedCores) {
            const Sequence sequence = sequences_.Get(static_cast<uint32_t>(item / plan_.keyHeads));
            const uint32_t keyHead = static_cast<uint32_t>(item % plan_.keyHeads);
            if (!sequence.StoresConvState()) continue;
            AscendC::LocalTensor<T> in = inQue_.template AllocTensor<T>();
            CopyWindow(in, keys, KeyChannel(keyHead, 0), sequence, sequence.tokens, 0);
            inQue_.EnQue(in);
            in = inQue_.template DeQue<T>();
            Self().FillOldRows(in, keys, sequence, sequence.tokens);
            for (uint32_t part = 0; part < 2; ++part) {
                Self().KeepConvState(in, keys, part, 0);
                CopyConvStateOut(sequence, KeyChannel(keyHead, part), plan_.keyDim);
            }
            inQue_.FreeTensor(in);
        }
    }

    FusedLinearAttentionTilingData plan_;
    RecurrentBuffers ub_;
    Sequences sequences_;
    Steps steps_;
    uint32_t history_ = 0;  // K - 1
    bool keepsConv_ = false, keepsState_ = false, hasBias_ = false;
    uint32_t loads_ = 0, pieces_ = 0;  // of states: loaded, computed
    uint32_t partRows_ = 0;            // a multiple of kStateRows
    AscendC::GlobalTensor<T> qkv_, weight_, bias_, convState_, convStateOut_, attnOut_;
    AscendC::GlobalTensor<G> gate_, beta_;
    AscendC::GlobalTensor<float> state_, stateOut_, gateCoef_, gateBias_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> inQue_;
    OutQue outQue_, convOutQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> stateBuf_;
    AscendC::TEventID loaded_[2][kStateParts], updated_[2][kStateParts], stored_[2][kStateParts];
};

}  // namespace hc
