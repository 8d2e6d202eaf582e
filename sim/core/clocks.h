// Modelled time of one core in cycles: a clock per pipe, the scalar unit issuing in order.
#pragma once

#include <algorithm>

#include "sim/core/soc.h"
#include "sim/core/types.h"

namespace sim {

class Clocks {
public:
    explicit Clocks(const SocSpec& soc) : soc_(&soc) {}

    // When an instruction that is issued now would start.
    double Start(Pipe pipe) const { return std::max(time_[int(pipe)], time_[int(Pipe::S)] + soc_->issueCycles); }
    // It holds its pipe until `end`; its result is there `latency` later.
    void Occupy(Pipe pipe, double end, double latency) {
        Issued(1);
        time_[int(pipe)] = end;
        done_[int(pipe)] = std::max(done_[int(pipe)], end + latency);
    }
    // `count` instructions of one pipe in a row, see Step::lead.
    void Occupy(Pipe pipe, uint32_t count, double sum, double lead) {
        double& time = time_[int(pipe)];
        const double begin = time_[int(Pipe::S)];
        Issued(count);
        time = pipe == Pipe::S ? time + sum : std::max(time + sum, begin + lead);
        done_[int(pipe)] = std::max(done_[int(pipe)], time);
    }
    double FlagTime(Pipe source) {            // when everything issued so far on the pipe has completed
        Issued(1);
        return std::max({time_[int(source)], done_[int(source)], time_[int(Pipe::S)]});
    }
    void Wait(Pipe destination, double flag) {
        Issued(1);
        Advance(destination, flag + soc_->syncCycles);
    }
    void Barrier(Pipe pipe) {
        Issued(1);
        Advance(pipe, done_[int(pipe)]);
    }
    void BarrierAll() { StartAllAt(End() + soc_->syncCycles); }
    void CrossFlag(Pipe pipe, double set) { Advance(pipe, set + soc_->crossFlagCycles); }
    void SyncAll(double meeting) { StartAllAt(meeting + soc_->syncAllCycles); }
    void StartAllAt(double time) {
        for (int p = 0; p < kPipes; ++p) Advance(Pipe(p), time);
    }
    double End() const {
        double end = 0;
        for (int p = 0; p < kPipes; ++p) end = std::max({end, time_[p], done_[p]});
        return end;
    }

private:
    void Issued(uint32_t count) { time_[int(Pipe::S)] += count * soc_->issueCycles; }
    void Advance(Pipe pipe, double time) { time_[int(pipe)] = std::max(time_[int(pipe)], time); }

    const SocSpec* soc_;
    double time_[kPipes] = {};                // the pipe is free
    double done_[kPipes] = {};                // its last result is there
};

}  // namespace sim
