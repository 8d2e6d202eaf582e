// Queues and scratch buffers over TPipe's memory. A queue buffer goes Free -> Occupied -> Enqueued -> Dequeued -> Free; EnQue
// sets a flag that DeQue waits for (filled), FreeTensor one that the next AllocTensor waits for (freed).
#pragma once

#include "ascendc/tpipe.h"

namespace sim {

// The pipe that fills a position, and the one that empties it (facts 3.2).
constexpr AscendC::HardEvent Event(Pipe source, Pipe destination) {
    using E = AscendC::HardEvent;
    for (int e = 0; e < int(E::MAX); ++e)
        if (PipesOf(E(e)).source == source && PipesOf(E(e)).destination == destination) return E(e);
    return E::V_V;
}
struct QueuePipes { Pipe fills, empties; };
constexpr QueuePipes PipesOfQueue(AscendC::TPosition src, AscendC::TPosition dst) {
    using P = AscendC::TPosition;
    const auto cubeSide = [](P p) { return p != P::GM && MemoryOf(p) != Memory::UB && MemoryOf(p) != Memory::GM; };
    const P buffer = src == P::GM ? dst : src;
    if (cubeSide(buffer)) switch (MemoryOf(buffer)) {
        case Memory::L1: return {Pipe::MTE2, Pipe::MTE1};
        case Memory::L0C: return {Pipe::M, Pipe::FIX};
        case Memory::FB: return {Pipe::FIX, Pipe::FIX};
        default: return {Pipe::MTE1, Pipe::M};
    }
    if (src == P::GM) return {Pipe::MTE2, dst == P::GM ? Pipe::MTE3 : Pipe::V};
    if (dst == P::GM) return {Pipe::V, Pipe::MTE3};
    return src == P::VECIN && dst == P::VECOUT ? QueuePipes{Pipe::MTE2, Pipe::MTE3} : QueuePipes{Pipe::V, Pipe::V};
}
constexpr AscendC::HardEvent FilledEvent(AscendC::TPosition src, AscendC::TPosition dst) {
    const QueuePipes pipes = PipesOfQueue(src, dst);
    return Event(pipes.fills, pipes.empties);
}
constexpr AscendC::HardEvent FreedEvent(AscendC::TPosition src, AscendC::TPosition dst) {
    const QueuePipes pipes = PipesOfQueue(src, dst);
    return Event(pipes.empties, pipes.fills);
}
// EnQue<src, dst>: V works on everything in UB, so VECIN -> VECOUT is V after V.
constexpr AscendC::HardEvent UserEvent(AscendC::TPosition src, AscendC::TPosition dst) {
    using P = AscendC::TPosition;
    return src != P::GM && dst != P::GM && MemoryOf(src) == Memory::UB ? AscendC::HardEvent::V_V : FilledEvent(src, dst);
}

class Queue {
public:
    Queue(AscendC::TPosition position, int depth, AscendC::HardEvent filled, AscendC::HardEvent freed)
        : position_(position), depth_(depth), filled_(filled), freed_(freed) {}

