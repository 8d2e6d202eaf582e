// Vector cores, before the chunks: q, k and v of all tokens of a window after convolution, SiLU, L2 norm and scale, as operands of the
// cube in the workspace, rows behind the end of a sequence zeros; and, after everything, the new conv_state.
//
// float16 operands: v and the state are of any size, so v of a chunk is divided by 2^f, which leaves 2^6 to 2^7 of the largest, or of the
// state that enters with this chunk if that is larger.
#pragma once

#include "chunked_chunks.h"
#include "recurrent_prepare.h"

namespace hc {

template <typename T, typename G, typename Tc>
class ChunkedPrepare : public RecurrentPrepare<ChunkedPrepare<T, G, Tc>, T, G> {
    using Prepare = RecurrentPrepare<ChunkedPrepare<T, G, Tc>, T, G>;
    using Rows = RecurrentRows<ChunkedPrepare<T, G, Tc>, T, G>;
    friend Prepare;
    friend Rows;
    using Prepare::norms_;
    using Prepare::normBlocks_;
    using Prepare::scratch_;
    using Prepare::values_;
    using Rows::history_;
    using Rows::inQue_;
    using Rows::outQue_;
    using Rows::plan_;
    using Rows::ub_;

public:
    __aicore__ inline void InitWorkspace(GM_ADDR workspace, AscendC::TPipe* pipe) {
        workspace_.Init(workspace, plan_);
        if constexpr (kScaled) {
            known_ = pipe->AllocEventID<AscendC::HardEvent::V_S>();
            free_ = pipe->AllocEventID<AscendC::HardEvent::V_MTE2>();
            loaded_ = pipe->AllocEventID<AscendC::HardEvent::MTE2_V>();
        }
    }

    // Heads of q, then of k, then of v, each with all chunks of the window; a contiguous share of them for each core.
    __aicore__ inline void Process(const Window& window) {
        const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx()), all = Heads() * window.count;
        const uint32_t first = Share(all, core), end = Share(all, core + 1);
        Unit ahead{}, unit{};
        ChunkWalk walk = window.walk;
        uint32_t next = first;
        bool more = Take(window, walk, next, end, ahead);
        if (more) CopyUnit(ahead);
        while (more) {
            unit = ahead;
            more = Take(window, walk, next, end, ahead);
            if (more && ub_.spare == 2) CopyUnit(ahead);
            Compute(unit);
            if (more && ub_.spare == 1) CopyUnit(ahead);
        }
    }

    // The K - 1 rows before the end of every sequence, for all channels.
    __aicore__ inline void StoreConvStates() {
        if (!Rows::keepsConv_) return;
        const uint32_t core = static_cast<uint32_t>(AscendC::GetBlockIdx());
        const uint64_t all = static_cast<uint64_t>(plan_.sequences) * Heads();
        for (uint64_t item = core; item < all; item += plan_.usedCores) {
            const Sequence sequence = Rows::sequences_.Get(static_cast<uint32_t>(item / Heads()));
            if (!sequence.StoresConvState()) continue;
            const uint32_t head = static_cast<uint32_t>(item % Heads());
            const ConvGroup group = GroupOf(head);
            AscendC::LocalTensor<T> in = inQue_.template AllocTensor<T>();
            Rows::CopyWindow(in, group, ChannelOf(head), sequence, sequence.tokens, 0);
            inQue_.EnQue(in);
            in = inQue_.template DeQue<T>();
            Prepare::FillOldRows(in, group, sequence, sequence.tokens);
            KeepTail(in, group);
            Rows::CopyConvStateOut(sequence, ChannelOf(head), group.channels);
            inQue_.FreeTensor(in);
        }
    }

private:
    static constexpr bool kScaled = sizeof(Tc) == 2;
    static constexpr int32_t kLargest = 6, kLeastScale = -5, kMostScale = 15;  // beyond them q 2^f has no bits left, or overflows

    struct Unit {
        Sequence sequence;
        uint32_t head, chunk, firstToken, tokens;
        bool newHead;
        bool enters;  // first chunk of the sequence in the window
        uint32_t window;
    };

    __aicore__ inline void InitState(uint32_t) {  // offsets for any head
        Prepare::keepValues_ = Prepare::Carve(AlignUp(ub_.valuePitch * history_, kBlockFloats)).template ReinterpretCast<uint32_t>();
    }

    __aicore__ inline uint32_t Heads() const { return 2 * plan_.keyHeads + plan_.valueHeads; }
    __aicore__ inline bool IsKey(uint32_t head) const { return head < 2 * plan_.keyHeads; }
    __aicore__ inline uint32_t Share(uint32_t all, uint32_t core) const {
        return static_cast<uint32_t>(static_cast<uint64_t>(all) * core / plan_.usedCores);
    }
    __aicore__ inline uint32_t ChannelOf(uint32_t head) const {
        const uint32_t keys = 2 * plan_.keyHeads;
        return head < keys ? head * plan_.keyDim : keys * plan_.keyDim + (head - keys) * plan_.valueDim;
    }
    __aicore__ inline ConvGroup GroupOf(uint32_t head) const {
        const uint32_t channels = IsKey(head) ? plan_.keyDim : plan_.valueDim;
        return {1, channels, channels, channels, 0, ub_.inValueStates, RowPitch<T>(channels * history_), ub_.inValueWeights,
                RowPitch<T>(channels * plan_.taps), ub_.inValueBias};
    }

