// The chunked plan of the gated delta rule: windows of chunks, for each
//
//   vector  q, k, v                    ChunkedPrepare
//   cube    K K^T, K Q^T               ChunkedCube::Products   } the vector cores of a block solve one pair of items
//   vector  T, P, scaled q and k       ChunkedSolve            } while its cube core multiplies the next
//   both    the states over the chunks ChunkedCube::Scan, ChunkedScan
#pragma once

#include "chunked_prepare.h"
#include "chunked_scan.h"
#include "chunked_solve.h"

namespace hc {

template <typename T>
struct ChunkedOperand {
    using Type = half;  // bfloat16 too: q, k and the products with them are at most about 1, 3 bits more are for nothing
};
template <>
struct ChunkedOperand<float> {
    using Type = float;
};

template <typename T, typename G>
class Chunked {
    using Tc = typename ChunkedOperand<T>::Type;

public:
    __aicore__ inline void Init(const LinearAttentionTensors& tensors, GM_ADDR workspace, const FusedLinearAttentionTilingData* plan,
                                AscendC::TPipe* pipe) {
        tensors_ = tensors;
        workspace_ = workspace;
        plan_ = *plan;
        pipe_ = pipe;
        sequences_.Init(tensors.cuSeqlens, tensors.stateIndices, tensors.hasInitialState, *plan);
        walk_.Init(sequences_, plan->sequences);
    }

    __aicore__ inline void Process() {
        if ASCEND_IS_AIC {
            RunCube();
        }
        if ASCEND_IS_AIV {
            RunVector();
        }
    }

private:
    // The next window; false: there are no more chunks.
    __aicore__ inline bool Next(Window& window) {
        window.first = next_;
        window.number = number_++;
        if (!walk_.Seek(next_)) return false;
        window.walk = walk_;
        const uint32_t most = plan_.chunked.windowChunks;
        ChunkWalk to = walk_;
        if (to.Seek(next_ + most)) window.count = most;
        else window.count = to.First() - next_;
        next_ += window.count;
        return window.count != 0;
    }

    __aicore__ inline void RunCube() {
        ChunkedCube<T, Tc> cube;
        cube.Init(tensors_.attnOut, workspace_, plan_, pipe_);
        for (Window window; Next(window);) {
            AscendC::SyncAll<false>();  // q, k and v are there
            cube.Products(window);
            AscendC::SyncAll<false>();  // what the scan needs is there
            cube.Scan(window);
            AscendC::SyncAll<false>();  // the workspace is free
        }
        cube.End();
    }

    __aicore__ inline void RunVector() {
        for (Window window; Next(window);) {
            {
                ChunkedPrepare<T, G, Tc> prepare;
                prepare.Init(tensors_, &plan_, pipe_);
                prepare.InitWorkspace(workspace_, pipe_);
                prepare.Process(window);
            }
            AscendC::SyncAll<false>();
            pipe_->Reset();
            {
                ChunkedSolve<T, G, Tc> solve;
                solve.Init(tensors_, workspace_, plan_, pipe_);
                solve.Process(window);
            }
            AscendC::SyncAll<false>();
            pipe_->Reset();
            {
                ChunkedScan<Tc> scan;
                scan.Init(tensors_, workspace_, plan_, pipe_);
                scan.Process(window);
            }
            AscendC::SyncAll<false>();
            pipe_->Reset();
        }
        plan_.sequences = walk_.Count();
        {
            ChunkedScan<Tc> scan;
            scan.Init(tensors_, workspace_, plan_, pipe_);
            scan.ClearEmpty(sequences_);
        }
        AscendC::PipeBarrier<PIPE_ALL>();
        pipe_->Reset();
        ChunkedPrepare<T, G, Tc> prepare;
        prepare.Init(tensors_, &plan_, pipe_);
        prepare.StoreConvStates();  // all cores have read the old one
        prepare.FillRest();
    }

    LinearAttentionTensors tensors_;
    GM_ADDR workspace_ = nullptr;
    FusedLinearAttentionTilingData plan_;
    AscendC::TPipe* pipe_ = nullptr;
    Sequences sequences_;
    ChunkWalk walk_;
    uint32_t next_ = 0, number_ = 0;
};

}  // namespace hc
