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

private:
    AscendC::GlobalTensor<int32_t> ends_, slots_;
    AscendC::GlobalTensor<uint8_t> has_;
    uint64_t length_ = 0;
    uint32_t slotCount_ = 0;
    bool packed_ = false, indexed_ = false, flagged_ = false;
};

// Whether cu_seqlens is 0 = first <= ... <= last = tokens. Uses UB from its start: the caller resets `pipe`.
class BoundaryCheck {
public:
    __aicore__ inline bool Ordered(GM_ADDR cuSeqlens, const FusedLinearAttentionTilingData& plan, AscendC::TPipe* pipe) {
        AscendC::GlobalTensor<int32_t> ends;
        ends.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(cuSeqlens));
        if (ends.GetValue(0) != 0 || ends.GetValue(plan.sequences) != static_cast<int32_t>(plan.tokens)) return false;
        pipe->InitBuffer(que_, 1, 2 * kWindow * sizeof(int32_t));
        pipe->InitBuffer(workBuf_, 2 * kWindow * sizeof(float));
        const AscendC::TEventID known = pipe->FetchEventID(AscendC::HardEvent::V_S);
        for (uint32_t first = 0; first < plan.sequences; first += kWindow) {
            const float least = LeastStep(ends, first, Min(kWindow, plan.sequences - first), known);
            if (least < 0) return false;
        }
        return true;
    }

private:
    static constexpr uint32_t kWindow = 1024;

    // min of ends[first + 1 + i] - ends[first + i], i < count
    __aicore__ inline float LeastStep(const AscendC::GlobalTensor<int32_t>& ends, uint32_t first, uint32_t count, AscendC::TEventID known) {
        AscendC::LocalTensor<int32_t> pair = que_.AllocTensor<int32_t>();
        CopyFlatIn(pair, ends[first], count);
        CopyFlatIn(pair[kWindow], ends[first + 1], count);
        que_.EnQue(pair);
        pair = que_.DeQue<int32_t>();
        const AscendC::LocalTensor<float> steps = workBuf_.Get<float>();
        AscendC::Sub(pair[kWindow], pair[kWindow], pair, static_cast<int32_t>(count));
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(steps, pair[kWindow], AscendC::RoundMode::CAST_RINT, count);  // keeps the sign
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::ReduceMin(steps, steps, steps[kWindow], static_cast<int32_t>(count));
        que_.FreeTensor(pair);
        AscendC::SetFlag<AscendC::HardEvent::V_S>(known);
        AscendC::WaitFlag<AscendC::HardEvent::V_S>(known);
        return steps.GetValue(0);
    }

    AscendC::TQue<AscendC::TPosition::VECIN, 1> que_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> workBuf_;
};

}  // namespace hc
