#include "sim/core/replay.h"

#include <algorithm>

#include "sim/core/timeline.h"

namespace sim {
namespace {
double PerCycle(const SocSpec& soc, double bytesPerSecond) { return bytesPerSecond / double(soc.clockHz); }
}  // namespace

Replay::Replay(const SocSpec& soc, const Layout& layout, const GmTensors& tensors, uint32_t activeBlocks, std::vector<TimeLog> logs,
               bool spans)
    : soc_(soc), layout_(layout), places_(tensors), activeBlocks_(activeBlocks), logs_(std::move(logs)), spans_(spans), l2_(soc.l2Bytes),
      hbm_(PerCycle(soc, soc.hbmBytesPerSecond)), l2Bandwidth_(PerCycle(soc, soc.l2BytesPerSecond)),
      players_(layout.Count(), Player(soc)), times_(layout.Count()), running_(layout.blocks, layout.PerBlock()) {
    for (uint32_t core = 0; core < layout_.Count(); ++core) {
        players_[core].events.assign(size_t(kPipes * kPipes * kEvents), 0);
        if (spans_) times_[core].spans.resize(logs_[core].steps.size());
    }
}

double Replay::End() const {
    double end = 0;
    for (const CoreTime& time : times_) end = std::max(end, time.end);
    return end;
}

void Replay::Start(uint32_t block, double time) {
    for (uint32_t i = 0; i < layout_.PerBlock(); ++i) {
        const uint32_t core = block * layout_.PerBlock() + i;
        players_[core].clocks.StartAllAt(time);
        ready_.push_back(core);
    }
}

void Replay::StartNext(double time) {
    if (nextBlock_ < layout_.blocks) Start(nextBlock_++, time);
}

void Replay::Run() {
    while (nextBlock_ < std::min(activeBlocks_, layout_.blocks)) StartNext(0);
    for (;;) {
        while (!ready_.empty()) {
            const uint32_t core = ready_.back();
            ready_.pop_back();
            Advance(core);
        }
        if (!due_.empty()) {
            const uint32_t core = due_.top().second;
            due_.pop();
            Move(core);
        } else if (nextBlock_ < layout_.blocks) {
            StartNext(0);   // the cores that run wait for one that has no core yet: reported as a deadlock
        } else {
            break;
        }
    }
    for (uint32_t core = 0; core < layout_.Count(); ++core)   // of a launch that stopped: what it waited for never came
        if (!players_[core].over) times_[core].end = players_[core].clocks.End();
}

void Replay::Advance(uint32_t core) {
    Player& player = players_[core];
    const std::vector<Step>& steps = logs_[core].steps;
    while (player.next < steps.size()) {
        const Step& step = steps[player.next];
        if (step.kind == Step::Kind::Transfer) {
            due_.push({player.clocks.Start(step.pipe), core});
            return;
        }
        if (!Pass(core, step)) return;
        ++player.next;
    }
    Leave(core);
}

void Replay::Leave(uint32_t core) {
    Player& player = players_[core];
    if (player.over) return;
    player.over = true;
    times_[core].end = player.clocks.End();
    const uint32_t block = layout_.BlockOf(core);
    if (--running_[block] > 0) return;
    double end = 0;
    for (uint32_t i = 0; i < layout_.PerBlock(); ++i) end = std::max(end, times_[block * layout_.PerBlock() + i].end);
    StartNext(end);
}

// Everything but transfers. False: the core has to wait for others.
bool Replay::Pass(uint32_t core, const Step& step) {
    Player& player = players_[core];
    Clocks& clocks = player.clocks;
    switch (step.kind) {
        case Step::Kind::Run:
            if (spans_) times_[core].spans[player.next] = {clocks.Start(step.pipe), step.sum};
            clocks.Occupy(step.pipe, step.index, step.sum, step.lead);
            return true;
        case Step::Kind::SetFlag: player.events[step.index] = clocks.FlagTime(step.pipe); return true;
        case Step::Kind::WaitFlag: clocks.Wait(step.pipe, player.events[step.index]); return true;
        case Step::Kind::UnitFlag: clocks.Wait(step.other, clocks.FlagTime(step.pipe)); return true;
        case Step::Kind::Barrier: clocks.Barrier(step.pipe); return true;
        case Step::Kind::BarrierAll: clocks.BarrierAll(); return true;
        case Step::Kind::SetCross:
            player.sets.push_back(clocks.FlagTime(step.pipe));
            ready_.insert(ready_.end(), player.waiters.begin(), player.waiters.end());
            player.waiters.clear();
            return true;
        case Step::Kind::WaitCross: return WaitCross(core, step);
        case Step::Kind::Meet: return Meet(core, step.index);
        default: return true;
    }
}

bool Replay::WaitCross(uint32_t core, const Step& step) {
    double set = 0;
    for (const Signal& signal : logs_[core].waits[step.index]) {
        Player& setter = players_[signal.core];
        if (setter.sets.size() <= signal.index) {
            setter.waiters.push_back(core);
            return false;
        }
        set = std::max(set, setter.sets[signal.index]);
    }
    players_[core].clocks.CrossFlag(step.pipe, set);
    return true;
}

// The last to come lets all go.
bool Replay::Meet(uint32_t core, uint32_t scope) {
    Meeting& meeting = meetings_[scope];
    const auto member = [&](uint32_t other) { return scope == 1 || !layout_.IsCube(other); };
    meeting.time = std::max(meeting.time, players_[core].clocks.End());
    if (++meeting.here < (scope == 1 ? layout_.Count() : layout_.blocks * layout_.vector)) return false;
    for (uint32_t other = 0; other < layout_.Count(); ++other) {
        if (!member(other)) continue;
        players_[other].clocks.SyncAll(meeting.time);
        if (other == core) continue;
        ++players_[other].next;
        ready_.push_back(other);
    }
    meeting = {0, meeting.time};
    return true;
}

double Replay::Rate(Cost cost) const {
    return cost == Cost::GmToLocal ? soc_.gmReadBytesPerCycle
                                   : cost == Cost::L0cToGm ? soc_.l0cToGmBytesPerCycle : soc_.gmWriteBytesPerCycle;
}

// A core's own path to HBM and to L2, one after the other, and what it gets of the bandwidth of both.
double Replay::EndOfTransfer(const TimeLog& log, const Transfer& transfer, double start, bool onCube) {
    const bool reads = transfer.cost == Cost::GmToLocal;
    uint64_t missed = transfer.regions == 0 ? transfer.bytes : 0;
    l2_.Begin();
    for (uint32_t i = 0; i < transfer.regions; ++i) {
        Region region = log.regions[transfer.firstRegion + i];
        region.start = places_.Of(region.start);
        missed += reads ? l2_.Read(region) : l2_.Write(region);
    }
    missed = std::min(missed, transfer.bytes);
    const uint64_t hit = transfer.bytes - missed;
    hbmBytes_ += missed;
    l2Bytes_ += hit;
    const double rate = Rate(transfer.cost);
    const double l2Rate = reads ? (onCube ? soc_.l2CubeReadBytesPerCycle : soc_.l2VectorReadBytesPerCycle) : rate;
    const double alone = start + double(missed) / rate + double(hit) / l2Rate;
    const double hbm = hbm_.Take(start, double(missed), rate);
    const double l2 = l2Bandwidth_.Take(start, double(transfer.bytes), l2Rate);
    const double end = std::max({alone, hbm, l2, reads ? l2_.There() : start});
    l2_.End(end);
    return end;
}

void Replay::Move(uint32_t core) {
    Player& player = players_[core];
    const Step& step = logs_[core].steps[player.next];
    const double start = player.clocks.Start(step.pipe);
    const double moved = EndOfTransfer(logs_[core], logs_[core].transfers[step.index], start, layout_.IsCube(core));
    const double end = std::max(moved, start + soc_.gmLatencyCycles / kTransfersInFlight);
    player.clocks.Occupy(step.pipe, end, soc_.gmLatencyCycles);
    times_[core].busy[int(step.pipe)] += end - start;
    if (spans_) times_[core].spans[player.next] = {start, end - start};
    ++player.next;
    ready_.push_back(core);
}

}  // namespace sim
