// Vector cores during the scan: the states of the block's lanes in float32, half the rows on each of its two vector cores.
//
//   S <- e^Gn S + 2^F update;  2^-F S, rounded, is the cube's operand for the next chunk
#pragma once

#include "chunked_chunks.h"
#include "chunked_cube.h"
#include "recurrent_prepare.h"

namespace hc {

template <typename Tc>
class ChunkedScan {
public:
    __aicore__ inline void Init(const LinearAttentionTensors& tensors, GM_ADDR workspace, const FusedLinearAttentionTilingData& plan,
                                AscendC::TPipe* pipe) {
        plan_ = plan;
        workspace_.Init(workspace, plan);
        keepsState_ = tensors.recurrentState != nullptr;
        state_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.recurrentState));
        stateOut_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.recurrentStateOut));
        rows_ = plan_.keyDim / 2;
        tileFloats_ = rows_ * plan_.valueTile;
        pipe->InitBuffer(inQue_, plan_.chunked.spare, tileFloats_ * sizeof(float));
        pipe->InitBuffer(factorQue_, plan_.chunked.spare, kFactors * sizeof(float));
        pipe->InitBuffer(outQue_, plan_.chunked.spare, tileFloats_ * sizeof(float));
        pipe->InitBuffer(scaledBuf_, tileFloats_ * sizeof(float));
        pipe->InitBuffer(downBuf_, plan_.chunked.lanes * kBlockBytes);
        pipe->InitBuffer(stateBuf_, plan_.chunked.lanes * tileFloats_ * sizeof(float));
    }

    __aicore__ inline void Process(const Window& window) {
        const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx());
        block_ = core / 2;
        firstRow_ = core % 2 * rows_;
        window_ = window.number;
        ScanLanes lanes;
        lanes.Init(window, plan_, block_);
        ScanStep steps[ScanLanes::kMaxLanes];
        uint32_t left = 0;
        for (uint32_t lane = 0; lane < plan_.chunked.lanes; ++lane)
            if (Prepare(lanes, lane, steps[lane])) left |= 1u << lane;
        while (left != 0)
            for (uint32_t lane = 0; lane < plan_.chunked.lanes; ++lane) {
                if ((left >> lane & 1) == 0) continue;
                Update(steps[lane]);
                if (!Prepare(lanes, lane, steps[lane])) left &= ~(1u << lane);
            }
    }

    // States of sequences without tokens that start from zeros.
    __aicore__ inline void ClearEmpty(const Sequences& sequences) {
        if (!keepsState_) return;
        const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx()), cores = 2 * plan_.chunked.cubeCores;
        const uint64_t all = static_cast<uint64_t>(plan_.valueHeads) * plan_.keyDim * plan_.valueDim;
        for (uint32_t i = core; i < plan_.sequences; i += cores) {
            const Sequence sequence = sequences.Get(i);
            if (sequence.kind != SequenceKind::kLive || sequence.tokens != 0 || !sequence.fresh) continue;
            for (uint64_t at = 0; at < all; at += tileFloats_) {
                AscendC::LocalTensor<float> out = outQue_.template AllocTensor<float>();
                AscendC::Duplicate(out, 0.0f, static_cast<int32_t>(tileFloats_));
                outQue_.EnQue(out);
                out = outQue_.template DeQue<float>();
                const uint32_t count = all - at < tileFloats_ ? static_cast<uint32_t>(all - at) : tileFloats_;
                CopyFlatOut(stateOut_[sequence.slot * all + at], out, count);
                outQue_.FreeTensor(out);
            }
        }
    }

