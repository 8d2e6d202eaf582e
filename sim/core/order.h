// Which instructions are known to be complete when another one starts: one vector clock per pipe.
//
// An instruction id grows in issue order within a core and carries its pipe in the low bits, so an entry of a clock is the
// greatest id of that pipe known to be complete. Edges are flags, barriers and the in-order scalar unit, nothing else.
#pragma once

#include <cstdint>

#include "sim/core/types.h"

namespace sim {

using InstructionId = uint32_t;
inline constexpr int kPipeBits = 3;
static_assert(kPipes < 1 << kPipeBits, "the pipe fits in an id, and so does one more kind of event");
constexpr Pipe PipeOf(InstructionId id) { return Pipe(id & ((1u << kPipeBits) - 1)); }
constexpr InstructionId MakeId(uint32_t sequence, Pipe pipe) { return sequence << kPipeBits | uint32_t(pipe); }
constexpr uint32_t SequenceOf(InstructionId id) { return id >> kPipeBits; }
inline constexpr uint32_t kMaxSequence = (1u << (32 - kPipeBits)) - 2;

struct Clock {
    InstructionId known[1 << kPipeBits] = {};
    void Join(const Clock& other) {
        for (int i = 0; i < 1 << kPipeBits; ++i)
            if (known[i] < other.known[i]) known[i] = other.known[i];
    }
    bool Knows(InstructionId id) const { return id <= known[id & ((1u << kPipeBits) - 1)]; }
    InstructionId Event() const { return known[kPipes]; }   // the last event that taught it about other cores
};

class Order {
public:
    // Ids up to `sequence` belong to earlier launches and count as complete.
    void Start(uint32_t sequence, bool vectorOrdered) {
        sequence_ = sequence;
        inOrder_[int(Pipe::S)] = inOrder_[int(Pipe::M)] = true;
        inOrder_[int(Pipe::V)] = vectorOrdered;
        for (int p = 0; p < kPipes; ++p)
            for (int q = 0; q < kPipes; ++q) clock_[p].known[q] = MakeId(sequence, Pipe(q));
        for (int p = 0; p < kPipes; ++p) last_[p] = MakeId(sequence, Pipe(p));
    }
    uint32_t Sequence() const { return sequence_; }

    // What the next instruction of `pipe` may rely on: what its pipe waited for, and what the scalar unit waited for before
    // it issues the instruction.
    Clock Before(Pipe pipe, bool selfOrdered = true) {
        Clock& clock = clock_[int(pipe)];
        clock.Join(clock_[int(Pipe::S)]);
        Clock view = clock;
        if (inOrder_[int(pipe)] && selfOrdered) view.known[int(pipe)] = last_[int(pipe)];
        return view;
    }
    InstructionId Issue(Pipe pipe) { return last_[int(pipe)] = MakeId(++sequence_, pipe); }

    // State of a flag: everything issued on the source pipe so far is complete, and what those instructions relied on.
    Clock AfterAll(Pipe source) {
        Clock clock = Before(source);
        clock.known[int(source)] = last_[int(source)];
        return clock;
    }
    void Wait(Pipe destination, const Clock& flag) { clock_[int(destination)].Join(flag); }
    void Barrier(Pipe pipe) { clock_[int(pipe)].known[int(pipe)] = last_[int(pipe)]; }
    // `pipe` has waited for other cores: whatever it knows then of them goes by the id of this event.
    InstructionId LearnOfOthers(Pipe pipe) { return clock_[int(pipe)].known[kPipes] = MakeId(++sequence_, Pipe(kPipes)); }
    void BarrierAll() {
        for (int p = 0; p < kPipes; ++p)
            for (int q = 0; q < kPipes; ++q) clock_[p].known[q] = last_[q];
    }

private:
    uint32_t sequence_ = 0;
    bool inOrder_[kPipes] = {};
    Clock clock_[kPipes];
    InstructionId last_[kPipes] = {};
};

}  // namespace sim
