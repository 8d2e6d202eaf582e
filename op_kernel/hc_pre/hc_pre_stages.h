// The three plans of hc_pre (hc_pre_tiling_data.h) as sequences of stages.
#pragma once

#include "../common/sinkhorn_rows_membase.h"
#include "hc_pre_cube.h"
#include "hc_pre_decode_membase.h"
#include "hc_pre_partials.h"

namespace hc {

template <typename T>
using HcPreRows = SinkhornRowsMembase<T, PartialSums>;

// The rows of one core once all partial sums are there. Buffers of the stage before are given up.
template <typename T>
__aicore__ inline void RowsAfterSyncAll(const RowTensors& tensors, GM_ADDR partials, const HcPreTilingData& plan, bool fromCube,
                                        AscendC::TPipe* pipe) {
    pipe->Reset();
    const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx());
    if (core >= plan.rows.usedCores) return;
    PartialSums source;
    source.Init(partials, plan, fromCube);
    CoreShare share;
    share.Init(plan.rows, core);
    HcPreRows<T> rows;
    rows.Init(tensors, source, plan.rows, pipe);
    rows.Process(share);
}

template <typename T>
__aicore__ inline void Decode(const RowTensors& tensors, GM_ADDR fn, GM_ADDR partials, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
    {
        ProjectDecode<T> project;
        project.Init(tensors.x, fn, partials, plan, pipe);
        project.Process(static_cast<uint32_t>(AscendC::GetBlockIdx()));
    }
    AscendC::SyncAll();
    RowsAfterSyncAll<T>(tensors, partials, plan, false, pipe);
}

// Where the partial sums start in the workspace, behind the terms of hc_fn; on 512 B.
__aicore__ inline GM_ADDR PartialsOf(GM_ADDR workspace, const HcPreTilingData& plan) {
    return workspace + AlignUp(kTerms * plan.mix * plan.termPitch, 256) * sizeof(bfloat16_t);
}

__aicore__ inline void TermsOfFn(GM_ADDR fn, GM_ADDR terms, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
    SplitTerms split;
    split.Init(fn, terms, plan, pipe);
    split.Process(static_cast<uint32_t>(AscendC::GetBlockIdx()));
}

template <typename T>
__aicore__ inline void Grid(const RowTensors& tensors, GM_ADDR fn, GM_ADDR workspace, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
    if constexpr (sizeof(T) != sizeof(bfloat16_t)) return;  // the host gives other types no such plan
    GM_ADDR partials = PartialsOf(workspace, plan);
    if ASCEND_IS_AIC {
        ProjectCube project;
        project.Init(tensors.x, workspace, partials, plan, pipe);
        AscendC::SyncAll<false>();  // the terms are there
        const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx()), block = core / plan.kParts.count, part = core % plan.kParts.count;
        if (block < plan.blocks.count)
            project.Process(Span(plan.blocks, block, plan.rows.tokens), Span(plan.kParts, part, plan.rowElements), part);
        AscendC::SyncAll<false>();  // the sums are there
    }
    if ASCEND_IS_AIV {
        TermsOfFn(fn, workspace, plan, pipe);
        AscendC::SyncAll<false>();
        AscendC::SyncAll<false>();
        RowsAfterSyncAll<T>(tensors, partials, plan, true, pipe);
    }
}

// A cube core and its vector cores are one block of tokens apart: while these turn the sums of a block into results, it works on the
// next, and not further ahead, so that the tokens are still in L2 when the vector cores read them.
constexpr uint16_t kSumsReady = 0, kBlockDone = 1;  // cross-core flags

__aicore__ inline void ProjectBlocks(const RowTensors& tensors, GM_ADDR terms, GM_ADDR partials, const HcPreTilingData& plan,
                                     AscendC::TPipe* pipe) {
    ProjectCube project;
    project.Init(tensors.x, terms, partials, plan, pipe);
    AscendC::SyncAll<false>();  // the terms are there
    const uint32_t first = static_cast<uint32_t>(AscendC::GetBlockIdx());
    for (uint32_t block = first; block < plan.blocks.count; block += plan.cubeCores) {
        if (block >= first + 2 * plan.cubeCores) AscendC::CrossCoreWaitFlag(kBlockDone);
        project.Process(Span(plan.blocks, block, plan.rows.tokens), Span(plan.kParts, 0, plan.rowElements), 0);
        AscendC::CrossCoreSetFlag<2, PIPE_FIX>(kSumsReady);
    }
}

template <typename T>
__aicore__ inline void RowsOfBlocks(const RowTensors& tensors, GM_ADDR partials, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
    pipe->Reset();  // the buffers that hc_fn was split in
    PartialSums source;
    source.Init(partials, plan, true);
    HcPreRows<T> rows;
    rows.Init(tensors, source, plan.rows, pipe);
    const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx()), second = core % 2;
    for (uint32_t block = core / 2; block < plan.blocks.count; block += plan.cubeCores) {
        const Span tokens(plan.blocks, block, plan.rows.tokens);
        const uint32_t half = CeilDiv(tokens.count, 2);
        CoreShare share{tokens.first + second * half, second != 0 ? tokens.count - half : half, 0, plan.rows.hidden, 0};
        AscendC::CrossCoreWaitFlag(kSumsReady);
        rows.Process(share);
        if (block + 2 * plan.cubeCores < plan.blocks.count) AscendC::CrossCoreSetFlag<2, PIPE_MTE2>(kBlockDone);
    }
}

template <typename T>
__aicore__ inline void Stream(const RowTensors& tensors, GM_ADDR fn, GM_ADDR workspace, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
    if constexpr (sizeof(T) != sizeof(bfloat16_t)) return;  // the host gives other types no such plan
    GM_ADDR partials = PartialsOf(workspace, plan);
    if ASCEND_IS_AIC {
        ProjectBlocks(tensors, workspace, partials, plan, pipe);
    }
    if ASCEND_IS_AIV {
        TermsOfFn(fn, workspace, plan, pipe);
        AscendC::SyncAll<false>();
        RowsOfBlocks<T>(tensors, partials, plan, pipe);
    }
}

}  // namespace hc