private:
    static constexpr uint32_t kFactors = ChunkedWorkspace<Tc>::kFactorFloats;

    __aicore__ inline uint32_t Columns(const ScanStep& step) const { return Min(plan_.valueTile, plan_.valueDim - step.column); }
    __aicore__ inline AscendC::LocalTensor<float> State(uint32_t lane) const { return stateBuf_.template Get<float>()[lane * tileFloats_]; }
    __aicore__ inline uint64_t InHead(const ScanStep& step) const {
        return static_cast<uint64_t>(firstRow_) * plan_.valueDim + step.column;
    }
    __aicore__ inline uint64_t InStates(const ScanStep& step) const {
        const uint64_t head = static_cast<uint64_t>(step.sequence.slot) * plan_.valueHeads + step.valueHead;
        return head * plan_.keyDim * plan_.valueDim + InHead(step);
    }

    // The lane's next step, if there is one, and its state as an operand.
    __aicore__ inline bool Prepare(ScanLanes& lanes, uint32_t lane, ScanStep& step) {
        if (!lanes.Next(lane, step)) return false;
        if (step.enters) Load(step);
        const uint32_t columns = Columns(step), count = rows_ * columns;
        AscendC::LocalTensor<Tc> out = outQue_.template AllocTensor<Tc>();
        FenceVector();
        if constexpr (sizeof(Tc) == 2) {
            const AscendC::LocalTensor<float> scaled = scaledBuf_.template Get<float>();
            MulByBlock(scaled, State(lane), Down(lane), count);
            FenceVector();
            AscendC::Cast(out, scaled, AscendC::RoundMode::CAST_RINT, count);
        } else {
            AscendC::DataCopy(out, State(lane), count);
        }
        outQue_.EnQue(out);
        out = outQue_.template DeQue<Tc>();
        CopyFlatOut(workspace_.Operand(block_, lane)[firstRow_ * columns], out, count);
        outQue_.FreeTensor(out);
        AscendC::CrossCoreSetFlag<2, PIPE_MTE3>(kOperandReady);
        return true;
    }

    __aicore__ inline AscendC::LocalTensor<float> Down(uint32_t lane) const { return downBuf_.template Get<float>()[lane * kBlockFloats]; }
    // e^Gn, 2^F, 2^-F of the step; the caller frees them.
    __aicore__ inline AscendC::LocalTensor<float> Factors(const ScanStep& step) {
        const AscendC::LocalTensor<float> in = factorQue_.template AllocTensor<float>();
        CopyFlatIn(in, workspace_.Factors(step.valueHead, step.chunk), kFactors);
        factorQue_.EnQue(in);
        return factorQue_.template DeQue<float>();
    }

    __aicore__ inline void Load(const ScanStep& step) {
        const uint32_t columns = Columns(step);
        const AscendC::LocalTensor<float> factors = Factors(step);
        FenceVector();
        AscendC::DataCopy(Down(step.lane), factors[2 * kBlockFloats], kBlockFloats);
        factorQue_.FreeTensor(factors);
        if (step.begins && (step.sequence.fresh || !keepsState_)) {
            AscendC::Duplicate(State(step.lane), 0.0f, static_cast<int32_t>(rows_ * columns));
            return;
        }
        AscendC::LocalTensor<float> in = inQue_.template AllocTensor<float>();
        if (step.begins) CopyRowsIn(in, state_[InStates(step)], rows_, columns, plan_.valueDim);
        else CopyRowsIn(in, workspace_.Carried(window_ + 1, step.valueHead)[InHead(step)], rows_, columns, plan_.valueDim);
        inQue_.EnQue(in);
        in = inQue_.template DeQue<float>();
        AscendC::DataCopy(State(step.lane), in, rows_ * columns);
        inQue_.FreeTensor(in);
    }

    __aicore__ inline void Update(const ScanStep& step) {
        const uint32_t columns = Columns(step), count = rows_ * columns;
        const AscendC::LocalTensor<float> state = State(step.lane);
        const AscendC::LocalTensor<float> factors = Factors(step);
        FenceVector();
        MulByBlock(state, state, factors, count);
        AscendC::CrossCoreWaitFlag(kUpdateReady);
        AscendC::LocalTensor<float> in = inQue_.template AllocTensor<float>();
        CopyFlatIn(in, workspace_.Update(block_, step.lane)[firstRow_ * columns], count);
        inQue_.EnQue(in);
        in = inQue_.template DeQue<float>();
        if constexpr (sizeof(Tc) == 2) MulByBlock(in, in, factors[kBlockFloats], count);
        FenceVector();
        AscendC::Add(state, state, in, static_cast<int32_t>(count));
        FenceVector();
        inQue_.FreeTensor(in);
        factorQue_.FreeTensor(factors);
        if (step.leaves && (keepsState_ || !step.ends)) Store(step);
    }
    __aicore__ inline void Store(const ScanStep& step) {
        const uint32_t columns = Columns(step);
        AscendC::LocalTensor<float> out = outQue_.template AllocTensor<float>();
        AscendC::DataCopy(out, State(step.lane), rows_ * columns);
        outQue_.EnQue(out);
        out = outQue_.template DeQue<float>();
        if (step.ends) CopyRowsOut(stateOut_[InStates(step)], out, rows_, columns, plan_.valueDim);
        else CopyRowsOut(workspace_.Carried(window_, step.valueHead)[InHead(step)], out, rows_, columns, plan_.valueDim);
        outQue_.FreeTensor(out);
    }

    FusedLinearAttentionTilingData plan_;
    ChunkedWorkspace<Tc> workspace_;
    AscendC::GlobalTensor<float> state_, stateOut_;
    bool keepsState_ = false;
    uint32_t rows_ = 0, tileFloats_ = 0, block_ = 0, firstRow_ = 0, window_ = 0;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> inQue_, factorQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> stateBuf_, scaledBuf_, downBuf_;
};

}  // namespace hc
