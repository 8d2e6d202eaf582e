// The memories of a cube core as the high-level objects of a kernel share them, and the flags that order their use.
#pragma once

#include "ascendc/matmul/types.h"
#include "ascendc/tque.h"

namespace sim::matmul {

using AscendC::HardEvent;
using AscendC::TPipe;

inline constexpr int kBuffers = 2;   // of L1 per operand, of L0A and L0B, of L0C

// Bytes of each memory.
struct Need {
    int64_t l1 = 0, l0a = 0, l0b = 0, l0c = 0, table = 0;
    void Join(const Need& o) {   // what serves both
        l1 = std::max(l1, o.l1), l0a = std::max(l0a, o.l0a), l0b = std::max(l0b, o.l0b), l0c = std::max(l0c, o.l0c);
        table = std::max(table, o.table);
    }
};

// A flag set when a buffer may be overwritten, waited for by who overwrites it. Nothing to wait for at first.
class Gate {
public:
    void Open(HardEvent event, int8_t id, Location where) {
        Pass(where);
        pipes_ = PipesOf(event);
        id_ = id;
        Core::Current().SetFlag(pipes_.source, pipes_.destination, id, where);
        set_ = true;
    }
    void Pass(Location where) {
        if (set_) Core::Current().WaitFlag(pipes_.source, pipes_.destination, id_, where);
        set_ = false;
    }

private:
    EventPipes pipes_{Pipe::S, Pipe::S, ""};
    int8_t id_ = 0;
    bool set_ = false;
};

// Everything issued on one pipe before everything issued on another from now on.
inline void Order(HardEvent event, int8_t id, Location where) {
    const EventPipes pipes = PipesOf(event);
    Core::Current().SetFlag(pipes.source, pipes.destination, id, where);
    Core::Current().WaitFlag(pipes.source, pipes.destination, id, where);
}

// One buffer of a memory, which grows when an object needs more than those before it.
template <TPosition position>
class Share {
public:
    void Reserve(TPipe& pipe, int64_t bytes, Location where) {
        if (bytes <= bytes_) return;
        AscendC::TBuf<position> buffer;
        pipe.InitBuffer(buffer, bytes, where);
        address_ = buffer.template Get<uint8_t>().Address();
        bytes_ = bytes;
    }
    template <typename T>
    LocalTensor<T> At(int64_t offset, int64_t bytes) const {
        const uint64_t address = address_ + uint64_t(offset);
        return {position, address, uint64_t(bytes), address + uint64_t(bytes)};
    }

private:
    uint64_t address_ = 0;
    int64_t bytes_ = 0;
};

struct CubeMemory {
    Share<TPosition::A1> l1;
    Share<TPosition::A2> l0a;
    Share<TPosition::B2> l0b;
    Share<TPosition::CO1> l0c;
    Share<TPosition::C2> table;
    // Ids. L1: filled by MTE2 (two of A, two of B, one of the bias); L0: filled by MTE1, freed by M; L0C: filled by M, freed by FIX.
    int8_t l1Filled[2 * kBuffers + 1], l1Freed, l0Filled[kBuffers], l0Freed[kBuffers], tableFreed, l0cFilled[kBuffers], l0cFreed[kBuffers];
    Gate l0Free[kBuffers], tableFree, l0cFree[kBuffers];
    int nextL0 = 0;
    int64_t owner = 0;   // whose matrices lie in L1: a number no two products share
    const TPipe* pipe = nullptr;

    static CubeMemory& Current() {
        std::shared_ptr<void>& held = FrameworkState::Current().cube;
        if (!held) held = std::make_shared<CubeMemory>();
        return *static_cast<CubeMemory*>(held.get());
    }
    void Reserve(TPipe& from, const Need& need, Location where) {
        const bool first = pipe != &from;
        if (first) *this = CubeMemory();   // another TPipe begins with all memory free
        pipe = &from;
        l1.Reserve(from, need.l1, where);
        l0a.Reserve(from, need.l0a, where);
        l0b.Reserve(from, need.l0b, where);
        l0c.Reserve(from, need.l0c, where);
        table.Reserve(from, need.table, where);
        if (!first) return;
        const auto take = [&](HardEvent event) { return from.AllocEventID(event, "REGIST_MATMUL_OBJ", where); };
        for (int8_t& id : l1Filled) id = take(HardEvent::MTE2_MTE1);
        l1Freed = take(HardEvent::MTE1_MTE2);
        tableFreed = take(HardEvent::M_MTE1);
        for (int i = 0; i < kBuffers; ++i) {
            l0Filled[i] = take(HardEvent::MTE1_M);
            l0Freed[i] = take(HardEvent::M_MTE1);
            l0cFilled[i] = take(HardEvent::M_FIX);
            l0cFreed[i] = take(HardEvent::FIX_M);
        }
    }
    // Waits for what is still set: flags must not outlive the kernel.
    void Drain(Location where) {
        for (Gate& gate : l0Free) gate.Pass(where);
        for (Gate& gate : l0cFree) gate.Pass(where);
        tableFree.Pass(where);
    }
};

}  // namespace sim::matmul
