// The plans of hc_pre (hc_pre_tiling_data.h) as sequences of stages.
#pragma once

#if defined(__DAV_C310__)
#include "../common/sinkhorn_rows_regbase.h"
#include "hc_pre_decode_regbase.h"
#else
#include "../common/sinkhorn_rows_membase.h"
#include "hc_pre_decode_membase.h"
#endif
#include "hc_pre_cube.h"
#include "hc_pre_partials.h"
#include "hc_pre_widen.h"

namespace hc {

#if defined(__DAV_C310__)
template <typename T>
using HcPreRows = SinkhornRowsRegbase<T, PartialSums>;
#else
template <typename T>
using HcPreRows = SinkhornRowsMembase<T, PartialSums>;
#endif

// The share of this core of the rows; none for a core that only projects.
__aicore__ inline CoreShare ShareOfRows(const SinkhornRowsPlan& plan) {
    const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx());
    CoreShare share{};
    if (core < plan.usedCores) share.Init(plan, core);
    return share;
}

template <typename T>
__aicore__ inline void Decode(const RowTensors& tensors, GM_ADDR fn, GM_ADDR partials, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
    {
        ProjectDecode<T> project;
        project.Init(tensors.x, fn, partials, plan, pipe);
        project.Process(static_cast<uint32_t>(AscendC::GetBlockIdx()));
    }
    AscendC::SyncAll();
    pipe->Reset();
    const CoreShare share = ShareOfRows(plan.rows);
    if (share.rows == 0) return;
    PartialSums source;
    source.Init(partials, partials, plan, false);
    HcPreRows<T> rows;
    rows.Init(tensors, source, plan.rows, pipe);
    rows.Process(share);
}

// Whether the cube takes terms of hc_fn, and not hc_fn itself.
__aicore__ inline bool HasTerms(const HcPreTilingData& plan) { return plan.termColumns != 0; }

// The workspace: what the cube multiplies instead of an input (terms of hc_fn, or x as float32) if there is any, on 512 B the partial
// sums, then the maxima of its rows (float16).
__aicore__ inline GM_ADDR AfterOperand(GM_ADDR workspace, uint64_t operandBytes) {
    constexpr uint64_t kLineBytes = 512;
    return workspace + (operandBytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}
template <typename T>
__aicore__ inline GM_ADDR PartialsOf(GM_ADDR workspace, const HcPreTilingData& plan) {
    return AfterOperand(workspace, static_cast<uint64_t>(plan.termColumns) * plan.mix * kTermsOf<T> * sizeof(T));
}
__aicore__ inline GM_ADDR MaximaOf(GM_ADDR partials, const HcPreTilingData& plan) {
    return partials + static_cast<uint64_t>(plan.parts) * plan.rows.tokens * plan.partialPitch * sizeof(float);
}
__aicore__ inline GM_ADDR ScalesOf(GM_ADDR partials, const HcPreTilingData& plan) {
    return MaximaOf(partials, plan) + plan.slices.count * RowPitch<float>(plan.mix) * sizeof(float);
}

constexpr uint16_t kSumsReady = 0, kBlockDone = 1, kOperandReady = 2;  // cross-core flags

// A vector core's half of the part of K that its own cube core multiplies, when no two cube cores multiply the same one.
__aicore__ inline Span HalfOfPart(const HcPreTilingData& plan) {
    const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx());
    return Span(plan.kParts, core / 2, plan.rowElements).Half(core % 2 != 0);
}
__aicore__ inline void TellOwnCube() {
    AscendC::CrossCoreSetFlag<2, PIPE_MTE3>(kOperandReady);
    AscendC::PipeBarrier<PIPE_ALL>();  // the operand has left the buffers, as after SyncAll
}

// Vector cores: terms in the workspace, if the cube takes any: of the part of K that their own cube core multiplies, which a flag tells
// it, or of a slice for all, which ends in SyncAll<false>. WaitForTerms is the cube cores' side.
template <typename T>
__aicore__ inline void TermsOfFn(GM_ADDR fn, GM_ADDR workspace, const HcPreTilingData& plan, bool ofOwnPart, AscendC::TPipe* pipe) {
    if (!HasTerms(plan)) return;
    const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx());
    const Span slice = ofOwnPart ? HalfOfPart(plan) : Span(plan.slices, core, plan.rowElements);
    {
        SplitTerms<T> split;
        split.Init(fn, workspace, MaximaOf(PartialsOf<T>(workspace, plan), plan), plan, pipe);
        if (plan.scaled != 0) {
            split.FindMaxima(core);
            AscendC::SyncAll<false>();
            split.FindScales(core);
        }
        split.Process(slice);
        if (ofOwnPart) {
            TellOwnCube();
        } else {
            AscendC::SyncAll<false>();
        }
    }
    pipe->Reset();  // the buffers that hc_fn was split in
}
__aicore__ inline void WaitForTerms(const HcPreTilingData& plan, bool ofOwnPart) {
    if (!HasTerms(plan)) return;
    if (plan.scaled != 0) AscendC::SyncAll<false>();
    if (ofOwnPart) {
        AscendC::CrossCoreWaitFlag(kOperandReady);
    } else {
        AscendC::SyncAll<false>();
    }
}

// What a cube core multiplies in plans grid and widen; no tokens for one that has nothing to do.
struct GridShare {
    uint32_t part;  // of K
    Span tokens, k;
    __aicore__ inline GridShare(const HcPreTilingData& plan, uint32_t core)
        : part(core % plan.kParts.count), tokens(plan.blocks, core / plan.kParts.count, plan.rows.tokens),
          k(plan.kParts, part, plan.rowElements) {}
};

