// Time as a core keeps it while its kernel runs: what it did is logged for the replay, which alone knows L2 and the other cores. The
// clock that runs along takes every byte of GM to come from HBM, shared equally; it orders events of a launch, no more.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/core/clocks.h"
#include "sim/core/instruction.h"
#include "sim/core/launch.h"
#include "sim/core/soc.h"
#include "sim/core/time_log.h"

namespace sim {

// Costs by class. Those of GM are the running clock's: every byte from HBM.
struct CostRate {
    double cycles = 0;           // per unit of work
    double latency = 0, atLeast = 0;
    uint32_t bytes = 0;          // per unit of work
    bool ofGm = false;
};
class CostTable {
public:
    CostTable(const SocSpec& soc, uint32_t activeBlocks);
    const CostRate& operator[](Cost cost) const { return rates_[int(cost)]; }

private:
    CostRate rates_[int(Cost::Sync) + 1];
};

class Timeline {
public:
    Timeline(const SocSpec& soc, uint32_t activeBlocks, bool oneStepEach)
        : soc_(soc), costs_(soc, activeBlocks), clocks_(soc), oneStepEach_(oneStepEach) {}

    // Returns the bytes moved, 0 when the cost class does not tell.
    uint64_t Issue(const Instruction& instruction);
    uint32_t LastStep() const { return uint32_t(log_.steps.size()) - 1; }

    double SetFlag(Pipe source, uint32_t event) {
        log_.steps.push_back({Step::Kind::SetFlag, source, source, event});
        return clocks_.FlagTime(source);
    }
    void WaitFlag(Pipe destination, uint32_t event, double flag) {
        log_.steps.push_back({Step::Kind::WaitFlag, destination, destination, event});
        clocks_.Wait(destination, flag);
        Drained(destination);
    }
    void UnitFlag(Pipe source, Pipe destination) {
        log_.steps.push_back({Step::Kind::UnitFlag, source, destination});
        clocks_.Wait(destination, clocks_.FlagTime(source));
    }
    void Barrier(Pipe pipe);
    void BarrierAll() {
        log_.steps.push_back({Step::Kind::BarrierAll});
        clocks_.BarrierAll();
        Drained(Pipe::V);
    }
    // A flag for other cores; the time of its set and its name in the replay.
    double SetCross(Pipe pipe, uint32_t core, std::vector<Signal>* names) {
        log_.steps.push_back({Step::Kind::SetCross, pipe});
        names->push_back({core, log_.signals++});
        return clocks_.FlagTime(pipe);
    }
    void WaitCross(Pipe pipe, double set, std::vector<Signal> names) {
        log_.steps.push_back({Step::Kind::WaitCross, pipe, pipe, uint32_t(log_.waits.size())});
        log_.waits.push_back(std::move(names));
        clocks_.CrossFlag(pipe, set);
        Drained(pipe);
    }
    void SyncAll(uint32_t scope, double meeting) {
        log_.steps.push_back({Step::Kind::Meet, Pipe::S, Pipe::S, scope});
        clocks_.SyncAll(meeting);
        Drained(Pipe::V);
    }
    double End() const { return clocks_.End(); }
    uint64_t GmBytes() const { return gmBytes_; }
    const PipeStats& Stats(Pipe pipe) const { return stats_[int(pipe)]; }   // busy cycles without those of transfers
    const TimeLog& Log() const { return log_; }
    TimeLog TakeLog() { return std::move(log_); }

private:
    void Drained(Pipe pipe) { vectorDrained_ |= pipe == Pipe::V; }
    void Run(Pipe pipe, double cycles, double startUp);
    Step& OpenRun(Pipe pipe);

    const SocSpec& soc_;
    const CostTable costs_;
    Clocks clocks_;
    TimeLog log_;
    const bool oneStepEach_;                  // for a trace
    bool vectorDrained_ = true;               // the next vector instruction does not overlap the one before
    uint64_t gmBytes_ = 0;
    PipeStats stats_[kPipes];
};

}  // namespace sim
