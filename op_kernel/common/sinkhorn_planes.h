// Matrices of many tokens on the 910B family, tokens across lanes.
//
// A plane holds one matrix element of `width` tokens (a multiple of 8, at most 64) in consecutive floats; a chunk is all
// planes of its tokens, one after the other; chunks follow each other. Sums along rows and columns are then plain additions,
// and one instruction works on all tokens, however small a token's matrix is.
#pragma once

#include "rows_membase.h"

namespace hc {

// What a family of planes looks like: `chunks` x `planes` x `width`.
struct PlaneShape {
    uint32_t chunks;
    uint32_t planes;
    uint32_t width;
    __aicore__ inline uint32_t Chunk(uint32_t chunk) const { return chunk * planes * width; }  // offset in floats
    __aicore__ inline uint32_t Floats() const { return chunks * planes * width; }
};

constexpr uint64_t kLaneOfEachBlock = 0x0101010101010101ull;  // << i: lane i of all 8 blocks

// planes[m][t] = rows[t][first + m]; rows `pitch` floats apart (a multiple of 8). A block reduction with one active lane per
// block picks that lane of 8 rows at a time.
__aicore__ inline void RowsToPlanes(const AscendC::LocalTensor<float>& planes, const PlaneShape& shape,
                                    const AscendC::LocalTensor<float>& rows, uint32_t first, uint32_t pitch) {
    const uint32_t groups = shape.width / kBlockFloats;        // of 8 tokens
    const uint32_t repeats = pitch <= kMaxStride ? groups : 1;  // the repeat stride of 8 rows is `pitch` blocks
    for (uint32_t chunk = 0; chunk < shape.chunks; ++chunk)
        for (uint32_t plane = 0; plane < shape.planes; ++plane) {
            const uint32_t column = first + plane;
            uint64_t mask[2] = {kLaneOfEachBlock << (column % kBlockFloats), 0};
            const uint32_t from = chunk * shape.width * pitch + column / kBlockFloats * kBlockFloats;
            const uint32_t to = shape.Chunk(chunk) + plane * shape.width;
            for (uint32_t group = 0; group < groups; group += repeats)
                AscendC::BlockReduceSum(planes[to + group * kBlockFloats], rows[from + group * kBlockFloats * pitch],
                                        static_cast<int32_t>(repeats), mask, 1, static_cast<int32_t>(pitch / kBlockFloats),
                                        static_cast<int32_t>(repeats == 1 ? 0 : pitch));
        }
}

// Tokens that share a block in rows of `lanes` floats (1: each starts on its own), and the floats a token then takes.
__aicore__ inline uint32_t TokensPerBlock(uint32_t lanes) { return kBlockFloats % lanes == 0 ? kBlockFloats / lanes : 1; }
__aicore__ inline uint32_t OutFloats(uint32_t lanes) {
    return kBlockFloats % lanes == 0 ? lanes : AlignUp(lanes, kBlockFloats);
}

// rows[t][m] = planes[first + m][t] for m < lanes, rows OutFloats(lanes) apart. A block per token is filled with its value, then
// one lane of each block is copied to its place. `blocks`: 8 planes of `width` blocks. Ends fenced.
__aicore__ inline void PlanesToRows(const AscendC::LocalTensor<float>& rows, const AscendC::LocalTensor<float>& planes,
                                    const PlaneShape& shape, uint32_t first, uint32_t lanes,
                                    const AscendC::LocalTensor<float>& blocks) {
    const uint32_t share = TokensPerBlock(lanes), pitch = OutFloats(lanes);
    const uint32_t step = share == 1 ? pitch / kBlockFloats : 1;            // blocks between tokens taken together
    const uint32_t groups = shape.width / share / kBlockFloats;             // instructions' repeats
    const uint32_t repeats = 8 * step <= kMaxStride ? groups : 1;
    for (uint32_t chunk = 0; chunk < shape.chunks; ++chunk)
        for (uint32_t begin = 0; begin < lanes; begin += kBlockFloats) {
            const uint32_t end = Min(begin + kBlockFloats, lanes);
            for (uint32_t m = begin; m < end; ++m)
                AscendC::Brcb(blocks[(m - begin) * shape.width * kBlockFloats], planes[shape.Chunk(chunk) + (first + m) * shape.width],
                              static_cast<uint8_t>(shape.width / kBlockFloats), AscendC::BrcbRepeatParams(1, 8));
            FenceVector();
            for (uint32_t m = begin; m < end; ++m)
                for (uint32_t part = 0; part < share; ++part) {  // tokens part, part + share, ...: lanes part * lanes + m
                    uint64_t mask[2] = {kLaneOfEachBlock << ((part * lanes + m) % kBlockFloats), 0};
                    const uint32_t to = chunk * shape.width * pitch + (share == 1 ? begin : 0);
                    const uint32_t from = ((m - begin) * shape.width + part) * kBlockFloats;
                    for (uint32_t group = 0; group < groups; group += repeats)
                        AscendC::Copy(rows[to + group * 8 * step * kBlockFloats], blocks[from + group * 8 * share * kBlockFloats], mask,
                                      static_cast<uint8_t>(repeats),
                                      AscendC::CopyRepeatParams(static_cast<uint16_t>(step), static_cast<uint16_t>(share),
                                                                static_cast<uint16_t>(repeats == 1 ? 0 : 8 * step),
                                                                static_cast<uint16_t>(repeats == 1 ? 0 : 8 * share)));
                }
            FenceVector();
        }
}

// planes[m][t] *= values[t] for every plane of each chunk.
__aicore__ inline void MulPlanesByTokens(const AscendC::LocalTensor<float>& planes, const PlaneShape& shape,
                                         const AscendC::LocalTensor<float>& values) {
    const uint32_t blocks = shape.width / kBlockFloats;
    for (uint32_t chunk = 0; chunk < shape.chunks; ++chunk)
        for (uint32_t plane = 0; plane < shape.planes; plane += kMaxRepeats) {
            const uint32_t at = shape.Chunk(chunk) + plane * shape.width;
            AscendC::Mul(planes[at], planes[at], values[chunk * shape.width], static_cast<uint64_t>(shape.width),
                         static_cast<uint8_t>(Min(kMaxRepeats, shape.planes - plane)), BinaryStrides(1, blocks, blocks, 0));
        }
}

// planes[first : first + count] = planes * scale + base[m]; scale: one block, base: a block per plane. Ends fenced.
__aicore__ inline void ScalePlanes(const AscendC::LocalTensor<float>& planes, const PlaneShape& shape, uint32_t first, uint32_t count,
                                   const AscendC::LocalTensor<float>& scale, const AscendC::LocalTensor<float>& base) {
    const uint32_t blocks = shape.width / kBlockFloats;
    const uint64_t mask = shape.width;
    for (uint32_t add = 0; add < 2; ++add) {
        for (uint32_t chunk = 0; chunk < shape.chunks; ++chunk)
            for (uint32_t plane = 0; plane < count; plane += kMaxRepeats) {
                const uint32_t at = shape.Chunk(chunk) + (first + plane) * shape.width;
                const uint8_t repeats = static_cast<uint8_t>(Min(kMaxRepeats, count - plane));
                if (add == 0) {
                    AscendC::Mul(planes[at], planes[at], scale, mask, repeats, BinaryStrides(0, blocks, blocks, 0));
                } else {
                    AscendC::Add(planes[at], planes[at], base[plane * kBlockFloats], mask, repeats, BinaryStrides(0, blocks, blocks, 1));
                }
            }
        FenceVector();
    }
}

// The n x n matrices of many tokens, element (i, j) in plane i * n + j, and the Sinkhorn iteration over them, pass by pass, so
// that other work can be put between the passes. Every pass starts and ends fenced. Sums of n: halves are added until one is
// left, (c0 + c2) + (c1 + c3) for n = 4.
class SinkhornPlanes {
public:
    __aicore__ inline void Init(const AscendC::LocalTensor<float>& matrix, const AscendC::LocalTensor<float>& sums, uint32_t n) {
        matrix_ = matrix;
        sums_ = sums;
        n_ = n;
    }
    // The matrix holds logits: softmax, columns, then iterations - 1 times rows, columns.
    __aicore__ inline void Start(const PlaneShape& shape, uint32_t iterations, float eps) {
        shape_ = shape;
        lines_ = shape.chunks * n_;
        blocks_ = shape.width / kBlockFloats;
        eps_ = eps;
        pass_ = 0;
        passes_ = 2 * iterations;
    }
    __aicore__ inline uint32_t Passes() const { return passes_; }
    // The next `count` passes, or those that are left.
    __aicore__ inline void Run(uint32_t count) {
        for (const uint32_t end = pass_ + Min(count, passes_ - pass_); pass_ < end; ++pass_) {
            if (pass_ == 0) {
                Softmax();
            } else if (pass_ % 2 == 0) {
                NormalizeRows();
            } else {
                NormalizeColumns();
            }
        }
    }

private:
    // c = softmax(c over j) + eps
    __aicore__ inline void Softmax() {
        const int32_t all = static_cast<int32_t>(shape_.Floats());
        ReduceRows<true>();
        for (uint32_t j = 0; j < n_; ++j)
            AscendC::Sub(Column(j), Column(j), sums_, Mask(), Lines(), BinaryStrides(1, LineBlocks(), LineBlocks(), blocks_));
        FenceVector();
        AscendC::Exp(matrix_, matrix_, all);
        FenceVector();
        ReduceRows<false>();
        DivideRows();
        AscendC::Adds(matrix_, matrix_, eps_, all);
        FenceVector();
    }