    // The next unit that has something to do.
    __aicore__ inline bool Take(const Window& window, ChunkWalk& walk, uint32_t& next, uint32_t end, Unit& unit) {
        for (; next < end; ++next) {
            const uint32_t head = next / window.count, chunk = next % window.count;
            if (chunk == 0) walk = window.walk;
            walk.Seek(window.first + chunk);
            unit.sequence = walk.Current();
            if (unit.sequence.kind != SequenceKind::kLive && IsKey(head)) continue;
            unit.newHead = unit.sequence.kind == SequenceKind::kLive && head != head_;
            if (unit.newHead) head_ = head;
            unit.head = head;
            unit.chunk = chunk;
            unit.firstToken = (window.first + chunk - walk.First()) * kChunkTokens;
            unit.tokens = Min(kChunkTokens, unit.sequence.tokens - unit.firstToken);
            unit.enters = chunk == 0 || unit.firstToken == 0;
            unit.window = window.number;
            ++next;
            return true;
        }
        return false;
    }

    __aicore__ inline void CopyUnit(const Unit& unit) {
        if (unit.sequence.kind != SequenceKind::kLive) return;
        const ConvGroup group = GroupOf(unit.head);
        const AscendC::LocalTensor<T> in = inQue_.template AllocTensor<T>();
        Rows::CopyWindow(in, group, ChannelOf(unit.head), unit.sequence, unit.firstToken, unit.tokens);
        if (unit.newHead) Rows::CopyWeights(in, group, ChannelOf(unit.head));
        inQue_.EnQue(in);
    }

    __aicore__ inline void Compute(const Unit& unit) {
        if (unit.sequence.kind != SequenceKind::kLive) {
            FillResult(unit);
            return;
        }
        const ConvGroup group = GroupOf(unit.head);
        AscendC::LocalTensor<T> in = inQue_.template DeQue<T>();
        FenceVector();  // the unit before
        if (unit.newHead) Prepare::Unpack(Prepare::valueWeights_, in, group);
        Prepare::FillOldRows(in, group, unit.sequence, unit.firstToken);
        Prepare::Convolve(values_, in, group, Prepare::valueWeights_, unit.tokens);
        inQue_.FreeTensor(in);
        const uint32_t count = unit.tokens * group.channels, all = kChunkTokens * group.channels;
        if (IsKey(unit.head)) Normalise(group.channels, unit.tokens, unit.head < plan_.keyHeads);
        if (count != all) AscendC::Duplicate(values_[count], 0.0f, static_cast<int32_t>(all - count));
        FenceVector();
        if constexpr (kScaled)
            if (!IsKey(unit.head)) Scale(unit, all);
        const AscendC::LocalTensor<Tc> out = outQue_.template AllocTensor<Tc>();
        if constexpr (sizeof(Tc) == 2) AscendC::Cast(out, values_, AscendC::RoundMode::CAST_RINT, all);
        else AscendC::DataCopy(out, values_, all);
        outQue_.EnQue(out);
        Store(unit, all);
    }
    __aicore__ inline void Store(const Unit& unit, uint32_t count) {
        const AscendC::LocalTensor<Tc> out = outQue_.template DeQue<Tc>();
        const uint32_t heads = plan_.keyHeads;
        CopyFlatOut(unit.head < heads       ? workspace_.Queries(unit.head, unit.chunk)
                    : unit.head < 2 * heads ? workspace_.Keys(unit.head - heads, unit.chunk)
                                            : workspace_.Values(unit.head - 2 * heads, unit.chunk),
                    out, count);
        outQue_.FreeTensor(out);
    }

