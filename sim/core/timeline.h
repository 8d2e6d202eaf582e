// Modelled time of one core in cycles: a clock per pipe, the scalar unit issuing in order.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/core/instruction.h"
#include "sim/core/launch.h"
#include "sim/core/soc.h"

namespace sim {

class Timeline {
public:
    struct Span {
        double start, cycles;
        uint64_t bytes;              // 0 when the cost class does not tell
    };

    // `activeBlocks` share the bandwidth of the chip's HBM.
    Timeline(const SocSpec& soc, uint32_t activeBlocks);

    Span Issue(const Instruction& instruction) {
        const int p = int(instruction.pipe);
        const Rate& rate = rate_[int(instruction.cost)];
        const double work = double(instruction.work);
        PipeStats& stats = stats_[p];
        ++stats.instructions;
        const uint64_t bytes = instruction.work * rate.bytes;
        stats.bytes += bytes;
        if (rate.ofGm) gmBytes_ += bytes;
        time_[int(Pipe::S)] += soc_.issueCycles;
        double start = std::max(time_[p], time_[int(Pipe::S)]);
        if (instruction.pipe == Pipe::V && vectorDrained_) {
            start += soc_.vectorStartCycles;
            vectorDrained_ = false;
        }
        const double cycles = std::max(work * rate.cycles, rate.atLeast);
        time_[p] = start + cycles;
        done_[p] = std::max(done_[p], time_[p] + rate.latency);
        stats.busyCycles += cycles;
        return {start, cycles, bytes};
    }

    double FlagTime(Pipe source) {            // when everything issued so far on the pipe has completed
        time_[int(Pipe::S)] += soc_.issueCycles;
        return std::max({time_[int(source)], done_[int(source)], time_[int(Pipe::S)]});
    }
    void Wait(Pipe destination, double flag) {
        time_[int(Pipe::S)] += soc_.issueCycles;
        Advance(destination, flag + soc_.syncCycles);
    }
    void Barrier(Pipe pipe) {
        time_[int(Pipe::S)] += soc_.issueCycles;
        Advance(pipe, done_[int(pipe)]);
    }
    void BarrierAll() { StartAllAt(End() + soc_.syncCycles); }
    void CrossFlag(Pipe pipe, double set) { Advance(pipe, set + soc_.crossFlagCycles); }
    void SyncAll(double meeting) { StartAllAt(meeting + soc_.syncAllCycles); }
    double End() const;
    uint64_t GmBytes() const { return gmBytes_; }
    // Cycles in which a block's share of HBM lets bytes through.
    double HbmCycles(uint64_t bytes) const { return double(bytes) / hbmBytesPerCycle_; }
    const PipeStats& Stats(Pipe pipe) const { return stats_[int(pipe)]; }

private:
    struct Rate {
        double cycles = 0;           // per unit of work
        double latency = 0, atLeast = 0;
        uint32_t bytes = 0;          // per unit of work
        bool ofGm = false;
    };
    void Advance(Pipe pipe, double time) {
        time_[int(pipe)] = std::max(time_[int(pipe)], time);
        if (pipe == Pipe::V) vectorDrained_ = true;
    }
    void StartAllAt(double time) {
        for (int p = 0; p < kPipes; ++p) Advance(Pipe(p), time);
    }

    const SocSpec& soc_;
    const double hbmBytesPerCycle_;           // of this core's block
    Rate rate_[int(Cost::Sync) + 1];
    double time_[kPipes] = {};                // the pipe is free
    double done_[kPipes] = {};                // its last result is there
    bool vectorDrained_ = true;               // the next vector instruction does not overlap the one before
    uint64_t gmBytes_ = 0;
    PipeStats stats_[kPipes];
};

}  // namespace sim