    void Bind(QueueBuffer* buffers, int64_t count, Location where) {
        buffers_ = buffers;
        count_ = int(count);
        cursor_ = head_ = used_ = 0;
        for (int i = 0; i < count_; ++i) {
            buffers_[i].freedEvent = freed_;
            if (depth_ == 0) SetFreed(buffers_[i], "InitBuffer", where);  // in-place interface: free flags are set beforehand
        }
    }
    QueueBuffer& Alloc(Location where) {
        Pipeline("AllocTensor", where);
        for (int tried = 0; tried < count_; ++tried) {
            QueueBuffer& buffer = buffers_[cursor_];
            cursor_ = (cursor_ + 1) % count_;
            if (buffer.state != QueueBuffer::kFree) continue;
            if (buffer.freed >= 0) {
                WaitEvent(freed_, buffer.freed, where);
                buffer.freed = -1;
            }
            return Enter(buffer, QueueBuffer::kOccupied, where);
        }
        Misuse("AllocTensor", "none is free (the first is in use since " + At(buffers_[0].where) +
               "), the device would wait forever; FreeTensor one first, or InitBuffer more", where);
    }
    // `fixedId`: EnQue and DeQue with positions use id 0 of V_V, which no other call allocates.
    void Push(uint64_t address, AscendC::HardEvent event, bool fixedId, Location where) {
        QueueBuffer& buffer = Find("EnQue", address, where);
        if (buffer.state == QueueBuffer::kFree || buffer.state == QueueBuffer::kEnqueued)
            Misuse("EnQue", std::string("the tensor is ") + (buffer.state == QueueBuffer::kFree ? "free: AllocTensor it first"
                   : "enqueued already (at " + At(buffer.where) + "): DeQue it first"), where);
        if (used_ >= Capacity())
            Misuse("EnQue", std::to_string(used_) + " tensor(s) are enqueued, as many as the depth allows; DeQue before the "
                   "next EnQue, or declare a deeper queue", where);
        const EventPipes pipes = PipesOf(event);
        buffer.filled = fixedId ? 0 : Pipeline("EnQue", where).AllocEventID(event, "EnQue", where);
        Core::Current().SetFlag(pipes.source, pipes.destination, buffer.filled, where);
        fifo_[(head_ + used_++) % kFifo] = uint8_t(&buffer - buffers_);
        Enter(buffer, QueueBuffer::kEnqueued, where);
    }
    QueueBuffer& Pop(AscendC::HardEvent event, bool fixedId, Location where) {
        Pipeline("DeQue", where);
        if (used_ == 0) Misuse("DeQue", "the queue is empty; EnQue the tensor first", where);
        QueueBuffer& buffer = buffers_[fifo_[head_]];
        head_ = (head_ + 1) % kFifo;
        --used_;
        WaitEvent(event, buffer.filled, where, fixedId);
        buffer.filled = -1;
        return Enter(buffer, QueueBuffer::kDequeued, where);
    }
    void Free(uint64_t address, Location where) {
        QueueBuffer& buffer = Find("FreeTensor", address, where);
        if (buffer.state == QueueBuffer::kFree)
            Misuse("FreeTensor", "the tensor is free already (last call on it at " + At(buffer.where) +
                   "); call FreeTensor once per AllocTensor", where);
        if (buffer.state == QueueBuffer::kEnqueued)
            Misuse("FreeTensor", "the tensor is still enqueued (at " + At(buffer.where) + "); DeQue it first", where);
        SetFreed(buffer, "FreeTensor", where);
        Enter(buffer, QueueBuffer::kFree, where);
    }
    // Waits for the flags of all freed buffers.
    void FreeAll(Location where) {
        for (int i = 0; i < count_; ++i) {
            if (buffers_[i].freed >= 0) WaitEvent(freed_, buffers_[i].freed, where);
            buffers_[i].freed = -1;
        }
    }

    int Used() const { return used_; }
    bool Vacant() const { return used_ < Capacity(); }
    bool Idle() const {
        for (int i = 0; i < count_; ++i)
            if (buffers_[i].state == QueueBuffer::kFree) return true;
        return false;
    }
    const QueueBuffer* Lookup(uint64_t address) const {
        for (int i = 0; i < count_; ++i)
            if (address - buffers_[i].address < buffers_[i].bytes) return buffers_ + i;
        return nullptr;
    }

private:
    static constexpr int kFifo = AscendC::QBUF_MAX_LEN;
    int Capacity() const { return depth_ == 0 ? count_ : depth_; }

