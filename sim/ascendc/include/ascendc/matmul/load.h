// Matrices of a product on their way in: GM -> L1 in pieces of several base matrices, L1 -> L0A and L0B one base matrix at a time.
//
// Both operands are seen as [outer, k], outer = m of A, n of B, stored either k by k ("inner": [outer][k]) or transposed ([k][outer]).
// L1 holds a piece as it is stored, in NZ; pieces of float or, in B, of any 4-byte type stored [k][outer] lie in strips of 16 rows of
// k, fractals of a strip side by side: LoadDataWithTranspose takes squares of neighbouring fractals.
#pragma once

#include "ascendc/matmul/memory.h"

namespace sim::matmul {

struct Range {
    int64_t start = 0, size = 0;
    bool operator==(const Range& o) const { return start == o.start && size == o.size; }
};
struct Piece {   // of a matrix
    Range outer, k;
    bool operator==(const Piece& o) const { return outer == o.outer && k == o.k; }
};

// A matrix in GM.
template <typename T>
struct Stored {
    GlobalTensor<T> gm;
    LocalTensor<T> l1;           // given in L1, in NZ; then nothing of it is copied
    bool inL1 = false;
    bool transposed = false;     // stored [k][outer]
    bool nz = false;
    int64_t outer = 0, k = 0;    // of the whole matrix in GM, which give the pitch
    int64_t Pitch() const { return transposed ? outer : k; }
};

// How a piece lies in L1.
template <typename T>
struct PieceLayout {
    static constexpr int64_t kSide = kC0<T> > kRows ? kC0<T> : kRows;   // of the squares that are transposed
    bool transposed = false;
    bool vector = false;         // one row of k without padding
    int64_t outerPad = 0, kPad = 0;
    PieceLayout() = default;
    PieceLayout(const Piece& piece, bool isTransposed, bool isVector)
        : transposed(isTransposed), vector(isVector), outerPad(matmul::AlignUp(piece.outer.size, transposed ? kSide : kRows)),
          kPad(matmul::AlignUp(piece.k.size, transposed ? kSide : kC0<T>)) {}
    bool Strips() const { return transposed && sizeof(T) == 4; }
    int64_t Bytes() const { return (vector ? kRows : outerPad) * kPad * int64_t(sizeof(T)); }
    // Elements from the piece's start to that of the fractal which holds (outer, k), both multiples of the fractal's sides.
    int64_t At(int64_t outer, int64_t k) const {
        if (vector) return k;
        if (Strips()) return k / kRows * kRows * outerPad + outer * kRows;
        return transposed ? outer * kPad + k * kC0<T> : k * outerPad + outer * kC0<T>;
    }
};

inline constexpr int64_t kWidestPitch = 65535;   // elements from row to row that one copy can step over

// Rows further apart than kWidestPitch are copied one by one.
template <typename T>
void CopyRows(const LocalTensor<T>& dst, const GlobalTensor<T>& source, int64_t rows, int64_t columns, int64_t pitch, int64_t columnStride,
              Location where) {
    if (pitch <= kWidestPitch) {
        DataCopy(dst, source, AscendC::Nd2NzParams(1, rows, columns, 0, pitch, columnStride, 1, 0), where);
        return;
    }
    for (int64_t r = 0; r < rows; ++r)
        DataCopy(dst[uint32_t(r * kC0<T>)], source[uint64_t(r * pitch)],
                 AscendC::Nd2NzParams(1, 1, columns, 0, columns, columnStride, 1, 0), where);
}

// A part of a piece, GM -> L1. The part starts on fractals of the piece.
template <typename T>
void CopyIn(const LocalTensor<T>& l1, const PieceLayout<T>& layout, const Stored<T>& m, const Piece& piece, const Piece& part,
            Location where) {
    const int64_t atOuter = part.outer.start - piece.outer.start, atK = part.k.start - piece.k.start;
    const int64_t rows = layout.transposed ? part.k.size : part.outer.size, columns = layout.transposed ? part.outer.size : part.k.size;
    const int64_t row0 = layout.transposed ? part.k.start : part.outer.start, column0 = layout.transposed ? part.outer.start : part.k.start;
    const LocalTensor<T> to = l1[uint32_t(layout.At(atOuter, atK))];
    const int64_t allRows = matmul::AlignUp(m.transposed ? m.k : m.outer, kRows);   // of a matrix stored in NZ
    const auto fractals = [&](const LocalTensor<T>& dst, int64_t firstRow, int64_t count, int64_t columnStride) {   // NZ as it is
        const int64_t take = matmul::AlignUp(count, kRows);
        DataCopy(dst, m.gm[uint64_t(column0 / kC0<T> * allRows * kC0<T> + firstRow * kC0<T>)],
                 AscendC::DataCopyParams(CeilDiv(columns, kC0<T>), take, allRows - take, columnStride - take), where);
    };
    if (layout.vector) {
        CopyRows(to, m.gm[uint64_t(row0 * m.Pitch() + column0)], 1, columns, columns, 1, where);
    } else if (layout.Strips()) {
        for (int64_t r = 0; r < rows; r += kRows) {
            const LocalTensor<T> strip = l1[uint32_t(layout.At(atOuter, atK + r))];
            const int64_t count = rows - r < kRows ? rows - r : kRows;
            if (m.nz) fractals(strip, row0 + r, count, kRows);
            else CopyRows(strip, m.gm[uint64_t((row0 + r) * m.Pitch() + column0)], count, columns, m.Pitch(), kRows, where);
        }
    } else {
        const int64_t columnStride = layout.transposed ? layout.kPad : layout.outerPad;
        if (m.nz) fractals(to, row0, rows, columnStride);
        else CopyRows(to, m.gm[uint64_t(row0 * m.Pitch() + column0)], rows, columns, m.Pitch(), columnStride, where);
    }
}

// Fractals of a base matrix in L0: outerFirst: [outer][k] (ZZ), else [k][outer] (NZ of A, ZN of B).
struct L0Order {
    bool outerFirst;
    int64_t outers, ks;   // fractals
    int64_t At(int64_t outer, int64_t k) const { return outerFirst ? outer * ks + k : k * outers + outer; }
};

// One base matrix, L1 -> L0.
template <typename T>
void Split(const LocalTensor<T>& l0, const LocalTensor<T>& l1, const PieceLayout<T>& layout, int64_t outer0, int64_t k0,
           const L0Order& order, Location where) {
    constexpr int64_t kElements = kRows * kC0<T>;   // of a fractal
    const auto load = [&](int64_t target, int64_t outer, int64_t k, int64_t repeat, int64_t sourceStride) {
        LoadData(l0[uint32_t(target * kElements)], l1[uint32_t(layout.At(outer, k))],
                 AscendC::LoadData2DParams(0, repeat, sourceStride, 0, 0, layout.transposed, 0), where);
    };
    if (layout.vector) {
        load(0, 0, k0, CeilDiv(order.ks * kRow, kFractal), 1);
    } else if (layout.transposed && sizeof(T) != 2) {
        constexpr int64_t kSide = PieceLayout<T>::kSide;
        // b32: a square becomes 16 rows of outer by two fractals of k; b8: two fractals of outer by one of k.
        const int64_t kParts = kSide / kC0<T>, outerParts = kSide / kRows, squares = CeilDiv(order.outers, outerParts);
        const int64_t sourceStride = layout.Strips() ? 1 : layout.kPad / kSide;
        const int64_t fractalGap = kParts > 1 && !order.outerFirst ? order.outers - 1 : 0;
        const int64_t pitch = order.At(outerParts, 0);
        // The last square of an odd number of outer fractals reaches into the next k, which is loaded after it.
        const bool reaches = order.outers % outerParts != 0;
        for (int64_t k = 0; k < order.ks; k += kParts) {
            if (reaches && k > 0) AscendC::PipeBarrier<PIPE_MTE1>(where);
            LoadDataWithTranspose(l0[uint32_t(order.At(0, k) * kElements)], l1[uint32_t(layout.At(outer0, k0 + k * kC0<T>))],
                                  AscendC::LoadData2dTransposeParams(0, squares, sourceStride, pitch - 1, fractalGap), where);
        }
    } else if (order.outerFirst) {
        const int64_t stride = layout.transposed ? 1 : layout.outerPad / kRows;
        for (int64_t i = 0; i < order.outers; ++i) load(order.At(i, 0), outer0 + i * kRows, k0, order.ks, stride);
    } else {
        const int64_t stride = layout.transposed ? layout.kPad / kRows : 1;
        for (int64_t i = 0; i < order.ks; ++i) load(order.At(0, i), outer0, k0 + i * kC0<T>, order.outers, stride);
    }
}

}  // namespace sim::matmul
