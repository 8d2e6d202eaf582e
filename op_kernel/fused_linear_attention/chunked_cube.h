// What the cube cores of the chunked plan do.
//
//   products  M = K K^T, P^T = K Q^T of a key head and chunk
//   scan      W = -T diag(b e^G) K;  Vn = T diag(b) V + W S;  update = (e^(Gn - G) K)^T Vn;  out = (e^G Q) S + P Vn
#pragma once

#include "chunked_chunks.h"
#include "chunked_matmul.h"

namespace hc {

// Cross-core flags of a block.
constexpr uint16_t kProductsReady = 0, kOperandReady = 1, kUpdateReady = 2, kProductsTaken = 3;
constexpr uint32_t kPairsAhead = 4;  // of products, that the cube core is ahead of its vector cores

template <typename T, typename Tc>
class ChunkedCube {
public:
    __aicore__ inline void Init(GM_ADDR attnOut, GM_ADDR workspace, const FusedLinearAttentionTilingData& plan, AscendC::TPipe* pipe) {
        attnOut_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(attnOut));
        plan_ = plan;
        workspace_.Init(workspace, plan);
        matmul_.Init(pipe);
        const uint32_t square = kChunkTokens * kChunkTokens, keys = kChunkTokens * plan_.keyDim, values = kChunkTokens * plan_.valueTile;
        scaledQ_ = 3 * square;
        scaledK_ = scaledQ_ + keys;
        keys_ = scaledK_ + keys;
        values_ = keys_ + keys;
        pipe->InitBuffer(inL1_, 2, (values_ + values) * sizeof(Tc));
        pipe->InitBuffer(stateL1_, plan_.chunked.operandBuffers, plan_.keyDim * plan_.valueTile * sizeof(Tc));
        pipe->InitBuffer(keptL1_, (keys + values) * sizeof(Tc));
        kept_ = pipe->AllocEventID<AscendC::HardEvent::FIX_MTE1>();
        used_ = pipe->AllocEventID<AscendC::HardEvent::MTE1_FIX>();
    }

    // Items (chunk, key head) of this block, two at a time: one for each of its vector cores.
    __aicore__ inline void Products(Window window) {
        const uint32_t block = static_cast<uint32_t>(AscendC::GetBlockIdx()), items = window.count * plan_.keyHeads;
        const uint32_t stride = 2 * plan_.chunked.cubeCores;
        for (uint32_t pair = 2 * block; pair < items; pair += stride) {
            if (pair >= 2 * block + kPairsAhead * stride) AscendC::CrossCoreWaitFlag(kProductsTaken);
            for (uint32_t item = pair; item < Min(items, pair + 2); ++item) Product(window, item);
            AscendC::CrossCoreSetFlag<2, PIPE_FIX>(kProductsReady);
        }
    }

    __aicore__ inline void Scan(const Window& window) {
        ScanLanes lanes;
        lanes.Init(window, plan_, static_cast<uint32_t>(AscendC::GetBlockIdx()));
        lane_ = 0;
        lanesLeft_ = (1u << plan_.chunked.lanes) - 1;
        ScanStep ahead{}, step{};
        bool more = Next(lanes, ahead);
        if (more) CopyIn(ahead);
        while (more) {
            step = ahead;
            more = Next(lanes, ahead);
            if (more) CopyIn(ahead);
            Step(step);
        }
    }

private:
    __aicore__ inline void Product(Window& window, uint32_t item) {
        const uint32_t chunk = item / plan_.keyHeads, keyHead = item % plan_.keyHeads, dim = plan_.keyDim;
        window.walk.Seek(window.first + chunk);
        if (window.walk.Current().kind != SequenceKind::kLive) return;
        const AscendC::LocalTensor<Tc> in = inL1_.template AllocTensor<Tc>();
        ChunkedMatmul<Tc>::CopyIn(in, workspace_.Keys(keyHead, chunk), kChunkTokens, dim, dim);
        ChunkedMatmul<Tc>::CopyIn(in[kChunkTokens * dim], workspace_.Queries(keyHead, chunk), kChunkTokens, dim, dim);
        inL1_.EnQue(in);
        const AscendC::LocalTensor<Tc> ready = inL1_.template DeQue<Tc>();
        for (uint32_t of = 0; of < 2; ++of) {
            const AscendC::LocalTensor<float> sums = matmul_.Start();
            matmul_.Add(sums, {ready, false}, {ready[of * kChunkTokens * dim], true}, kChunkTokens, kChunkTokens, dim, true);
            matmul_.Finish(workspace_.Products(keyHead, chunk)[of * ChunkedWorkspace<Tc>::kSquare], sums, kChunkTokens, kChunkTokens,
                           kChunkTokens, kChunkTokens);
        }
        inL1_.FreeTensor(ready);
    }

    __aicore__ inline bool Next(ScanLanes& lanes, ScanStep& step) {
        while (lanesLeft_ != 0) {
            const uint32_t lane = lane_;
            lane_ = (lane_ + 1) % plan_.chunked.lanes;
            if ((lanesLeft_ >> lane & 1) == 0) continue;
            if (lanes.Next(lane, step)) return true;
            lanesLeft_ &= ~(1u << lane);
        }
        return false;
    }