    static QueueBuffer& Enter(QueueBuffer& buffer, QueueBuffer::State state, Location where) {
        buffer.state = state;
        buffer.where = where;
        return buffer;
    }
    AscendC::TPipe& Pipeline(const char* api, Location where) const {
        if (count_ == 0) Misuse(api, "it has no buffers; call TPipe::InitBuffer first", where);
        if (auto* pipe = static_cast<AscendC::TPipe*>(Core::Current().tpipe)) return *pipe;
        Misuse(api, "its TPipe does not exist any more", where);
    }
    QueueBuffer& Find(const char* api, uint64_t address, Location where) {
        Pipeline(api, where);
        if (const QueueBuffer* buffer = Lookup(address)) return const_cast<QueueBuffer&>(*buffer);
        Misuse(api, std::string("the tensor at ") + MemoryName(MemoryOf(position_)) + " " + Hex(address) + " is not one of its buffers; "
                    "use the queue it was "
               "allocated from", where);
    }
    void SetFreed(QueueBuffer& buffer, const char* api, Location where) {
        const EventPipes pipes = PipesOf(freed_);
        buffer.freed = Pipeline(api, where).AllocEventID(freed_, api, where);
        Core::Current().SetFlag(pipes.source, pipes.destination, buffer.freed, where);
    }
    void WaitEvent(AscendC::HardEvent event, AscendC::TEventID id, Location where, bool fixedId = false) {
        const EventPipes pipes = PipesOf(event);
        Core::Current().WaitFlag(pipes.source, pipes.destination, id, where);
        if (!fixedId) Pipeline("WaitFlag", where).Release(event, id);
    }
    [[noreturn]] __attribute__((noinline, cold)) void Misuse(const char* api, const std::string& message,
                                                             Location where) const {
        std::string text = std::string(PositionName(position_)) + " queue (depth " + std::to_string(depth_);
        if (count_ > 0) text += ", " + std::to_string(count_) + " x " + std::to_string(buffers_[0].bytes) + " bytes";
        Core::Current().Fail(Rule::QueueState, api, "", text + "): " + message, where);
    }

    AscendC::TPosition position_;
    int depth_;
    AscendC::HardEvent filled_, freed_;
    QueueBuffer* buffers_ = nullptr;
    int count_ = 0, cursor_ = 0, head_ = 0, used_ = 0;
    uint8_t fifo_[kFifo];
};

template <typename T>
AscendC::LocalTensor<T> TensorOf(const QueueBuffer& buffer) {
    return {buffer.position, buffer.address, buffer.bytes, buffer.address + buffer.bytes};
}

}  // namespace sim