    // values_ over 2^f, and f to the workspace.
    __aicore__ inline void Scale(const Unit& unit, uint32_t count) {
        const uint32_t valueHead = unit.head - 2 * plan_.keyHeads;
        AscendC::Abs(scratch_, values_, static_cast<int32_t>(count));
        FenceVector();
        float largest = Largest(scratch_, count);
        if (unit.enters && Enters(unit)) {
            const float state = LargestOfState(unit, valueHead);
            if (state > largest) largest = state;
        }
        const int32_t f = ScaleOf(largest);
        AscendC::Muls(values_, values_, PowerOfTwo(-f), static_cast<int32_t>(count));
        AscendC::LocalTensor<float> out = outQue_.template AllocTensor<float>();
        AscendC::Duplicate(out, static_cast<float>(f), static_cast<int32_t>(kBlockFloats));
        outQue_.EnQue(out);
        out = outQue_.template DeQue<float>();
        CopyFlatOut(workspace_.Scale(valueHead, unit.chunk), out, kBlockFloats);
        outQue_.FreeTensor(out);
        FenceVector();
    }
    // f: floor(log2 |largest|) - 6 within its limits; zeros, infinities and NaN: the smallest.
    static __aicore__ inline int32_t ScaleOf(float largest) {
        const uint32_t bits = *reinterpret_cast<const uint32_t*>(&largest) >> 23 & 0xffu;
        const int32_t f = static_cast<int32_t>(bits) - 127 - kLargest;
        if (bits == 0xffu || f < kLeastScale) return kLeastScale;
        return f > kMostScale ? kMostScale : f;
    }
    // Of `count` values >= 0, a multiple of 64; destroys them.
    __aicore__ inline float Largest(const AscendC::LocalTensor<float>& values, uint32_t count) {
        while (count % (2 * kLanes) == 0) {
            count /= 2;
            AscendC::Max(values, values, values[count], static_cast<int32_t>(count));
            FenceVector();
        }
        AscendC::ReduceMax(values, values, values[count], static_cast<int32_t>(count));
        AscendC::SetFlag<AscendC::HardEvent::V_S>(known_);
        AscendC::WaitFlag<AscendC::HardEvent::V_S>(known_);
        return values.GetValue(0);
    }
    // Whether there is a state before the unit's tokens.
    __aicore__ inline bool Enters(const Unit& unit) const {
        return unit.firstToken != 0 || (Rows::keepsState_ && !unit.sequence.fresh);
    }
    __aicore__ inline float LargestOfState(const Unit& unit, uint32_t valueHead) {
        const uint32_t all = plan_.keyDim * plan_.valueDim, most = ub_.scratchFloats;
        const AscendC::GlobalTensor<float> from =
            unit.firstToken != 0 ? workspace_.Carried(unit.window + 1, valueHead)
                                 : Rows::state_[(static_cast<uint64_t>(unit.sequence.slot) * plan_.valueHeads + valueHead) * all];
        const AscendC::LocalTensor<float> in = Prepare::window_;  // the convolution is over
        AscendC::Duplicate(scratch_, 0.0f, static_cast<int32_t>(most));
        for (uint32_t at = 0; at < all; at += most) {
            const uint32_t count = Min(most, all - at);
            AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(free_);
            AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(free_);
            CopyFlatIn(in, from[at], count);
            AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(loaded_);
            AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(loaded_);
            AscendC::Abs(in, in, static_cast<int32_t>(count));
            FenceVector();
            AscendC::Max(scratch_, scratch_, in, static_cast<int32_t>(count));
            FenceVector();
        }
        return Largest(scratch_, most);
    }

    // Rows of values_ over their norms, those of q times dk^-0.5: the plan is for use_qk_l2norm alone.
    __aicore__ inline void Normalise(uint32_t pitch, uint32_t rows, bool query) {
        const int32_t n = static_cast<int32_t>(rows);
        AscendC::Mul(scratch_, values_, values_, static_cast<int32_t>(rows * pitch));
        FenceVector();
        SumLanes(norms_, scratch_, pitch, rows, pitch);
        AscendC::Adds(norms_, norms_, Prepare::kL2Epsilon, n);
        FenceVector();
        AscendC::Sqrt(norms_, norms_, n);
        AscendC::Duplicate(scratch_, query ? plan_.queryScale : 1.0f, n);
        FenceVector();
        AscendC::Div(norms_, scratch_, norms_, n);
        FenceVector();
        Blocks(normBlocks_, norms_, rows);
        FenceVector();
        MulRowsByBlock(values_, normBlocks_, pitch, rows, pitch);
        FenceVector();
    }

    // Rows of the result of a sequence that is not live: zeros or NaN.
    __aicore__ inline void FillResult(const Unit& unit) {
        const uint32_t head = unit.head - 2 * plan_.keyHeads, dim = plan_.valueDim;
        FillRows<T>(outQue_, scratch_, unit.tokens * dim, unit.sequence.Fill());
        const AscendC::LocalTensor<T> out = outQue_.template DeQue<T>();
        const uint64_t row = (unit.sequence.firstRow + unit.firstToken) * plan_.valueHeads + head;
        CopyRowsOut(Rows::attnOut_[row * dim], out, unit.tokens, dim, plan_.valueHeads * dim);
        outQue_.FreeTensor(out);
    }

    __aicore__ inline void KeepTail(const AscendC::LocalTensor<T>& in, const ConvGroup& group) {
        if (group.rowPitch != Prepare::keptPitch_) {
            Prepare::keptPitch_ = group.rowPitch;
            FenceVector();
            TransposedOffsets(Prepare::keepValues_, scratch_, history_, group.rowPitch * sizeof(T), sizeof(T), group.channels * history_);
        }
        Prepare::KeepConvState(in, group, 0, 0);
    }

    ChunkedWorkspace<Tc> workspace_;
    uint32_t head_ = ~0u;
    AscendC::TEventID known_, free_, loaded_;
};

}  // namespace hc
