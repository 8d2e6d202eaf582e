// Adversarial execution: instructions are held back with what they may rely on, and run as late and in as odd an order as
// the edges between them allow.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/core/instruction.h"
#include "sim/core/order.h"

namespace sim {

class Pending {
public:
    // Seed 1 always takes the newest instruction that may run; other seeds sometimes take another one.
    Pending(uint64_t seed, uint32_t core)
        : random_(seed * 0x9E3779B97F4A7C15ull + core * 0xBF58476D1CE4E5B9ull + 1), newestOnly_(seed == 1) {}

    void Add(InstructionId id, const Clock& before, const char* name, Location where, std::unique_ptr<DeferredBody> body);
    // Runs every instruction that `view` knows to be complete, each after the ones it relies on.
    void RunKnown(const Clock& view);
    void RunAll();
    void Drop();
    // The instruction that runs, for the report of a fault in its body.
    const char* RunningName() const { return runningName_; }
    Location RunningWhere() const { return runningWhere_; }

private:
    static constexpr size_t kMost = 2048;     // held back at once; also bounds the depth of Run
    struct Entry {
        InstructionId id;
        Clock before;
        const char* name;
        Location where;
        std::unique_ptr<DeferredBody> body;   // null once it has run
    };
    struct Queue {
        std::vector<Entry> entries;           // ids ascending
        size_t first = 0;                     // everything before it has run
    };
    void RunNewestFirst(const Clock& view, bool vary);
    void Run(Queue& queue, size_t index);
    uint64_t Random();

    Queue queues_[kPipes];
    size_t held_ = 0;
    uint64_t random_;
    const bool newestOnly_;
    const char* runningName_ = nullptr;
    Location runningWhere_;
};

}  // namespace sim