namespace AscendC {

enum class TBufState : uint8_t { FREE, OCCUPIED, ENQUE, DEQUE };

template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind {
    static constexpr HardEvent kFilled = sim::FilledEvent(src, dst);

public:
    static constexpr TPosition kBuffer = src == TPosition::GM ? dst : src;  // position of the buffers

    template <typename T>
    LocalTensor<T> AllocTensor(sim::Location where = sim::Location::Here()) { return sim::TensorOf<T>(queue_.Alloc(where)); }
    template <typename T>
    void AllocTensor(LocalTensor<T>& tensor, sim::Location where = sim::Location::Here()) { tensor = AllocTensor<T>(where); }

    template <typename T>
    bool EnQue(const LocalTensor<T>& tensor, sim::Location where = sim::Location::Here()) {
        queue_.Push(tensor.Address(), kFilled, false, where);
        return true;
    }
    template <TPosition srcUserPos, TPosition dstUserPos, typename T>
    bool EnQue(const LocalTensor<T>& tensor, sim::Location where = sim::Location::Here()) {
        constexpr HardEvent event = sim::UserEvent(srcUserPos, dstUserPos);
        queue_.Push(tensor.Address(), event, event == HardEvent::V_V, where);
        return true;
    }
    template <typename T>
    LocalTensor<T> DeQue(sim::Location where = sim::Location::Here()) { return sim::TensorOf<T>(queue_.Pop(kFilled, false, where)); }
    template <typename T>
    void DeQue(LocalTensor<T>& tensor, sim::Location where = sim::Location::Here()) { tensor = DeQue<T>(where); }
    template <TPosition srcUserPos, TPosition dstUserPos, typename T>
    LocalTensor<T> DeQue(sim::Location where = sim::Location::Here()) {
        constexpr HardEvent event = sim::UserEvent(srcUserPos, dstUserPos);
        return sim::TensorOf<T>(queue_.Pop(event, event == HardEvent::V_V, where));
    }
    template <typename T>
    void FreeTensor(const LocalTensor<T>& tensor, sim::Location where = sim::Location::Here()) {
        queue_.Free(tensor.Address(), where);
    }
    void FreeAllEvent(sim::Location where = sim::Location::Here()) { queue_.FreeAll(where); }

    bool VacantInQue() const { return queue_.Vacant(); }
    bool HasTensorInQue() const { return queue_.Used() > 0; }
    int32_t GetTensorCountInQue() const { return queue_.Used(); }
    bool HasIdleBuffer() const { return queue_.Idle(); }
    template <typename T>
    TBufState GetState(const LocalTensor<T>& tensor) const {
        const sim::QueueBuffer* buffer = queue_.Lookup(tensor.Address());
        return buffer ? TBufState(buffer->state - sim::QueueBuffer::kFree) : TBufState::FREE;
    }

    void Bind(sim::QueueBuffer* buffers, int64_t count, sim::Location where) { queue_.Bind(buffers, count, where); }

private:
    sim::Queue queue_{kBuffer, depth, kFilled, sim::FreedEvent(src, dst)};
};

template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<position == TPosition::VECIN ? TPosition::GM : position,
                             position == TPosition::VECOUT || position == TPosition::CO1 ? TPosition::GM : position, depth, mask> {};

// Scratch memory: no states, no flags, every Get gives the same bytes.
template <TPosition position = TPosition::LCM>
class TBuf {
public:
    template <typename T>
    LocalTensor<T> Get(sim::Location where = sim::Location::Here()) const { return View<T>("Get", Buffer(where).bytes, 0, where); }
    template <typename T>
    LocalTensor<T> Get(sim::Wide elements, sim::Location where = sim::Location::Here()) const {
        return View<T>("Get", elements.value * int64_t(sizeof(T)), 0, where);
    }
    template <typename T>
    LocalTensor<T> GetWithOffset(sim::Wide elements, sim::Wide bufOffset, sim::Location where = sim::Location::Here()) const {
        return View<T>("GetWithOffset", elements.value * int64_t(sizeof(T)), bufOffset, where);
    }
    uint32_t GetBufLen() const { return buffer_ ? uint32_t(buffer_->bytes) : 0; }
    void Bind(sim::QueueBuffer* buffer) { buffer_ = buffer; }

private:
    const sim::QueueBuffer& Buffer(sim::Location where) const {
        if (buffer_ == nullptr)
            sim::Core::Current().Fail(sim::Rule::QueueState, "Get", "", "the TBuf has no buffer; call TPipe::InitBuffer first",
                                      where);
        return *buffer_;
    }
    // The tensor may be used to the end of its last 32-byte block, which a block access touches whole.
    template <typename T>
    LocalTensor<T> View(const char* api, int64_t bytes, int64_t offset, sim::Location where) const {
        const sim::QueueBuffer& buffer = Buffer(where);
        if (bytes < 0 || offset < 0 || uint64_t(offset + bytes) > buffer.bytes)
            sim::Core::Current().Fail(sim::Rule::OutOfRange, api, "", sim::ByteRange(uint64_t(offset), uint64_t(offset + bytes)) +
                                      " of a TBuf of " + std::to_string(buffer.bytes) +
                                      " bytes", where);
        const uint64_t end = std::min(buffer.bytes, sim::AlignUp(uint64_t(offset + bytes), ONE_BLK_SIZE));
        return {position, buffer.address + uint64_t(offset), uint64_t(bytes), buffer.address + end};
    }
    sim::QueueBuffer* buffer_ = nullptr;
};

// A part of UB with its own bump allocator; pools made on a shared pool overlay it.
template <TPosition position, uint32_t bufIDSize = 4>
class TBufPool {
public:
    template <TPosition src, TPosition dst, int32_t depth, auto mask>
    bool InitBuffer(TQueBind<src, dst, depth, mask>& que, sim::Wide num, sim::Wide len,
                    sim::Location where = sim::Location::Here()) {
        const uint64_t bytes = TPipe::BufferBytes(num, len, where);
        que.Bind(Take(bytes, num, where), num, where);
        return true;
    }
    template <TPosition bufPosition>
    bool InitBuffer(TBuf<bufPosition>& buf, sim::Wide len, sim::Location where = sim::Location::Here()) {
        buf.Bind(Take(TPipe::BufferBytes(1, len, where), 1, where));
        return true;
    }
    template <TPosition other, uint32_t otherSize>
    bool InitBufPool(TBufPool<other, otherSize>& pool, sim::Wide len, sim::Location where = sim::Location::Here()) {
        const uint64_t bytes = TPipe::BufferBytes(1, len, where);
        pool.Bind(pipe_, Reserve(bytes, where), bytes);
        return true;
    }
    template <TPosition other, uint32_t otherSize, typename Shared>
    bool InitBufPool(TBufPool<other, otherSize>& pool, sim::Wide len, const Shared& shared,
                     sim::Location where = sim::Location::Here()) {
        return pipe_->InitBufPool(pool, len, shared, where);
    }
    void Reset(sim::Location where = sim::Location::Here()) {
        pipe_->Settle(this, false, where);
        used_ = taken_ = 0;
    }

