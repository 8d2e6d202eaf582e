// Chunks of the sequences of a call, and the order in which the cores of a block walk the states over them.
#pragma once

#include "sequences.h"

namespace hc {

// Sequences up to the first that is out of order, each with its chunks; chunks are numbered over all sequences.
class ChunkWalk {
public:
    __aicore__ inline void Init(const Sequences& sequences, uint32_t count) {
        sequences_ = sequences;
        count_ = count;
        Enter(0, 0);
    }
    // Steps on to the sequence of chunk `chunk`, which is not before the current one. False: there are not so many.
    __aicore__ inline bool Seek(uint32_t chunk) {
        while (index_ < count_ && chunk >= first_ + chunks_) Enter(index_ + 1, first_ + chunks_);
        return index_ < count_;
    }
    // Sequences that are in order, after a Seek that found no chunk.
    __aicore__ inline uint32_t Count() const { return count_; }
    __aicore__ inline uint32_t First() const { return first_; }  // chunk of the sequence
    __aicore__ inline uint32_t End() const { return first_ + chunks_; }
    __aicore__ inline const Sequence& Current() const { return sequence_; }

private:
    __aicore__ inline void Enter(uint32_t index, uint32_t first) {
        index_ = index;
        first_ = first;
        chunks_ = 0;
        if (index_ >= count_) return;
        if (!sequences_.InOrder(index_)) {
            count_ = index_;
            return;
        }
        sequence_ = sequences_.Get(index_);
        chunks_ = CeilDiv(sequence_.tokens, kChunkTokens);
    }

    Sequences sequences_;
    Sequence sequence_{};
    uint32_t count_ = 0, index_ = 0, first_ = 0, chunks_ = 0;
};

// The chunks that are in the workspace together.
struct Window {
    ChunkWalk walk;  // at the sequence of its first chunk
    uint32_t first;
    uint32_t count;
    uint32_t number;
};

// A state meets a chunk.
struct ScanStep {
    Sequence sequence;
    uint32_t lane;
    uint32_t valueHead, column;  // of the tile of the state
    uint32_t chunk;              // in the window
    uint32_t firstToken, tokens;  // in the sequence
    bool enters, leaves;         // first, last of its chunks in the window
    bool begins, ends;           // first, last of the sequence
};

// Tasks (sequence, value head, tile of the state) of a window, dealt out to the blocks; a block has `lanes` of them in hand and walks
// them by turns. Cube and vector cores of a block ask in the same order and get the same steps.
class ScanLanes {
public:
    static constexpr uint32_t kMaxLanes = 4;

    __aicore__ inline void Init(const Window& window, const FusedLinearAttentionTilingData& plan, uint32_t block) {
        walk_ = window.walk;
        first_ = window.first;
        end_ = window.first + window.count;
        tile_ = plan.valueTile;
        tiles_ = plan.valueTiles;
        heads_ = plan.valueHeads;
        blocks_ = plan.chunked.cubeCores;
        next_ = block;
        before_ = 0;
        cursor_ = first_;
        for (uint32_t lane = 0; lane < kMaxLanes; ++lane) chunk_[lane] = last_[lane] = 0;
    }

    // The lane's next step; false: it has none any more.
    __aicore__ inline bool Next(uint32_t lane, ScanStep& step) {
        if (chunk_[lane] == last_[lane] && !Take(lane)) return false;
        const uint32_t inSequence = chunk_[lane] - base_[lane], chunks = CeilDiv(sequence_[lane].tokens, kChunkTokens);
        step.sequence = sequence_[lane];
        step.lane = lane;
        step.valueHead = task_[lane] / tiles_;
        step.column = task_[lane] % tiles_ * tile_;
        step.chunk = chunk_[lane] - first_;
        step.firstToken = inSequence * kChunkTokens;
        step.tokens = Min(kChunkTokens, step.sequence.tokens - step.firstToken);
        step.begins = inSequence == 0;
        step.ends = inSequence + 1 == chunks;
        step.enters = step.begins || step.chunk == 0;
        step.leaves = ++chunk_[lane] == last_[lane];
        return true;
    }

private:
    __aicore__ inline bool Take(uint32_t lane) {
        const uint64_t tasks = static_cast<uint64_t>(heads_) * tiles_;
        for (; cursor_ < end_ && walk_.Seek(cursor_); cursor_ = walk_.End()) {
            if (walk_.Current().kind != SequenceKind::kLive) continue;
            if (next_ >= before_ + tasks) {
                before_ += tasks;
                continue;
            }
            sequence_[lane] = walk_.Current();
            task_[lane] = static_cast<uint32_t>(next_ - before_);
            base_[lane] = walk_.First();
            chunk_[lane] = cursor_;
            last_[lane] = Min(end_, walk_.End());
            next_ += blocks_;
            return true;
        }
        return false;
    }

