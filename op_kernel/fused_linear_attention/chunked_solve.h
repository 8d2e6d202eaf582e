// Vector cores, between the products of the cube and the scan: for each value head and chunk, with G the running sum of its log decays,
//
//   A_ij = b_i M_ij e^(G_i - G_j), i > j;  T = (I + A)^-1 by substitution in float32;  P_ij e^(G_i - G_j), i >= j
//
// G_i - G_j is summed from its own terms: no difference of large sums, never positive.
#pragma once

#include "chunked_chunks.h"
#include "chunked_cube.h"
#include "conv_rows.h"
#include "recurrent_prepare.h"

namespace hc {

template <typename T, typename G, typename Tc>
class ChunkedSolve {
public:
    __aicore__ inline void Init(const LinearAttentionTensors& tensors, GM_ADDR workspace, const FusedLinearAttentionTilingData& plan,
                                AscendC::TPipe* pipe) {
        plan_ = plan;
        workspace_.Init(workspace, plan);
        gate_.SetGlobalBuffer(reinterpret_cast<__gm__ G*>(tensors.gate));
        beta_.SetGlobalBuffer(reinterpret_cast<__gm__ G*>(tensors.beta));
        gateCoef_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.gateCoef));
        gateBias_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.gateBias));
        pipe->InitBuffer(productQue_, 1, 2 * kSquare * sizeof(float));
        pipe->InitBuffer(rowQue_, kRowBuffers, kSquare * sizeof(Tc));
        pipe->InitBuffer(gateQue_, 2, 2 * kRows * kBlockBytes);
        if constexpr (kScaled) {
            pipe->InitBuffer(scaleQue_, 1, kMaxWindow * kBlockBytes);
            known_ = pipe->AllocEventID<AscendC::HardEvent::MTE2_S>();
        }
        pipe->InitBuffer(outQue_, 2, kSquare * sizeof(Tc));
        pipe->InitBuffer(workBuf_, kWorkFloats * sizeof(float));
        const AscendC::LocalTensor<float> work = workBuf_.template Get<float>();
        mask_ = work;
        identity_ = mask_[kSquare];
        lower_ = identity_[kSquare];
        ratios_ = lower_[kSquare];
        sums_ = ratios_[kSquare];
        g_ = sums_[kSquare + kRows];
        betas_ = g_[kRows];
        negative_ = betas_[kRows];
        decay_ = negative_[kRows];
        rest_ = decay_[kRows];
        scaledDecay_ = rest_[kRows];
        scratch_ = scaledDecay_[kRows];
        blocks_ = scratch_[3 * kRows];
        gateOffsets_ = blocks_[kRows * kBlockFloats].template ReinterpretCast<uint32_t>();
        rowOffsets_ = gateOffsets_[kRows];
        InitConstants();
    }

    // The items of ChunkedCube::Products, one of each pair.
    __aicore__ inline void Process(Window window) {
        const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx()), items = window.count * plan_.keyHeads;
        const uint32_t stride = 2 * plan_.chunked.cubeCores;
        for (uint32_t pair = core / 2 * 2; pair < items; pair += stride) {
            AscendC::CrossCoreWaitFlag(kProductsReady);
            const uint32_t item = pair + core % 2;
            if (item < items) Item(window, item / plan_.keyHeads, item % plan_.keyHeads);
            if (pair + kPairsAhead * stride < items) AscendC::CrossCoreSetFlag<2, PIPE_MTE2>(kProductsTaken);
        }
    }

    static constexpr uint32_t kRows = kChunkTokens, kSquare = kRows * kRows;
    static constexpr uint32_t kWorkFloats = 5 * kSquare + kRows + 9 * kRows + kRows * kBlockFloats + 2 * kRows;

