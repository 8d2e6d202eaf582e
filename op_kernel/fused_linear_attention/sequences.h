// The tensors of a call and its sequences: where their tokens are, which slot of the states is theirs.
#pragma once

#include "../common/rows_copy.h"
#include "fused_linear_attention_tiling_data.h"

namespace hc {

// Arguments of the kernel; null: left out.
struct LinearAttentionTensors {
    GM_ADDR qkv;
    GM_ADDR gate;
    GM_ADDR beta;
    GM_ADDR convWeight;
    GM_ADDR convBias;
    GM_ADDR convState;
    GM_ADDR recurrentState;
    GM_ADDR gateCoef;
    GM_ADDR gateBias;
    GM_ADDR cuSeqlens;
    GM_ADDR stateIndices;
    GM_ADDR hasInitialState;
    GM_ADDR attnOut;
    GM_ADDR convStateOut;
    GM_ADDR recurrentStateOut;
};

__aicore__ inline float QuietNan() {
    const uint32_t bits = 0x7fc00000u;
    return *reinterpret_cast<const float*>(&bits);
}

enum class SequenceKind : uint8_t {
    kLive,
    kPadding,  // slot -1: rows of zeros, no state
    kInvalid,  // a slot that does not exist: rows of NaN, no state
};

struct Sequence {
    uint64_t firstRow;  // of qkv and attn_out
    uint32_t tokens;
    uint32_t slot;
    SequenceKind kind;
    bool fresh;  // starts from zeros

    // Without tokens only zeros are new.
    __aicore__ inline bool StoresConvState() const { return kind == SequenceKind::kLive && (tokens != 0 || fresh); }
    // What its rows of the result are unless it is live.
    __aicore__ inline float Fill() const { return kind == SequenceKind::kPadding ? 0.0f : QuietNan(); }
};

class Sequences {
public:
    __aicore__ inline void Init(GM_ADDR cuSeqlens, GM_ADDR stateIndices, GM_ADDR hasInitialState,
                                const FusedLinearAttentionTilingData& plan) {
        ends_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(cuSeqlens));
        slots_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(stateIndices));
        has_.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(hasInitialState));
        packed_ = cuSeqlens != nullptr;
        indexed_ = stateIndices != nullptr;
        flagged_ = hasInitialState != nullptr;
        length_ = plan.sequenceTokens;
        tokens_ = plan.tokens;
        slotCount_ = plan.slots;
    }

    __aicore__ inline Sequence Get(uint32_t index) const {
        Sequence sequence{};
        sequence.firstRow = Before(index);
        sequence.tokens = static_cast<uint32_t>(Before(index + 1) - sequence.firstRow);
        const int32_t slot = indexed_ ? slots_.GetValue(index) : static_cast<int32_t>(index);
        sequence.slot = static_cast<uint32_t>(slot);
        sequence.kind = slot == -1 ? SequenceKind::kPadding : sequence.slot < slotCount_ ? SequenceKind::kLive : SequenceKind::kInvalid;
        sequence.fresh = flagged_ && has_.GetValue(index) == 0;
        return sequence;
    }

    // Tokens of all sequences before this one.
    __aicore__ inline uint64_t Before(uint32_t index) const {
        return packed_ ? static_cast<uint64_t>(ends_.GetValue(index)) : static_cast<uint64_t>(index) * length_;
    }

    // Tokens of the first `count` sequences, which are in order.
    __aicore__ inline uint64_t End(uint32_t count) const { return count == 0 ? 0 : Before(count); }

    // Whether a sequence, those before it being in order, lies behind them and within the call.
    __aicore__ inline bool InOrder(uint32_t index) const {
        const uint64_t first = Before(index), end = Before(index + 1);  // negative ones are huge
        return (index != 0 || first == 0) && first <= end && end <= tokens_;
    }

private:
    AscendC::GlobalTensor<int32_t> ends_, slots_;
    AscendC::GlobalTensor<uint8_t> has_;
    uint64_t length_ = 0, tokens_ = 0;
    uint32_t slotCount_ = 0;
    bool packed_ = false, indexed_ = false, flagged_ = false;
};

// How many sequences are in order, from the first on: 0 = first boundary <= ... <= tokens. Uses UB from its start: the caller resets
// `pipe`.
class BoundaryCheck {
public:
    __aicore__ inline uint32_t Count(GM_ADDR cuSeqlens, const FusedLinearAttentionTilingData& plan, AscendC::TPipe* pipe) {
        AscendC::GlobalTensor<int32_t> ends;
        ends.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(cuSeqlens));
        Sequences sequences;
        sequences.Init(cuSeqlens, nullptr, nullptr, plan);
        pipe->InitBuffer(que_, 1, 2 * kWindow * sizeof(int32_t));
        pipe->InitBuffer(workBuf_, 2 * kWindow * sizeof(float));
        const AscendC::TEventID known = pipe->FetchEventID(AscendC::HardEvent::V_S);
        for (uint32_t first = 0; first < plan.sequences; first += kWindow) {
            const uint32_t end = Min(first + kWindow, plan.sequences);
            const bool inOrder = sequences.InOrder(first) && Least(ends, first, end - first, known) >= 0;
            if (inOrder && sequences.Before(end) <= plan.tokens) continue;
            for (uint32_t i = first; i < end; ++i)
                if (!sequences.InOrder(i)) return i;
        }
        return plan.sequences;
    }

private:
    static constexpr uint32_t kWindow = 1024;

    // min of ends[first + 1 + i] - ends[first + i] and of ends[first + i], i < count
    __aicore__ inline float Least(const AscendC::GlobalTensor<int32_t>& ends, uint32_t first, uint32_t count, AscendC::TEventID known) {
        const int32_t n = static_cast<int32_t>(count);
        AscendC::LocalTensor<int32_t> pair = que_.AllocTensor<int32_t>();
        CopyFlatIn(pair, ends[first], count);
        CopyFlatIn(pair[kWindow], ends[first + 1], count);
        que_.EnQue(pair);
        pair = que_.DeQue<int32_t>();
        const AscendC::LocalTensor<float> steps = workBuf_.Get<float>();
        AscendC::Sub(pair[kWindow], pair[kWindow], pair, n);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Min(pair, pair, pair[kWindow], n);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(steps, pair, AscendC::RoundMode::CAST_RINT, count);  // keeps the sign
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::ReduceMin(steps, steps, steps[kWindow], n);
        que_.FreeTensor(pair);
        AscendC::SetFlag<AscendC::HardEvent::V_S>(known);
        AscendC::WaitFlag<AscendC::HardEvent::V_S>(known);
        return steps.GetValue(0);
    }

    AscendC::TQue<AscendC::TPosition::VECIN, 1> que_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> workBuf_;
};

}  // namespace hc