    ChunkWalk walk_;
    Sequence sequence_[kMaxLanes];
    uint32_t task_[kMaxLanes], base_[kMaxLanes], chunk_[kMaxLanes], last_[kMaxLanes];
    uint64_t next_ = 0, before_ = 0;  // tasks: of this block; of the sequences before the walk's
    uint32_t first_ = 0, end_ = 0, cursor_ = 0, tile_ = 0, tiles_ = 0, heads_ = 0, blocks_ = 0;
};

// 2^exponent, -126 <= exponent <= 127
__aicore__ inline float PowerOfTwo(int32_t exponent) {
    const uint32_t bits = static_cast<uint32_t>(exponent + 127) << 23;
    return *reinterpret_cast<const float*>(&bits);
}

// Places in the workspace; `chunk` in the window.
template <typename Tc>
class ChunkedWorkspace {
public:
    __aicore__ inline void Init(GM_ADDR workspace, const FusedLinearAttentionTilingData& plan) {
        const ChunkedPlan& w = plan.chunked;
        keyDim_ = plan.keyDim;
        valueDim_ = plan.valueDim;
        tile_ = plan.valueTile;
        chunks_ = w.windowChunks;
        lanes_ = w.lanes;
        state_ = static_cast<uint64_t>(plan.valueHeads) * keyDim_ * valueDim_;
        queries_.SetGlobalBuffer(reinterpret_cast<__gm__ Tc*>(workspace + w.queries));
        keys_.SetGlobalBuffer(reinterpret_cast<__gm__ Tc*>(workspace + w.keys));
        values_.SetGlobalBuffer(reinterpret_cast<__gm__ Tc*>(workspace + w.values));
        scales_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace + w.scales));
        products_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace + w.products));
        squares_.SetGlobalBuffer(reinterpret_cast<__gm__ Tc*>(workspace + w.squares));
        scaled_.SetGlobalBuffer(reinterpret_cast<__gm__ Tc*>(workspace + w.scaled));
        factors_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace + w.factors));
        operands_.SetGlobalBuffer(reinterpret_cast<__gm__ Tc*>(workspace + w.operands));
        updates_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace + w.updates));
        carried_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(workspace + w.carried));
    }

    static constexpr uint32_t kFactorFloats = 3 * kBlockBytes / sizeof(float);
    static constexpr uint32_t kSquare = kChunkTokens * kChunkTokens;

    __aicore__ inline AscendC::GlobalTensor<Tc> Queries(uint32_t keyHead, uint32_t chunk) const {
        return queries_[At(keyHead, chunk) * kChunkTokens * keyDim_];
    }
    __aicore__ inline AscendC::GlobalTensor<Tc> Keys(uint32_t keyHead, uint32_t chunk) const {
        return keys_[At(keyHead, chunk) * kChunkTokens * keyDim_];
    }
    __aicore__ inline AscendC::GlobalTensor<Tc> Values(uint32_t valueHead, uint32_t chunk) const {
        return values_[At(valueHead, chunk) * kChunkTokens * valueDim_];
    }
    __aicore__ inline AscendC::GlobalTensor<float> Scale(uint32_t valueHead, uint32_t chunk) const {
        return scales_[At(valueHead, chunk) * (kBlockBytes / sizeof(float))];
    }
    // K K^T, then K Q^T
    __aicore__ inline AscendC::GlobalTensor<float> Products(uint32_t keyHead, uint32_t chunk) const {
        return products_[At(keyHead, chunk) * 2 * kSquare];
    }
    // 2^(f - F) T diag(b), -T diag(b e^G), then 2^F times the transpose of P .* e^(G_i - G_j)
    __aicore__ inline AscendC::GlobalTensor<Tc> Square(uint32_t valueHead, uint32_t chunk, uint32_t index) const {
        return squares_[(At(valueHead, chunk) * 3 + index) * kSquare];
    }
    // 2^F e^G Q, then e^(Gn - G) K
    __aicore__ inline AscendC::GlobalTensor<Tc> Scaled(uint32_t valueHead, uint32_t chunk, uint32_t index) const {
        return scaled_[(At(valueHead, chunk) * 2 + index) * kChunkTokens * keyDim_];
    }
    // 8 copies each of e^Gn, 2^F, 2^-F
    __aicore__ inline AscendC::GlobalTensor<float> Factors(uint32_t valueHead, uint32_t chunk) const {
        return factors_[At(valueHead, chunk) * kFactorFloats];
    }
    __aicore__ inline AscendC::GlobalTensor<Tc> Operand(uint32_t block, uint32_t lane) const {
        return operands_[static_cast<uint64_t>(block * lanes_ + lane) * keyDim_ * tile_];
    }
    __aicore__ inline AscendC::GlobalTensor<float> Update(uint32_t block, uint32_t lane) const {
        return updates_[static_cast<uint64_t>(block * lanes_ + lane) * keyDim_ * tile_];
    }
    // The state as the window before this one leaves it: rows of valueDim.
    __aicore__ inline AscendC::GlobalTensor<float> Carried(uint32_t window, uint32_t valueHead) const {
        return carried_[window % 2 * state_ + static_cast<uint64_t>(valueHead) * keyDim_ * valueDim_];
    }

private:
    __aicore__ inline uint64_t At(uint32_t head, uint32_t chunk) const { return static_cast<uint64_t>(head) * chunks_ + chunk; }

    uint64_t state_ = 0;
    uint32_t keyDim_ = 0, valueDim_ = 0, tile_ = 0, chunks_ = 0, lanes_ = 0;
    AscendC::GlobalTensor<Tc> queries_, keys_, values_, squares_, scaled_, operands_;
    AscendC::GlobalTensor<float> scales_, products_, factors_, updates_, carried_;
};

}  // namespace hc
