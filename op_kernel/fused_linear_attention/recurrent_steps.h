// The work of the recurrent kernel and its split over cores.
//
// An item is a key head and a sequence, its pieces are the tiles of dv columns of the states of its value heads, and a piece is walked in
// steps of chunkTokens tokens. Items are ordered by key head, then sequence: a core keeps the convolution's weights as long as possible.
#pragma once

#include "sequences.h"

namespace hc {

struct Step {
    Sequence sequence;
    uint32_t keyHead;
    uint32_t valueHead;
    uint32_t column;   // of the piece in its head's dv
    uint32_t columns;
    uint32_t firstToken;  // in the sequence
    uint32_t tokens;      // 0: a sequence without tokens that starts from zeros
    bool live;            // else: rows of zeros or NaN
    bool firstOfPiece, lastOfPiece, lastOfItem;
    bool newKeys;       // q and k of these tokens are not in UB
    bool newKeyHead;    // nor are their weights
    bool newValueHead;  // nor those of the piece
};

class Steps {
public:
    __aicore__ inline void Init(const Sequences& sequences, const FusedLinearAttentionTilingData& plan, uint32_t core) {
        sequences_ = sequences;
        count_ = plan.sequences;
        pieces_ = plan.pieces;
        tiles_ = plan.valueTiles;
        tile_ = plan.valueTile;
        dim_ = plan.valueDim;
        ratio_ = plan.valueHeads / plan.keyHeads;
        weight_ = plan.sequenceWeight;
        whole_ = plan.wholeItems != 0;
        chunk_ = plan.buffers.chunkTokens;
        perHead_ = Before(count_) * pieces_;
        const uint64_t all = perHead_ * plan.keyHeads;
        next_ = FirstPiece(all * core / plan.usedCores, plan.keyHeads);
        end_ = FirstPiece(all * (core + 1) / plan.usedCores, plan.keyHeads);
        firstOfShare_ = true;
    }

    // The next step, if there is one.
    __aicore__ inline bool Next(Step& step) {
        if (started_ && !step.lastOfPiece) {
            SetTokens(step, step.firstToken + step.tokens, false);
            return true;
        }
        while (next_ < end_) {
            if (!StartPiece(step, next_++)) continue;
            started_ = true;
            return true;
        }
        return false;
    }

private:
    static constexpr uint32_t kNone = ~0u;

    // Work of all sequences before this one, in tokens of a piece.
    __aicore__ inline uint64_t Before(uint32_t sequence) const {
        return sequences_.Before(sequence) + static_cast<uint64_t>(sequence) * weight_;
    }

    // The first piece, counted over all items, that starts at or after this much work.
    __aicore__ inline uint64_t FirstPiece(uint64_t work, uint32_t keyHeads) const {
        const uint64_t head = work / perHead_, rest = work % perHead_;
        if (head >= keyHeads) return static_cast<uint64_t>(keyHeads) * count_ * pieces_;
        uint32_t low = 0, high = count_;  // the last sequence that starts at or before `rest`
        while (high - low > 1) {
            const uint32_t middle = (low + high) / 2;
            if (Before(middle) * pieces_ <= rest) low = middle;
            else high = middle;
        }
        const uint64_t start = Before(low), length = Before(low + 1) - start, over = rest - start * pieces_;
        uint64_t piece = (over + length - 1) / length;
        if (whole_ && piece != 0) piece = pieces_;
        return (head * count_ + low) * pieces_ + piece;
    }

    // False: a piece without work.
    __aicore__ inline bool StartPiece(Step& step, uint64_t index) {
        const uint64_t item = index / pieces_;
        const uint32_t piece = static_cast<uint32_t>(index % pieces_);
        if (item != item_) {
            item_ = item;
            step.sequence = sequences_.Get(static_cast<uint32_t>(item % count_));
            firstOfShare_ = true;
        }
        step.live = step.sequence.kind == SequenceKind::kLive;
        if (step.sequence.tokens == 0 && !(step.live && step.sequence.fresh)) return false;
        step.keyHead = static_cast<uint32_t>(item / count_);
        step.valueHead = step.keyHead * ratio_ + piece / tiles_;
        step.column = piece % tiles_ * tile_;
        step.columns = Min(tile_, dim_ - step.column);
        step.lastOfItem = piece + 1 == pieces_;
        step.newKeyHead = step.live && step.keyHead != keyHead_;
        step.newValueHead = step.live && (step.valueHead != valueHead_ || step.column != column_);
        if (step.live) {
            keyHead_ = step.keyHead;
            valueHead_ = step.valueHead;
            column_ = step.column;
        }
        SetTokens(step, 0, firstOfShare_ || step.sequence.tokens > chunk_);
        firstOfShare_ = false;
        return true;
    }

    __aicore__ inline void SetTokens(Step& step, uint32_t first, bool firstKeys) const {
        step.firstToken = first;
        step.tokens = Min(chunk_, step.sequence.tokens - first);
        step.firstOfPiece = first == 0;
        step.lastOfPiece = first + step.tokens == step.sequence.tokens;
        step.newKeys = firstKeys || first != 0;
        if (first != 0) step.newKeyHead = step.newValueHead = false;
    }

    Sequences sequences_;
    uint64_t perHead_ = 0, next_ = 0, end_ = 0, item_ = ~0ull;
    uint32_t count_ = 0, pieces_ = 0, tiles_ = 0, tile_ = 0, dim_ = 0, ratio_ = 0, weight_ = 0, chunk_ = 0;
    uint32_t keyHead_ = kNone, valueHead_ = kNone, column_ = kNone;
    bool whole_ = false, started_ = false, firstOfShare_ = true;
};

}  // namespace hc
