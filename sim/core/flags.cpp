// SetFlag / WaitFlag / PipeBarrier / SyncAll: the only edges between pipes and cores.
#include <string>

#include "sim/core/core_state.h"

namespace sim {
namespace {

std::string EventName(Pipe source, Pipe destination) { return std::string(PipeName(source)) + "_" + PipeName(destination); }
bool OnVectorCore(Pipe pipe) { return pipe == Pipe::S || pipe == Pipe::V || pipe == Pipe::MTE2 || pipe == Pipe::MTE3; }

}  // namespace

// The 13 events of a vector core are the pairs of its pipes, but of the pairs of a pipe with itself only V_V (facts 2.2).
void CoreState::CheckEvent(const char* api, Pipe source, Pipe destination, int id, Location where) {
    const bool idExists = id >= 0 && id < kEvents;
    const bool pairExists = OnVectorCore(source) && OnVectorCore(destination) && (source != destination || source == Pipe::V);
    if (idExists && pairExists) return;
    const std::string event = EventName(source, destination);
    if (!idExists)
        Abort(MakeFinding(Rule::EventFlag, Pipe::S, api, event.c_str(),
                          event + " event id " + std::to_string(id) + " is outside 0.." + std::to_string(kEvents - 1), where));
    findings_.Add(Rule::PipeLegality, where, {}, api, [&] {
        return MakeFinding(Rule::PipeLegality, Pipe::S, api, event.c_str(), "a vector core has no " + event + " event", where);
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
    flag.time = s.timeline_.FlagTime(source);
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
    s.timeline_.Wait(destination, flag.time);
    if (s.fast_) return;
    s.order_.Wait(destination, flag.clock);
    if (destination == Pipe::S) FlushBefore(Pipe::S);   // scalar code may now look at the bytes without an instruction
}

bool Core::FlagIsSet(Pipe source, Pipe destination, int id) const {
    return id >= 0 && id < CoreState::kEvents && state_.FlagOf(source, destination, id).set;
}

void Core::PipeBarrier(Pipe pipe, Location where) {
    CoreState& s = state_;
    if (s.aborted_) return;
    s.Reach("PipeBarrier", where);
    if (!OnVectorCore(pipe) || pipe == Pipe::S) {
        s.findings_.Add(Rule::PipeLegality, where, {}, "PipeBarrier", [&] {
            return s.MakeFinding(Rule::PipeLegality, Pipe::S, "PipeBarrier", "",
                                 pipe == Pipe::S ? "PipeBarrier<PIPE_S> does not exist: the scalar pipe is in order"
                                                 : std::string("a vector core has no ") + PipeName(pipe) + " pipe",
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

void Core::SyncAll(Location where, bool soft) {
    if (!state_.aborted_) state_.Meet(where, soft);
}

void CoreState::Meet(Location where, bool soft) {
    constexpr int kAivOnly = 1;   // SetTaskType code of KERNEL_TYPE_AIV_ONLY
    constexpr uint32_t kBatch = 1;   // SetScheduleMode: all blocks start together
    const auto warn = [&](const char* key, const std::string& message, const char* repair) {
        findings_.Add(Rule::Deadlock, where, {}, key, [&] {
            Finding finding = MakeFinding(Rule::Deadlock, Pipe::S, "SyncAll", "", message, where);
            finding.repair = repair;
            return finding;
        });
    };
    const uint32_t blocks = launch_.request.blockDim, cores = launch_.soc.vectorCores;
    if (blocks > cores)
        warn("blockDim",
             "blockDim " + std::to_string(blocks) + " exceeds the " + std::to_string(cores) + " vector cores of " +
                 launch_.soc.name + ": blocks without a core never reach SyncAll",
             "set blockDim to at most the number of vector cores");
    else if (!soft && launch_.request.scheduleMode != kBatch)
        warn("scheduleMode",
             "SyncAll without batch mode: the scheduler may start some of the " + std::to_string(blocks) +
                 " blocks while other kernels hold the cores of the rest, which then never reach it",
             "context->SetScheduleMode(1) in the tiling function");
    if (!soft && taskType_ == kAivOnly)
        warn("taskType", "SyncAll in a kernel of type KERNEL_TYPE_AIV_ONLY, which runs without the inter-core scheduler",
             "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0)");

    core_.PipeBarrierAll(where);
    Reach("SyncAll", where);
    double time = timeline_.End();
    const Rendezvous::Outcome outcome = launch_.rendezvous.Meet(
        block_, where, &time,
        [this] {
            for (const CoreState* core : launch_.cores) core->gm_.Publish(&launch_.written);
        },
        launch_.stepAside);
    if (outcome == Rendezvous::Outcome::Abandoned) AbortSilently();
    if (outcome == Rendezvous::Outcome::Deadlock) {
        const auto waiting = launch_.rendezvous.Waiting();
        const auto gone = launch_.rendezvous.Gone();
        std::string message = std::to_string(waiting.size()) + " of " + std::to_string(blocks) +
                              " blocks wait in SyncAll (block " + std::to_string(waiting.front().core);
        for (size_t i = 1; i < waiting.size() && i < 4; ++i) message += ", " + std::to_string(waiting[i].core);
        message += std::string(waiting.size() > 4 ? ", ...)" : ")") + " for block " + std::to_string(gone.front());
        for (size_t i = 1; i < gone.size() && i < 4; ++i) message += ", " + std::to_string(gone[i]);
        message += std::string(gone.size() > 4 ? ", ..." : "") + ", which returned without it";
        Finding finding = MakeFinding(Rule::Deadlock, Pipe::S, "SyncAll", "", std::move(message), where);
        for (size_t i = 0; i < waiting.size() && i < 4; ++i) {
            AccessRecord record;
            record.verb = "waits";
            record.what = "block " + std::to_string(waiting[i].core);
            record.instruction = "SyncAll";
            record.file = waiting[i].where.file;
            record.line = waiting[i].where.line;
            finding.accesses.push_back(std::move(record));
        }
        finding.repair = "every block has to call SyncAll equally often: no return before it, idle blocks included";
        Abort(std::move(finding));
    }
    timeline_.SyncAll(time);
    gm_.EndEpoch();
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