    void Bind(TPipe* pipe, uint64_t address, uint64_t bytes) {
        pipe_ = pipe;
        address_ = address;
        bytes_ = bytes;
        used_ = taken_ = 0;
    }
    uint64_t Address() const { return address_; }
    uint64_t Bytes() const { return bytes_; }

private:
    uint64_t Reserve(uint64_t bytes, sim::Location where) {
        if (used_ + bytes > bytes_)
            sim::Core::Current().Fail(sim::Rule::LocalMemoryOverflow, "InitBuffer", "len",
                                      std::to_string(bytes) + " bytes do not fit the TBufPool: " + std::to_string(used_) +
                                          " of its " + std::to_string(bytes_) + " bytes are in use", where);
        used_ += bytes;
        return address_ + used_ - bytes;
    }
    sim::QueueBuffer* Take(uint64_t bytes, int64_t num, sim::Location where) {
        if ((taken_ += num) > bufIDSize)
            sim::Core::Current().Fail(sim::Rule::Argument, "InitBuffer", "num", "the TBufPool has " +
                                      std::to_string(bufIDSize) + " buffers (its second template argument), this call exceeds "
                                      "them", where);
        const uint64_t address = Reserve(bytes * uint64_t(num), where);
        sim::Core::Current().MarkUnwritten(sim::MemoryOf(position), address, bytes * uint64_t(num));
        return pipe_->Slots(position, address, bytes, num, this, where);
    }
    TPipe* pipe_ = nullptr;
    uint64_t address_ = 0, bytes_ = 0, used_ = 0;
    int64_t taken_ = 0;
};

// Static allocation without TPipe: addresses only, no flags.
template <Hardware hardware = Hardware::UB>
class LocalMemAllocator {
    static constexpr TPosition kPosition = hardware == Hardware::L1 ? TPosition::A1 : hardware == Hardware::L0A ? TPosition::A2
        : hardware == Hardware::L0B ? TPosition::B2 : hardware == Hardware::L0C ? TPosition::CO1
        : hardware == Hardware::BIAS ? TPosition::C2
        : hardware == Hardware::FIXBUF ? TPosition::C2PIPE2GM : TPosition::VECIN;
    static_assert(hardware != Hardware::GM && hardware != Hardware::MAX, "LocalMemAllocator is of a local memory");

public:
    template <TPosition position, typename T, uint32_t elements>
    LocalTensor<T> Alloc(sim::Location where = sim::Location::Here()) { return Take<T>(position, elements, where); }
    template <TPosition position, typename T>
    LocalTensor<T> Alloc(sim::Wide elements, sim::Location where = sim::Location::Here()) {
        return Take<T>(position, uint64_t(elements.value), where);
    }
    template <typename T>
    LocalTensor<T> Alloc(sim::Wide elements, sim::Location where = sim::Location::Here()) {
        return Take<T>(kPosition, uint64_t(elements.value), where);
    }
    uint32_t GetCurAddr() const { return uint32_t(used_); }

private:
    template <typename T>
    LocalTensor<T> Take(TPosition position, uint64_t elements, sim::Location where) {
        const uint64_t bytes = sim::AlignUp(elements * sizeof(T), ONE_BLK_SIZE);
        const uint64_t address = used_;
        used_ += bytes;
        sim::Core::Current().RecordBuffer(sim::MemoryOf(position), sim::PositionName(position), address, bytes, 1, where);
        return {position, address, elements * sizeof(T), address + bytes};
    }
    uint64_t used_ = 0;
};

}  // namespace AscendC