private:
    static constexpr uint32_t kGroup = 8;  // rows
    static constexpr bool kScaled = sizeof(Tc) == 2;
    static constexpr uint32_t kMaxWindow = 128;  // chunks
    static constexpr uint32_t kRowBuffers = kScaled ? 4 : 1;  // 4: q and k of a chunk on their way while it is solved

    __aicore__ inline void InitConstants() {
        uint64_t lanes[2] = {0, 0};
        AscendC::Duplicate(mask_, 0.0f, static_cast<int32_t>(2 * kSquare));
        FenceVector();
        for (uint32_t row = 0; row < kRows; ++row) {
            lanes[0] = ~0ull << row;
            AscendC::Duplicate(mask_[row * kRows], 1.0f, lanes, static_cast<uint8_t>(1), 1, 8);
            lanes[0] = 1ull << row;
            AscendC::Duplicate(identity_[row * kRows], 1.0f, lanes, static_cast<uint8_t>(1), 1, 8);
        }
        EvenOffsets(gateOffsets_, sizeof(G) == 2 ? 2 * kBlockBytes : kBlockBytes, kRows);
        EvenOffsets(rowOffsets_, kRows * sizeof(float), kRows);
        FenceVector();
    }

    __aicore__ inline void Item(Window& window, uint32_t chunk, uint32_t keyHead) {
        window.walk.Seek(window.first + chunk);
        const Sequence& sequence = window.walk.Current();
        if (sequence.kind != SequenceKind::kLive) return;
        const uint32_t first = (window.first + chunk - window.walk.First()) * kChunkTokens, ratio = plan_.valueHeads / plan_.keyHeads;
        AscendC::LocalTensor<float> products = productQue_.template AllocTensor<float>();
        CopyFlatIn(products, workspace_.Products(keyHead, chunk), 2 * kSquare);
        productQue_.EnQue(products);
        products = productQue_.template DeQue<float>();
        const uint32_t from = window.walk.First() > window.first ? window.walk.First() - window.first : 0;
        const uint32_t to = Min(window.count, window.walk.End() - window.first);
        for (uint32_t valueHead = keyHead * ratio; valueHead < (keyHead + 1) * ratio; ++valueHead) {
            if constexpr (kScaled) Scales(valueHead, from, to, chunk);
            Head(products, keyHead, valueHead, chunk, sequence.firstRow + first, Min(kRows, sequence.tokens - first));
        }
        productQue_.FreeTensor(products);
    }

    __aicore__ inline void Head(const AscendC::LocalTensor<float>& products, uint32_t keyHead, uint32_t valueHead, uint32_t chunk,
                                uint64_t row, uint32_t tokens) {
        const AscendC::GlobalTensor<Tc> queries = workspace_.Queries(keyHead, chunk), keys = workspace_.Keys(keyHead, chunk);
        Gates(valueHead, row, tokens);
        if constexpr (kRowBuffers != 1) {
            for (uint32_t at = 0; at < kRows; at += RowsAtATime()) CopyRowsOf(queries, at);
            for (uint32_t at = 0; at < kRows; at += RowsAtATime()) CopyRowsOf(keys, at);
        }
        Ratios();
        AscendC::Mul(lower_, ratios_, products, static_cast<int32_t>(kSquare));
        AscendC::Mul(sums_, ratios_, products[kSquare], static_cast<int32_t>(kSquare));
        FenceVector();
        MulLanes(lower_, lower_, negative_);
        AscendC::Mul(sums_, sums_, mask_, static_cast<int32_t>(kSquare));
        FenceVector();
        if constexpr (kScaled) {
            AscendC::Muls(sums_, sums_, scale_, static_cast<int32_t>(kSquare));
            AscendC::Muls(scaledDecay_, decay_, scale_, static_cast<int32_t>(kRows));
            AscendC::Muls(betas_, betas_, down_, static_cast<int32_t>(kRows));
            FenceVector();
        }
        Store(workspace_.Square(valueHead, chunk, 2), sums_);
        StoreFactors(workspace_.Factors(valueHead, chunk));
        Invert();
        MulLanes(sums_, ratios_, betas_);
        FenceVector();
        Store(workspace_.Square(valueHead, chunk, 0), sums_);
        AscendC::Mul(negative_, negative_, decay_, static_cast<int32_t>(kRows));
        FenceVector();
        MulLanes(sums_, ratios_, negative_);
        FenceVector();
        Store(workspace_.Square(valueHead, chunk, 1), sums_);
        ScaleRows(workspace_.Scaled(valueHead, chunk, 0), queries, kScaled ? scaledDecay_ : decay_);
        ScaleRows(workspace_.Scaled(valueHead, chunk, 1), keys, rest_);
    }

    // scale_ = 2^F, F the largest f of chunks [from, to) of the head; down_ = 2^(f - F) of this chunk.
    __aicore__ inline void Scales(uint32_t valueHead, uint32_t from, uint32_t to, uint32_t chunk) {
        AscendC::LocalTensor<float> in = scaleQue_.template AllocTensor<float>();
        CopyFlatIn(in, workspace_.Scale(valueHead, from), (to - from) * kBlockFloats);
        scaleQue_.EnQue(in);
        in = scaleQue_.template DeQue<float>();
        AscendC::SetFlag<AscendC::HardEvent::MTE2_S>(known_);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_S>(known_);
        float largest = in.GetValue((chunk - from) * kBlockFloats);
        const float own = largest;
        for (uint32_t i = 0; i < to - from; ++i) {
            const float f = in.GetValue(i * kBlockFloats);
            if (f > largest) largest = f;
        }
        scaleQue_.FreeTensor(in);
        scale_ = PowerOfTwo(static_cast<int32_t>(largest));
        down_ = PowerOfTwo(static_cast<int32_t>(own - largest));
    }

    // g_ and betas_ of the chunk, zeros behind its tokens; negative_ = -beta
    __aicore__ inline void Gates(uint32_t valueHead, uint64_t row, uint32_t tokens) {
        AscendC::LocalTensor<G> in = gateQue_.template AllocTensor<G>();
        const AscendC::LocalTensor<G> beta = in[kRows * kBlockBytes / sizeof(G)];
        const uint64_t at = row * plan_.valueHeads + valueHead;
        CopyRowsTo(in, kBlockBytes / sizeof(G), gate_[at], tokens, 1, plan_.valueHeads);
        CopyRowsTo(beta, kBlockBytes / sizeof(G), beta_[at], tokens, 1, plan_.valueHeads);
        gateQue_.EnQue(in);
        in = gateQue_.template DeQue<G>();
        FenceVector();  // the head before
        Column(g_, in, tokens);
        Column(betas_, in[kRows * kBlockBytes / sizeof(G)], tokens);
        gateQue_.FreeTensor(in);
        if (plan_.gateFold != 0) {
            const int32_t n = static_cast<int32_t>(tokens);
            Sigmoid(betas_, scratch_, tokens);
            AscendC::Adds(g_, g_, gateBias_.GetValue(valueHead), n);
            FenceVector();
            Softplus(g_, scratch_, kRows, tokens);
            AscendC::Muls(g_, g_, gateCoef_.GetValue(valueHead), n);
        }
        AscendC::Muls(negative_, betas_, -1.0f, static_cast<int32_t>(kRows));
        FenceVector();
    }
    // The number that each block begins with.
    __aicore__ inline void Column(const AscendC::LocalTensor<float>& values, const AscendC::LocalTensor<G>& blocks, uint32_t tokens) {
        AscendC::Duplicate(values, 0.0f, static_cast<int32_t>(kRows));
        AscendC::LocalTensor<float> wide;
        if constexpr (sizeof(G) == 2) {
            wide = sums_;
            AscendC::Cast(wide, blocks, AscendC::RoundMode::CAST_NONE, tokens * 2 * kBlockFloats);
        } else {
            wide = blocks;
        }
        FenceVector();
        AscendC::Gather(values, wide, gateOffsets_, 0, tokens);
        FenceVector();
    }

    // ratios_[j, i] = e^(G_i - G_j), i >= j (1 elsewhere), decay_ = e^G, rest_ = e^(Gn - G).
    //   sums_[t, i] = g_t, i >= t; summed from the last row up: sums_[j + 1, i] = G_i - G_j
    __aicore__ inline void Ratios() {
        Blocks(blocks_, g_, kRows);
        AscendC::Duplicate(sums_[kSquare], 0.0f, static_cast<int32_t>(kRows));
        FenceVector();
        AscendC::Mul(sums_, mask_, blocks_, static_cast<uint64_t>(kRows), static_cast<uint8_t>(kRows), BinaryStrides(0, 8, 8, 1));
        FenceVector();
        for (uint32_t i = kGroup - 1; i-- > 0;) {  // all groups of 8 rows at a time
            AscendC::Add(sums_[i * kRows], sums_[i * kRows], sums_[(i + 1) * kRows], static_cast<uint64_t>(kRows),
                         static_cast<uint8_t>(kRows / kGroup), BinaryStrides(1, 8 * kGroup, 8 * kGroup, 8 * kGroup));
            FenceVector();
        }
        for (uint32_t row = kRows - kGroup; row >= kGroup; row -= kGroup) {
            const AscendC::LocalTensor<float> group = sums_[(row - kGroup) * kRows];
            AscendC::Add(group, group, sums_[row * kRows], static_cast<uint64_t>(kRows), static_cast<uint8_t>(kGroup),
                         BinaryStrides(1, 8, 8, 0));
            FenceVector();
        }
        AscendC::Exp(decay_, sums_, static_cast<int32_t>(kRows));
        AscendC::Exp(ratios_, sums_[kRows], static_cast<int32_t>(kSquare));
        FenceVector();
        AscendC::Gather(rest_, ratios_, rowOffsets_, (kRows - 1) * static_cast<uint32_t>(sizeof(float)), kRows);
    }

    // ratios_ = (I + A)^-1, lower_[j, i] = -A_ij: column by column, T[i] -= A_ij T[j] for the rows below j.
    __aicore__ inline void Invert() {
        AscendC::DataCopy(ratios_, identity_, kSquare);
        for (uint32_t column = 0; column < kRows; column += kGroup) {
            Blocks8(sums_, lower_[column * kRows]);
            FenceVector();
            for (uint32_t i = 0; i < kGroup && column + i + 1 < kRows; ++i) {
                const uint32_t j = column + i;
                AscendC::MulAddDst(ratios_[(j + 1) * kRows], sums_[(i * kRows + j + 1) * kBlockFloats], ratios_[j * kRows],
                                   static_cast<uint64_t>(kRows), static_cast<uint8_t>(kRows - 1 - j),
                                   AscendC::BinaryRepeatParams(1, 0, 1, 8, 1, 0));
                FenceVector();
            }
        }
    }
    // 8 copies of each of 8 rows' values.
    __aicore__ inline void Blocks8(const AscendC::LocalTensor<float>& blocks, const AscendC::LocalTensor<float>& rows) {
        AscendC::Brcb(blocks, rows, static_cast<uint8_t>(kGroup * kRows / kBlockFloats), AscendC::BrcbRepeatParams(1, 8));
    }

    // to[j, i] = from[j, i] * lanes[i]
    __aicore__ inline void MulLanes(const AscendC::LocalTensor<float>& to, const AscendC::LocalTensor<float>& from,
                                    const AscendC::LocalTensor<float>& lanes) {
        AscendC::Mul(to, from, lanes, static_cast<uint64_t>(kRows), static_cast<uint8_t>(kRows), BinaryStrides(1, 8, 8, 0));
    }

    __aicore__ inline void Store(const AscendC::GlobalTensor<Tc>& to, const AscendC::LocalTensor<float>& from) {
        AscendC::LocalTensor<Tc> out = outQue_.template AllocTensor<Tc>();
        Round(out, from, kSquare);
        outQue_.EnQue(out);
        out = outQue_.template DeQue<Tc>();
        CopyFlatOut(to, out, kSquare);
        outQue_.FreeTensor(out);
    }
    __aicore__ inline void Round(const AscendC::LocalTensor<Tc>& to, const AscendC::LocalTensor<float>& from, uint32_t count) {
        if constexpr (sizeof(Tc) == 2) AscendC::Cast(to, from, AscendC::RoundMode::CAST_RINT, count);
        else AscendC::DataCopy(to, from, count);
        FenceVector();
    }
    __aicore__ inline void StoreFactors(const AscendC::GlobalTensor<float>& to) {
        Blocks(blocks_, decay_, kRows);
        FenceVector();
        AscendC::LocalTensor<float> out = outQue_.template AllocTensor<float>();
        AscendC::DataCopy(out, blocks_[(kRows - 1) * kBlockFloats], kBlockFloats);
        AscendC::Duplicate(out[kBlockFloats], scale_, static_cast<int32_t>(kBlockFloats));
        AscendC::Duplicate(out[2 * kBlockFloats], 1.0f / scale_, static_cast<int32_t>(kBlockFloats));
        outQue_.EnQue(out);
        out = outQue_.template DeQue<float>();
        CopyFlatOut(to, out, 3 * kBlockFloats);
        outQue_.FreeTensor(out);
    }

    // Of q or k.
    __aicore__ inline uint32_t RowsAtATime() const { return plan_.keyDim > kRows ? kRows / 2 : kRows; }
    __aicore__ inline void CopyRowsOf(const AscendC::GlobalTensor<Tc>& from, uint32_t row) {
        const AscendC::LocalTensor<Tc> in = rowQue_.template AllocTensor<Tc>();
        CopyFlatIn(in, from[row * plan_.keyDim], RowsAtATime() * plan_.keyDim);
        rowQue_.EnQue(in);
    }
    // Rows of q or k times a factor each.
    __aicore__ inline void ScaleRows(const AscendC::GlobalTensor<Tc>& to, const AscendC::GlobalTensor<Tc>& from,
                                     const AscendC::LocalTensor<float>& factors) {
        const uint32_t dim = plan_.keyDim, rows = RowsAtATime(), count = rows * dim;
        FenceVector();
        Blocks(blocks_, factors, kRows);
        for (uint32_t row = 0; row < kRows; row += rows) {
            if constexpr (kRowBuffers == 1) CopyRowsOf(from, row);
            const AscendC::LocalTensor<Tc> in = rowQue_.template DeQue<Tc>();
            if constexpr (sizeof(Tc) == 2) AscendC::Cast(sums_, in, AscendC::RoundMode::CAST_NONE, count);
            else AscendC::DataCopy(sums_, in, count);
            FenceVector();
            rowQue_.FreeTensor(in);
            MulRowsByBlock(sums_, blocks_[row * kBlockFloats], dim, rows, dim);
            FenceVector();
            AscendC::LocalTensor<Tc> out = outQue_.template AllocTensor<Tc>();
            Round(out, sums_, count);
            outQue_.EnQue(out);
            out = outQue_.template DeQue<Tc>();
            CopyFlatOut(to[row * dim], out, count);
            outQue_.FreeTensor(out);
        }
    }

    FusedLinearAttentionTilingData plan_;
    ChunkedWorkspace<Tc> workspace_;
    AscendC::GlobalTensor<G> gate_, beta_;
    AscendC::GlobalTensor<float> gateCoef_, gateBias_;
    float scale_ = 1.0f, down_ = 1.0f;
    AscendC::TEventID known_;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> productQue_, gateQue_, scaleQue_;
    AscendC::TQue<AscendC::TPosition::VECIN, 4> rowQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> workBuf_;
    AscendC::LocalTensor<float> mask_, identity_, lower_, ratios_, sums_;            // [64, 64]; sums_ one row more
    AscendC::LocalTensor<float> g_, betas_, negative_, decay_, rest_, scaledDecay_, scratch_;  // [64]; scratch_ three
    AscendC::LocalTensor<float> blocks_;
    AscendC::LocalTensor<uint32_t> gateOffsets_, rowOffsets_;
};

}  // namespace hc