// Vector cores: rows of the sums that all cube cores have written before SyncAll; the first x tiles are loaded meanwhile.
template <typename T>
__aicore__ inline void RowsOfGrid(const RowTensors& tensors, GM_ADDR partials, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
    const CoreShare share = ShareOfRows(plan.rows);
    PartialSums source;
    source.Init(partials, ScalesOf(partials, plan), plan, true);
    HcPreRows<T> rows;
    rows.Init(tensors, source, plan.rows, pipe);
    rows.Prefetch(share);
    AscendC::SyncAll<false>();
    rows.Process(share);
}

template <typename T>
__aicore__ inline void Grid(const RowTensors& tensors, GM_ADDR fn, GM_ADDR workspace, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
    GM_ADDR partials = PartialsOf<T>(workspace, plan);
    const bool ofOwnPart = plan.blocks.count == 1;  // no two cube cores multiply the same part of K
    if ASCEND_IS_AIC {
        ProjectCube<T> project;
        project.Init(tensors.x, HasTerms(plan) ? workspace : fn, partials, plan, pipe);
        const GridShare share(plan, static_cast<uint32_t>(AscendC::GetBlockIdx()));
        project.PrefetchX(share.tokens, share.k);
        WaitForTerms(plan, ofOwnPart);
        project.Process(share.tokens, share.k, share.part);
        AscendC::SyncAll<false>();  // the sums are there
    }
    if ASCEND_IS_AIV {
        TermsOfFn<T>(fn, workspace, plan, ofOwnPart, pipe);
        RowsOfGrid<T>(tensors, partials, plan, pipe);
    }
}

template <typename T>
__aicore__ inline void Widen(const RowTensors& tensors, GM_ADDR fn, GM_ADDR workspace, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
    if constexpr (sizeof(T) != sizeof(float)) {
        GM_ADDR partials = AfterOperand(workspace, static_cast<uint64_t>(plan.rows.tokens) * plan.xPitch * sizeof(float));
        if ASCEND_IS_AIC {
            ProjectCube<float> project;
            project.Init(workspace, fn, partials, plan, pipe);
            const GridShare share(plan, static_cast<uint32_t>(AscendC::GetBlockIdx()));
            project.PrefetchTerms(share.tokens, share.k);
            AscendC::CrossCoreWaitFlag(kOperandReady);
            project.Process(share.tokens, share.k, share.part);
            AscendC::SyncAll<false>();
        }
        if ASCEND_IS_AIV {
            {
                WidenX<T> widen;
                widen.Init(tensors.x, workspace, plan, pipe);
                widen.Process(HalfOfPart(plan));
                TellOwnCube();
            }
            pipe->Reset();
            RowsOfGrid<T>(tensors, partials, plan, pipe);
        }
    }
}

// A cube core and its vector cores are one block of tokens apart: while these turn the sums of a block into results, it works on the
// next, and not further ahead, so that the tokens are still in L2 when the vector cores read them.
template <typename T>
__aicore__ inline void ProjectBlocks(const RowTensors& tensors, GM_ADDR terms, GM_ADDR partials, const HcPreTilingData& plan,
                                     AscendC::TPipe* pipe) {
    ProjectCube<T> project;
    project.Init(tensors.x, terms, partials, plan, pipe);
    const Span k(plan.kParts, 0, plan.rowElements);
    const uint32_t first = static_cast<uint32_t>(AscendC::GetBlockIdx());
    project.PrefetchX(Span(plan.blocks, first, plan.rows.tokens), k);
    WaitForTerms(plan, false);
    for (uint32_t block = first; block < plan.blocks.count; block += plan.cubeCores) {
        if (block >= first + 2 * plan.cubeCores) AscendC::CrossCoreWaitFlag(kBlockDone);
        project.Process(Span(plan.blocks, block, plan.rows.tokens), k, 0);
        AscendC::CrossCoreSetFlag<2, PIPE_FIX>(kSumsReady);
    }
}

template <typename T>
__aicore__ inline void RowsOfBlocks(const RowTensors& tensors, GM_ADDR partials, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
    PartialSums source;
    source.Init(partials, ScalesOf(partials, plan), plan, true);
    HcPreRows<T> rows;
    rows.Init(tensors, source, plan.rows, pipe);
    const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx()), second = core % 2;
    for (uint32_t block = core / 2; block < plan.blocks.count; block += plan.cubeCores) {
        const Span tokens(plan.blocks, block, plan.rows.tokens);
        const uint32_t half = CeilDiv(tokens.count, 2);
        CoreShare share{tokens.first + second * half, second != 0 ? tokens.count - half : half, 0, plan.rows.hidden, 0};
        rows.Prefetch(share);
        AscendC::CrossCoreWaitFlag(kSumsReady);
        rows.Process(share);
        if (block + 2 * plan.cubeCores < plan.blocks.count) AscendC::CrossCoreSetFlag<2, PIPE_MTE2>(kBlockDone);
    }
}

template <typename T>
__aicore__ inline void Stream(const RowTensors& tensors, GM_ADDR fn, GM_ADDR workspace, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
    GM_ADDR partials = PartialsOf<T>(workspace, plan);
    if ASCEND_IS_AIC {
        ProjectBlocks<T>(tensors, HasTerms(plan) ? workspace : fn, partials, plan, pipe);
    }
    if ASCEND_IS_AIV {
        TermsOfFn<T>(fn, workspace, plan, false, pipe);
        RowsOfBlocks<T>(tensors, partials, plan, pipe);
    }
}

}  // namespace hc
