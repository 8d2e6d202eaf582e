// SetFlag / WaitFlag / PipeBarrier: the only edges between the pipes of a core.
#include <string>

#include "sim/core/core_state.h"

namespace sim {
namespace {

std::string EventName(Pipe source, Pipe destination) { return std::string(PipeName(source)) + "_" + PipeName(destination); }

}  // namespace

// The 13 events of a vector core are the pairs of its pipes, but of the pairs of a pipe with itself only V_V; the 24 of a cube core
// are those without V (facts 2.2).
void CoreState::CheckEvent(const char* api, Pipe source, Pipe destination, int id, Location where) {
    const bool idExists = id >= 0 && id < kEvents;
    const bool pairExists = HasPipe(source) && HasPipe(destination) &&
                            (source != destination || source == Pipe::V || source == Pipe::FIX);
    if (idExists && pairExists) return;
    const std::string event = EventName(source, destination);
    if (!idExists)
        Abort(MakeFinding(Rule::EventFlag, Pipe::S, api, event.c_str(),
                          event + " event id " + std::to_string(id) + " is outside 0.." + std::to_string(kEvents - 1), where));
    findings_.Add(Rule::PipeLegality, where, {}, api, [&] {
        return MakeFinding(Rule::PipeLegality, Pipe::S, api, event.c_str(), std::string(Kind()) + " has no " + event + " event", where);
    });
}

void Core::SetFlag(Pipe source, Pipe destination, int id, Location where) {
    CoreState& s = state_;
    if (s.aborted_) return;
    s.Reach("SetFlag", where);
    s.CheckEvent("SetFlag", source, destination, id, where);
    CoreState::Flag& flag = s.FlagOf(source, destination, id);
    if (flag.set) {
        s.findings_.Add(Rule::EventFlag, where, flag.where, "set", [&] {
            Finding finding = s.MakeFinding(Rule::EventFlag, source, "SetFlag", "",
                                            EventName(source, destination) + " flag " + std::to_string(id) +
                                                " is set while it is still set by " + flag.where.file + ":" +
                                                std::to_string(flag.where.line),
                                            where);
            finding.repair = "one WaitFlag for every SetFlag of the same event and id";
            return finding;
        });
    }
    flag.set = true;
    flag.where = where;
    flag.time = s.timeline_.SetFlag(source, s.EventOf(source, destination, id));
    if (!s.fast_) flag.clock = s.order_.AfterAll(source);
}

void Core::WaitFlag(Pipe source, Pipe destination, int id, Location where) {
    CoreState& s = state_;
    if (s.aborted_) return;
    s.Reach("WaitFlag", where);
    s.CheckEvent("WaitFlag", source, destination, id, where);
    CoreState::Flag& flag = s.FlagOf(source, destination, id);
    if (!flag.set) {
        // A block is one instruction stream: a SetFlag that has not been issued yet is behind this wait.
        Finding finding = s.MakeFinding(Rule::EventFlag, destination, "WaitFlag", "",
                                        EventName(source, destination) + " flag " + std::to_string(id) +
                                            " is not set and nothing can set it any more: " + PipeName(destination) +
                                            " waits for ever",
                                        where);
        finding.repair = "SetFlag of the same event and id before this WaitFlag";
        s.Abort(std::move(finding));
    }
    flag.set = false;
    s.timeline_.WaitFlag(destination, s.EventOf(source, destination, id), flag.time);
    if (s.fast_) return;
    s.order_.Wait(destination, flag.clock);
    if (destination == Pipe::S) FlushBefore(Pipe::S);   // scalar code may now look at the bytes without an instruction
}

bool Core::FlagIsSet(Pipe source, Pipe destination, int id) const {
    return id >= 0 && id < kEvents && state_.FlagOf(source, destination, id).set;
}

void Core::PipeBarrier(Pipe pipe, Location where) {
    CoreState& s = state_;
    if (s.aborted_) return;
    s.Reach("PipeBarrier", where);
    if (!s.HasPipe(pipe) || pipe == Pipe::S) {
        s.findings_.Add(Rule::PipeLegality, where, {}, "PipeBarrier", [&] {
            return s.MakeFinding(Rule::PipeLegality, Pipe::S, "PipeBarrier", "",
                                 pipe == Pipe::S ? "PipeBarrier<PIPE_S> does not exist: the scalar pipe is in order"
                                                 : std::string(s.Kind()) + " has no " + PipeName(pipe) + " pipe",
                                 where);
        });
    }
    s.timeline_.Barrier(pipe);
    if (!s.fast_) s.order_.Barrier(pipe);
}

void Core::PipeBarrierAll(Location where) {
    CoreState& s = state_;
    if (s.aborted_) return;
    s.Reach("PipeBarrier", where);
    s.timeline_.BarrierAll();
    if (s.fast_) return;
    s.order_.BarrierAll();
    FlushBefore(Pipe::S);
}

void Core::UnitFlag(Pipe source, Pipe destination) {
    CoreState& s = state_;
    if (s.aborted_) return;
    s.timeline_.UnitFlag(source, destination);
    if (!s.fast_) s.order_.Wait(destination, s.order_.AfterAll(source));
}

void CoreState::ReportFlagsLeftSet() {
    for (int source = 0; source < kPipes; ++source)
        for (int destination = 0; destination < kPipes; ++destination)
            for (int id = 0; id < kEvents; ++id) {
                const Flag& flag = FlagOf(Pipe(source), Pipe(destination), id);
                if (!flag.set) continue;
                findings_.Add(Rule::EventFlag, flag.where, {}, "left set", [&] {
                    Finding finding = MakeFinding(Rule::EventFlag, Pipe(source), "SetFlag", "",
                                                  EventName(Pipe(source), Pipe(destination)) + " flag " + std::to_string(id) +
                                                      " is still set when the kernel ends",
                                                  flag.where);
                    finding.repair = "a WaitFlag of the same event and id before the kernel ends";
                    return finding;
                });
            }
}

}  // namespace sim