    // c /= sum over j of c + eps
    __aicore__ inline void NormalizeRows() {
        ReduceRows<false>();
        AscendC::Adds(sums_, sums_, eps_, static_cast<int32_t>(lines_ * shape_.width));
        FenceVector();
        DivideRows();
    }

    // c /= sum over i of c + eps
    __aicore__ inline void NormalizeColumns() {
        const uint32_t line = n_ * shape_.width;  // one matrix row of a chunk
        const uint32_t half = n_ / 2, pitch = (half == 0 ? 1 : half) * line;
        for (uint32_t chunk = 0; chunk < shape_.chunks; ++chunk) {
            const AscendC::LocalTensor<float> c = matrix_[shape_.Chunk(chunk)], s = sums_[chunk * pitch];
            if (half == 0) {
                AscendC::Adds(s, c, eps_, static_cast<int32_t>(line));
            } else {
                AscendC::Add(s, c, c[half * line], static_cast<int32_t>(half * line));
            }
        }
        FenceVector();
        if (half != 0) {
            if (n_ % 2 != 0) {
                for (uint32_t chunk = 0; chunk < shape_.chunks; ++chunk)
                    AscendC::Add(sums_[chunk * pitch], sums_[chunk * pitch], matrix_[shape_.Chunk(chunk) + 2 * half * line],
                                 static_cast<int32_t>(line));
                FenceVector();
            }
            SumPieces(sums_, line, half, shape_.chunks, pitch);
            for (uint32_t chunk = 0; chunk < shape_.chunks; ++chunk)
                AscendC::Adds(sums_[chunk * pitch], sums_[chunk * pitch], eps_, static_cast<int32_t>(line));
            FenceVector();
        }
        for (uint32_t chunk = 0; chunk < shape_.chunks; ++chunk)
            for (uint32_t i = 0; i < n_; ++i) {
                const AscendC::LocalTensor<float> row = matrix_[shape_.Chunk(chunk) + i * line];
                AscendC::Div(row, row, sums_[chunk * pitch], static_cast<int32_t>(line));
            }
        FenceVector();
    }

