// The work of short_conv and its split over cores. A span is a sequence, or the part of it that falls to a core, and a tile of channels;
// it is walked in steps of at most chunkTokens tokens.
#pragma once

#include "sequences.h"

namespace hc {

struct ConvStep {
    Sequence sequence;
    uint32_t column;  // of the tile in the H channels
    uint32_t columns;
    uint32_t firstToken;  // in the sequence
    uint32_t tokens;      // 0: a sequence without tokens that starts from zeros
    bool live;            // else: rows of zeros or NaN
    bool firstOfSpan;
    bool lastOfSequence;
    bool newColumns;  // the weights of these channels are not in UB
};

class ConvSteps {
public:
    // The steps of a core in the tile of channels from `column` on; `part` of the cores that share the tile.
    __aicore__ inline void Init(const Sequences& sequences, const FusedLinearAttentionTilingData& plan, uint32_t column, uint32_t part) {
        sequences_ = sequences;
        count_ = plan.sequences;
        chunk_ = plan.conv.chunkTokens;
        column_ = column;
        columns_ = Min(plan.valueTile, plan.valueDim - column);
        whole_ = plan.wholeItems != 0;
        started_ = loaded_ = false;
        const uint32_t parts = plan.conv.parts;
        if (whole_) {
            sequence_ = static_cast<uint32_t>(static_cast<uint64_t>(count_) * part / parts);
            endSequence_ = static_cast<uint32_t>(static_cast<uint64_t>(count_) * (part + 1) / parts);
            row_ = sequences_.Before(sequence_);
            endRow_ = sequences_.Before(endSequence_);
        } else {
            row_ = static_cast<uint64_t>(plan.tokens) * part / parts;
            endRow_ = static_cast<uint64_t>(plan.tokens) * (part + 1) / parts;
            sequence_ = SequenceOf(row_);
            endSequence_ = count_;
        }
    }

    // The next step, if there is one.
    __aicore__ inline bool Next(ConvStep& step) {
        if (started_ && row_ < spanEnd_) {
            step.firstOfSpan = step.newColumns = false;
            SetTokens(step);
            return true;
        }
        for (; sequence_ < endSequence_; ++sequence_) {
            step.sequence = sequences_.Get(sequence_);
            step.live = step.sequence.kind == SequenceKind::kLive;
            const uint64_t end = step.sequence.firstRow + step.sequence.tokens;
            if (step.sequence.tokens == 0 ? !(whole_ && step.live && step.sequence.fresh) : row_ >= end) continue;
            if (step.sequence.tokens != 0 && row_ >= endRow_) return false;
            ++sequence_;
            spanEnd_ = end < endRow_ ? end : endRow_;
            step.column = column_;
            step.columns = columns_;
            step.firstOfSpan = true;
            step.newColumns = !loaded_ && step.live;
            started_ = true;
            loaded_ = loaded_ || step.live;
            SetTokens(step);
            return true;
        }
        return false;
    }

private:
    __aicore__ inline void SetTokens(ConvStep& step) {
        step.firstToken = static_cast<uint32_t>(row_ - step.sequence.firstRow);
        step.tokens = spanEnd_ - row_ < chunk_ ? static_cast<uint32_t>(spanEnd_ - row_) : chunk_;
        step.lastOfSequence = step.firstToken + step.tokens == step.sequence.tokens;
        row_ += step.tokens;
    }

    // The sequence that this row belongs to.
    __aicore__ inline uint32_t SequenceOf(uint64_t row) const {
        uint32_t low = 0, high = count_;
        while (high - low > 1) {
            const uint32_t middle = (low + high) / 2;
            if (sequences_.Before(middle) <= row) low = middle;
            else high = middle;
        }
        return low;
    }

    Sequences sequences_;
    uint64_t row_ = 0, endRow_ = 0, spanEnd_ = 0;
    uint32_t count_ = 0, chunk_ = 0, column_ = 0, columns_ = 0, sequence_ = 0, endSequence_ = 0;
    bool whole_ = false, started_ = false, loaded_ = false;
};

}  // namespace hc