    __aicore__ inline void CopyIn(const ScanStep& step) {
        const uint32_t dim = plan_.keyDim, keyHead = step.valueHead / (plan_.valueHeads / plan_.keyHeads);
        const AscendC::LocalTensor<Tc> in = inL1_.template AllocTensor<Tc>();
        for (uint32_t i = 0; i < 3; ++i)
            ChunkedMatmul<Tc>::CopyIn(in[i * ChunkedWorkspace<Tc>::kSquare], workspace_.Square(step.valueHead, step.chunk, i), kChunkTokens,
                                      kChunkTokens, kChunkTokens);
        ChunkedMatmul<Tc>::CopyIn(in[scaledQ_], workspace_.Scaled(step.valueHead, step.chunk, 0), kChunkTokens, dim, dim);
        ChunkedMatmul<Tc>::CopyIn(in[scaledK_], workspace_.Scaled(step.valueHead, step.chunk, 1), kChunkTokens, dim, dim);
        ChunkedMatmul<Tc>::CopyIn(in[keys_], workspace_.Keys(keyHead, step.chunk), kChunkTokens, dim, dim);
        ChunkedMatmul<Tc>::CopyIn(in[values_], workspace_.Values(step.valueHead, step.chunk)[step.column], kChunkTokens, Columns(step),
                                  plan_.valueDim);
        inL1_.EnQue(in);
    }
    __aicore__ inline uint32_t Columns(const ScanStep& step) const { return Min(plan_.valueTile, plan_.valueDim - step.column); }

    __aicore__ inline void Step(const ScanStep& step) {
        const uint32_t block = static_cast<uint32_t>(AscendC::GetBlockIdx()), dim = plan_.keyDim, columns = Columns(step), n = kChunkTokens;
        const AscendC::LocalTensor<Tc> in = inL1_.template DeQue<Tc>();
        const AscendC::LocalTensor<Tc> solved = in, solvedKeys = in[n * n], pairs = in[2 * n * n];
        const AscendC::LocalTensor<Tc> w = keptL1_.template Get<Tc>(), vNew = w[n * dim];

        AscendC::LocalTensor<float> sums = matmul_.Start();
        matmul_.Add(sums, {solvedKeys, false}, {in[keys_], false}, n, dim, n, true);
        if (steps_ != 0) AscendC::WaitFlag<AscendC::HardEvent::MTE1_FIX>(used_);
        matmul_.Keep(w, sums, n, dim);
        sums = matmul_.Start();
        matmul_.Add(sums, {solved, false}, {in[values_], false}, n, columns, n, true);

        AscendC::CrossCoreWaitFlag(kOperandReady);
        const AscendC::LocalTensor<Tc> loading = stateL1_.template AllocTensor<Tc>();
        ChunkedMatmul<Tc>::CopyIn(loading, workspace_.Operand(block, step.lane), dim, columns, columns);
        stateL1_.EnQue(loading);
        const AscendC::LocalTensor<Tc> state = stateL1_.template DeQue<Tc>();
        WaitForKept();
        matmul_.Add(sums, {w, false}, {state, false}, n, columns, dim, false);
        matmul_.Keep(vNew, sums, n, columns);
        sums = matmul_.Start();
        WaitForKept();
        matmul_.Add(sums, {in[scaledK_], true}, {vNew, false}, dim, columns, n, true);
        matmul_.Finish(workspace_.Update(block, step.lane), sums, dim, columns, dim, columns);
        AscendC::CrossCoreSetFlag<2, PIPE_FIX>(kUpdateReady);

        sums = matmul_.Start();
        matmul_.Add(sums, {in[scaledQ_], false}, {state, false}, n, columns, dim, true);
        stateL1_.FreeTensor(state);
        matmul_.Add(sums, {pairs, true}, {vNew, false}, n, columns, n, false);
        AscendC::SetFlag<AscendC::HardEvent::MTE1_FIX>(used_);
        ++steps_;
        inL1_.FreeTensor(in);
        const uint64_t row = (step.sequence.firstRow + step.firstToken) * plan_.valueHeads + step.valueHead;
        matmul_.Finish(attnOut_[row * plan_.valueDim + step.column], sums, n, columns, step.tokens, plan_.valueHeads * plan_.valueDim);
    }
    // For an operand that was kept to be in L1.
    __aicore__ inline void WaitForKept() {
        AscendC::SetFlag<AscendC::HardEvent::FIX_MTE1>(kept_);
        AscendC::WaitFlag<AscendC::HardEvent::FIX_MTE1>(kept_);
    }

public:
    __aicore__ inline void End() {
        if (steps_ != 0) AscendC::WaitFlag<AscendC::HardEvent::MTE1_FIX>(used_);
        steps_ = 0;
    }

private:
    FusedLinearAttentionTilingData plan_;
    ChunkedWorkspace<Tc> workspace_;
    ChunkedMatmul<Tc> matmul_;
    AscendC::GlobalTensor<T> attnOut_;
    uint32_t scaledQ_ = 0, scaledK_ = 0, keys_ = 0, values_ = 0;  // in one step's input
    uint32_t lane_ = 0, lanesLeft_ = 0, steps_ = 0;
    AscendC::TQue<AscendC::TPosition::A1, 2> inL1_;
    AscendC::TQue<AscendC::TPosition::B1, 1> stateL1_;
    AscendC::TBuf<AscendC::TPosition::A1> keptL1_;  // W, Vn
    AscendC::TEventID kept_, used_;
};

}  // namespace hc