    __aicore__ inline AscendC::LocalTensor<float> Column(uint32_t j) const { return matrix_[j * shape_.width]; }
    __aicore__ inline uint64_t Mask() const { return shape_.width; }
    __aicore__ inline uint8_t Lines() const { return static_cast<uint8_t>(lines_); }  // chunks * n <= 4 * 16
    __aicore__ inline uint32_t LineBlocks() const { return n_ * blocks_; }            // <= 128

    template <bool isMax>
    __aicore__ inline void Combine(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& a,
                                   const AscendC::LocalTensor<float>& b, const AscendC::BinaryRepeatParams& strides) const {
        if constexpr (isMax) {
            AscendC::Max(dst, a, b, Mask(), Lines(), strides);
        } else {
            AscendC::Add(dst, a, b, Mask(), Lines(), strides);
        }
    }

    // sums[line] = max or sum over j of the line's planes; lines are (chunk, i), `width` floats each.
    template <bool isMax>
    __aicore__ inline void ReduceRows() const {
        const uint32_t all = lines_ * shape_.width;
        const uint32_t half = n_ / 2;
        if (half == 0) {  // one column
            AscendC::Adds(sums_, matrix_, 0.0f, static_cast<int32_t>(all));
            FenceVector();
            return;
        }
        for (uint32_t j = 0; j < half; ++j)
            Combine<isMax>(sums_[j * all], Column(j), Column(j + half), BinaryStrides(1, blocks_, LineBlocks(), LineBlocks()));
        FenceVector();
        if (n_ % 2 != 0) {
            Combine<isMax>(sums_, sums_, Column(2 * half), BinaryStrides(1, blocks_, blocks_, LineBlocks()));
            FenceVector();
        }
        for (uint32_t count = half; count > 1; count /= 2) {
            const uint32_t part = count / 2;
            Fold<isMax>(part * all, part * all);
            if (count % 2 != 0) Fold<isMax>(2 * part * all, all);
        }
    }
    // sums[0 : floats] op= sums[from : from + floats]
    template <bool isMax>
    __aicore__ inline void Fold(uint32_t from, uint32_t floats) const {
        if constexpr (isMax) {
            AscendC::Max(sums_, sums_, sums_[from], static_cast<int32_t>(floats));
        } else {
            AscendC::Add(sums_, sums_, sums_[from], static_cast<int32_t>(floats));
        }
        FenceVector();
    }

    __aicore__ inline void DivideRows() const {
        for (uint32_t j = 0; j < n_; ++j)
            AscendC::Div(Column(j), Column(j), sums_, Mask(), Lines(), BinaryStrides(1, LineBlocks(), LineBlocks(), blocks_));
        FenceVector();
    }

    AscendC::LocalTensor<float> matrix_, sums_;
    PlaneShape shape_{};
    float eps_ = 0;
    uint32_t n_ = 0, lines_ = 0, blocks_ = 0, pass_ = 0, passes_ = 0;
};

}  // namespace hc
