// Pieces of one operand in L1: up to two at a time, the next one on its way while the other is used.
#pragma once

#include "ascendc/matmul/plan.h"

namespace sim::matmul {

template <typename T>
class OperandPieces {
public:
    // `address` of its buffers in the L1 share; `base` and `step`: sizes of a base matrix and how many of them a piece has.
    void Start(const Stored<T>& stored, bool isA, int64_t outer, int64_t k, int64_t baseOuter, int64_t baseK, int64_t stepOuter,
               int64_t stepK, int64_t address, int64_t bytes, int64_t buffers, bool basePieces) {
        stored_ = stored;
        isA_ = isA;
        outer_ = outer, k_ = k, baseOuter_ = baseOuter, baseK_ = baseK, stepOuter_ = stepOuter, stepK_ = stepK;
        address_ = address, bytes_ = bytes, buffers_ = buffers, basePieces_ = basePieces;
        // A single row is multiplied as a vector, which must be alone in its piece.
        if (SingleRow(outer % baseOuter)) stepOuter_ = 1;
        for (Buffer& buffer : buffer_) buffer = {};
        if (!stored_.inL1) return;
        buffer_[0].piece = {{0, outer}, {0, k}};
        buffer_[0].layout = PieceLayout<T>(buffer_[0].piece, stored_.transposed, false);
    }
    // The base matrix (outer, k) is there, and MTE1 may read it.
    void Have(int64_t outerBlock, int64_t kBlock, Location where) {
        if (stored_.inL1) return;
        Buffer& buffer = buffer_[size_t(Fetch(PieceAt(outerBlock, kBlock), where))];
        if (!buffer.onItsWay) return;
        WaitFilled(buffer, where);
    }
    // Starts to fetch the piece of a base matrix that will be used after the current one.
    void Prefetch(int64_t outerBlock, int64_t kBlock, Location where) {
        if (!stored_.inL1 && buffers_ > 1) Fetch(PieceAt(outerBlock, kBlock), where);
    }
    bool SamePiece(int64_t outerBlock, int64_t kBlock, int64_t otherOuter, int64_t otherK) const {
        return stored_.inL1 || PieceAt(outerBlock, kBlock) == PieceAt(otherOuter, otherK);
    }
    Range Outer(int64_t block) const { return Clip(block * baseOuter_, baseOuter_, outer_); }
    Range K(int64_t block) const { return Clip(block * baseK_, baseK_, k_); }
    // Whether the base matrix is one row without padding, and what it has of fractals.
    bool IsVector(int64_t outerBlock) const { return !stored_.inL1 && SingleRow(Outer(outerBlock).size); }
    L0Order OrderOf(int64_t outerBlock, int64_t kBlock) const {
        const bool squares = stored_.transposed && sizeof(T) == 4;
        const int64_t k = K(kBlock).size;
        return {isA_ && Core::Current().Soc().npuArch == 2201, CeilDiv(Outer(outerBlock).size, kRows),
                squares ? 2 * CeilDiv(k, kRows) : CeilDiv(k, kC0<T>)};
    }
    bool Squares() const { return stored_.transposed && sizeof(T) == 4; }
    bool Transposed() const { return stored_.transposed; }
    void ToL0(const LocalTensor<T>& l0, int64_t outerBlock, int64_t kBlock, Location where) const {
        const Range outer = Outer(outerBlock), k = K(kBlock);
        const Buffer& buffer = stored_.inL1 ? buffer_[0] : buffer_[size_t(Holding(PieceAt(outerBlock, kBlock)))];
        Split(l0, L1(buffer), buffer.layout, outer.start - buffer.piece.outer.start, k.start - buffer.piece.k.start,
              OrderOf(outerBlock, kBlock), where);
    }

private:
    struct Buffer {
        Piece piece;               // empty: none
        PieceLayout<T> layout;
        bool onItsWay = false;     // filled, but MTE1 has not waited for it
        int64_t used = 0;
    };
    static Range Clip(int64_t start, int64_t size, int64_t end) { return {start, std::min(size, end - start)}; }
    bool SingleRow(int64_t rows) const {
        return isA_ && rows == 1 && !stored_.transposed && !stored_.nz && Core::Current().Soc().npuArch == 2201;
    }
    Piece PieceAt(int64_t outerBlock, int64_t kBlock) const {
        const int64_t outers = stepOuter_ * baseOuter_, ks = stepK_ * baseK_;
        return {Clip(outerBlock / stepOuter_ * outers, outers, outer_), Clip(kBlock / stepK_ * ks, ks, k_)};
    }
    int8_t FilledId(const Buffer& buffer) const {
        return CubeMemory::Current().l1Filled[(isA_ ? 0 : kBuffers) + int(&buffer - buffer_)];
    }
    void WaitFilled(Buffer& buffer, Location where) {
        const EventPipes pipes = PipesOf(HardEvent::MTE2_MTE1);
        Core::Current().WaitFlag(pipes.source, pipes.destination, FilledId(buffer), where);
        buffer.onItsWay = false;
    }
    LocalTensor<T> L1(const Buffer& buffer) const {
        if (stored_.inL1) return stored_.l1;
        return CubeMemory::Current().l1.template At<T>(address_ + (&buffer - buffer_) * bytes_, bytes_);
    }
    int Holding(const Piece& piece) const {
        for (int i = 0; i < buffers_; ++i)
            if (buffer_[i].piece == piece) return i;
        return -1;
    }
    // Which buffer holds the piece, copied from GM unless it is there already. MTE1 has been given no more than what comes before the
    // use of the piece that is there now, so everything it was given is done with the older piece.
    int Fetch(const Piece& piece, Location where) {
        int at = Holding(piece);
        if (at < 0) {
            at = buffers_ > 1 && buffer_[1].used < buffer_[0].used ? 1 : 0;
            Buffer& buffer = buffer_[at];
            if (buffer.onItsWay) WaitFilled(buffer, where);
            if (buffer.piece.outer.size != 0) Order(HardEvent::MTE1_MTE2, CubeMemory::Current().l1Freed, where);
            buffer.piece = piece;
            buffer.layout = PieceLayout<T>(piece, stored_.transposed, SingleRow(piece.outer.size));
            Copy(buffer, where);
            const EventPipes pipes = PipesOf(HardEvent::MTE2_MTE1);
            Core::Current().SetFlag(pipes.source, pipes.destination, FilledId(buffer), where);
            buffer.onItsWay = true;
        }
        buffer_[at].used = ++uses_;
        return at;
    }
    void Copy(const Buffer& buffer, Location where) const {
        const Piece& piece = buffer.piece;
        if (!basePieces_) return CopyIn(L1(buffer), buffer.layout, stored_, piece, piece, where);
        for (int64_t o = piece.outer.start; o < piece.outer.start + piece.outer.size; o += baseOuter_)
            for (int64_t k = piece.k.start; k < piece.k.start + piece.k.size; k += baseK_)
                CopyIn(L1(buffer), buffer.layout, stored_, piece,
                       {Clip(o, baseOuter_, piece.outer.start + piece.outer.size), Clip(k, baseK_, piece.k.start + piece.k.size)}, where);
    }

    Stored<T> stored_;
    bool isA_ = false, basePieces_ = false;
    int64_t outer_ = 0, k_ = 0, baseOuter_ = 1, baseK_ = 1, stepOuter_ = 1, stepK_ = 1;
    int64_t address_ = 0, bytes_ = 0, buffers_ = 1, uses_ = 0;
    Buffer buffer_[kBuffers];
};

}  // namespace sim::matmul
