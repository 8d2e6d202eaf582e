// What a core did that takes time, in program order: the input of the replay that finds out when.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/types.h"

namespace sim {

inline constexpr int kEvents = 8;          // ids of one pair of pipes

struct Signal { uint32_t core, index; };   // the index-th cross-core flag that a core has set

struct Step {
    enum class Kind : uint8_t { Run, Transfer, SetFlag, WaitFlag, UnitFlag, Barrier, BarrierAll, SetCross, WaitCross, Meet };
    Kind kind = Kind::Run;
    Pipe pipe = Pipe::S;
    Pipe other = Pipe::S;    // UnitFlag: the pipe that waits
    uint32_t index = 0;      // Run: instructions; Transfer, WaitCross: of the log's lists; SetFlag, WaitFlag: event; Meet: scope
    // Run: instructions of one pipe in a row. It is free at max(free before + sum, S before + lead): either the pipe or the scalar
    // unit, which issues them, bounds the run.
    double sum = 0, lead = 0;
};

// Transfers a DMA engine keeps in flight: short ones are bound by latency / this. Estimate: double buffering hides it.
inline constexpr double kTransfersInFlight = 2;

struct Transfer {            // between GM and a core
    Cost cost;
    uint64_t bytes;
    uint32_t firstRegion, regions;
};

struct TimeLog {
    std::vector<Step> steps;
    std::vector<Transfer> transfers;
    std::vector<Region> regions;                     // of transfers, in GM
    std::vector<std::vector<Signal>> waits;          // of WaitCross: all that it waited for
    uint32_t signals = 0;                            // SetCross so far

    uint64_t Bytes() const {                         // of host memory, but for the signals
        return steps.capacity() * sizeof(Step) + transfers.capacity() * sizeof(Transfer) + regions.capacity() * sizeof(Region);
    }
};

}  // namespace sim
