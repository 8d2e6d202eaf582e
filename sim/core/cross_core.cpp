// SyncAll and cross-core flags: the only edges between cores.
#include <mutex>
#include <string>
#include <utility>

#include "sim/core/core_state.h"

namespace sim {

void Core::SyncAll(Location where, bool soft, bool withCubes) {
    if (!state_.aborted_) state_.Meet(where, soft, withCubes);
}

void CoreState::CheckMeeting(Location where, bool soft) {
    constexpr uint32_t kBatch = 1;   // SetScheduleMode: all blocks start together
    const auto warn = [&](const char* key, const std::string& message, const char* repair) {
        findings_.Add(Rule::Deadlock, where, {}, key, [&] {
            Finding finding = MakeFinding(Rule::Deadlock, Pipe::S, "SyncAll", "", message, where);
            finding.repair = repair;
            return finding;
        });
    };
    const uint32_t blocks = launch_.request.blockDim, cores = BlocksAtOnce(launch_.soc, launch_.layout);
    const std::string kind = launch_.layout.cube > 0 ? " cube cores" : " vector cores";
    if (blocks > cores)
        warn("blockDim",
             "blockDim " + std::to_string(blocks) + " exceeds the " + std::to_string(cores) + kind + " of " + launch_.soc.name +
                 ": blocks without a core never reach SyncAll",
             "set blockDim to at most the number of these cores");
    else if (!soft && launch_.request.scheduleMode != kBatch)
        warn("scheduleMode",
             "SyncAll without batch mode: the scheduler may start some of the " + std::to_string(blocks) +
                 " blocks while other kernels hold the cores of the rest, which then never reach it",
             "context->SetScheduleMode(1) in the tiling function");
    if (!soft && task_.type == KernelType::AivOnly)
        warn("taskType", "SyncAll in a kernel of type KERNEL_TYPE_AIV_ONLY, which runs without the inter-core scheduler",
             "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0)");
}

// What this core tells others: everything `pipe` has done, which is written for all to see.
Rendezvous::Arrival CoreState::Arrive(Pipe pipe, Location where) {
    Rendezvous::Arrival arrival;
    arrival.where = where;
    if (fast_ || !launch_.layout.Mixed()) return arrival;
    const Clock done = order_.AfterAll(pipe);
    if (adversarial_) pending_.RunKnown(done);
    arrival.known = learnt_.At(done.Event());
    arrival.known.Join(index_, done);
    if (!options_.checks) return arrival;
    const std::unique_lock<std::shared_mutex> lock(launch_.writtenMutex);
    gm_.Publish(&launch_.written);
    gm_.EndEpoch(false);
    return arrival;
}

InstructionId CoreState::Learn(Pipe pipe, const char* name, Location where, const Foreign& news) {
    if (fast_) return 0;
    const InstructionId event = order_.LearnOfOthers(pipe);
    learnt_.Learn(event, news);
    if (!options_.checks) return event;
    const Instruction instruction{name, pipe, Cost::Sync, 0, where, {}};
    sites_.Record(SequenceOf(event), sites_.Intern(instruction));
    const std::unique_lock<std::shared_mutex> lock(launch_.writtenMutex);
    gm_.Publish(&launch_.written);  // the epoch ends: what it wrote would not be known at the next arrival
    gm_.EndEpoch(false);
    return event;
}

void CoreState::Meet(Location where, bool soft, bool withCubes) {
    CheckMeeting(where, soft);
    core_.PipeBarrierAll(where);
    Reach("SyncAll", where);
    const bool mixed = launch_.layout.Mixed(), everyone = withCubes || !mixed;
    Rendezvous::Arrival arrival = Arrive(Pipe::S, where);   // after the barrier S knows all pipes
    arrival.where = where;
    arrival.time = timeline_.End();
    const Rendezvous::Scope scope = everyone ? Rendezvous::Scope::All : Rendezvous::Scope::Vector;
    const Rendezvous::Outcome outcome = launch_.rendezvous.Meet(
        index_, scope, &arrival,
        [this, mixed] {
            for (const CoreState* core : launch_.cores)
                if (!mixed) core->gm_.Publish(&launch_.written);
        },
        launch_.stepAside);
    if (outcome == Rendezvous::Outcome::Abandoned) AbortSilently();
    if (outcome == Rendezvous::Outcome::Deadlock) ReportDeadlock("SyncAll", where);
    timeline_.SyncAll(uint32_t(scope), arrival.time);
    if (mixed) Learn(Pipe::S, "SyncAll", where, arrival.known);
    gm_.EndEpoch(everyone);
}

void Core::CrossCoreSetFlag(int mode, Pipe pipe, int flag, Location where) {
    CoreState& s = state_;
    if (s.aborted_) return;
    s.Reach("CrossCoreSetFlag", where);
    Rendezvous::Arrival arrival = s.Arrive(pipe, where);
    arrival.time = s.timeline_.SetCross(pipe, s.index_, &arrival.signals);
    if (s.launch_.rendezvous.SetCross(s.index_, mode, flag, std::move(arrival)) || !s.options_.checks) return;
    s.findings_.Add(Rule::EventFlag, where, {}, "overflow", [&] {
        return s.MakeFinding(Rule::EventFlag, pipe, "CrossCoreSetFlag", "",
                             "flag " + std::to_string(flag) + " may be set " + std::to_string(Rendezvous::kMostSets + 1) +
                                 " times more than it was waited for, its counter ends at " + std::to_string(Rendezvous::kMostSets) +
                                 ": nothing makes this core wait for the other", where);
    });
}

void Core::CrossCoreWaitFlag(Pipe pipe, int flag, Location where) {
    CoreState& s = state_;
    if (s.aborted_) return;
    s.Reach("CrossCoreWaitFlag", where);
    Rendezvous::Arrival arrival;
    const Rendezvous::Outcome outcome = s.launch_.rendezvous.WaitCross(s.index_, flag, where, &arrival, s.launch_.stepAside);
    if (outcome == Rendezvous::Outcome::Abandoned) s.AbortSilently();
    if (outcome == Rendezvous::Outcome::Deadlock) s.ReportDeadlock("CrossCoreWaitFlag", where);
    s.timeline_.WaitCross(pipe, arrival.time, std::move(arrival.signals));
    s.launch_.rendezvous.WaitDone(s.index_, flag, s.Learn(pipe, "CrossCoreWaitFlag", where, arrival.known));
    if (s.fast_) return;
    if (const Clock* own = arrival.known.Of(s.index_)) s.order_.Wait(pipe, *own);   // what the other cores had waited for, of this one
}

void CoreState::ReportDeadlock(const char* api, Location where) {
    const auto waiting = launch_.rendezvous.Waiting();
    const auto gone = launch_.rendezvous.Gone();
    const Layout& layout = launch_.layout;
    constexpr size_t kNamed = 6;
    const std::string& call = waiting.front().call;
    bool onlySyncAll = call.rfind("SyncAll", 0) == 0, forMail = false;   // all in the same
    for (const auto& blocked : waiting) {
        onlySyncAll = onlySyncAll && blocked.call == call;
        forMail = forMail || blocked.forMail;
    }
    const bool blocksOnly = onlySyncAll && !layout.Mixed();
    const auto name = [&](uint32_t core) { return blocksOnly ? std::to_string(core) : layout.Name(core); };
    std::string message;
    if (onlySyncAll) {
        message = std::to_string(waiting.size()) + " of " + std::to_string(layout.Count()) +
                  (blocksOnly ? " blocks wait in SyncAll (block " : " cores wait in " + call + " (");
        for (size_t i = 0; i < waiting.size() && i < kNamed; ++i) message += (i ? ", " : "") + name(waiting[i].core);
        message += std::string(waiting.size() > kNamed ? ", ...)" : ")") + (blocksOnly ? " for block " : " for ");
        for (size_t i = 0; i < gone.size() && i < kNamed; ++i) message += (i ? ", " : "") + name(gone[i]);
        message += std::string(gone.size() > kNamed ? ", ..." : "") + ", which returned without it";
    } else {
        for (size_t i = 0; i < waiting.size() && i < kNamed; ++i)
            message += (i ? "; " : "") + name(waiting[i].core) + " waits in " + waiting[i].call +
                       (waiting[i].forWhom.empty() ? "" : " for " + waiting[i].forWhom);
        if (waiting.size() > kNamed) message += "; ...";
        for (size_t i = 0; i < gone.size() && i < kNamed; ++i) message += (i ? ", " : "; ") + name(gone[i]);
        if (!gone.empty()) message += " returned";
    }
    Finding finding = MakeFinding(Rule::Deadlock, Pipe::S, api, "", std::move(message), where);
    for (size_t i = 0; i < waiting.size() && i < kNamed; ++i) {
        AccessRecord record;
        record.verb = "waits";
        record.what = blocksOnly ? "block " + name(waiting[i].core) : name(waiting[i].core);
        record.instruction = waiting[i].call;
        record.file = waiting[i].where.file;
        record.line = waiting[i].where.line;
        finding.accesses.push_back(std::move(record));
    }
    if (onlySyncAll) finding.repair = "every core has to call SyncAll equally often: no return before it, idle ones included";
    else if (forMail)
        finding.repair = "a cube core that serves Matmul objects does nothing else until its vector cores have ended: it has to set what "
                         "they wait for before, and wait for nothing of theirs";
    else
        finding.repair = std::string("one CrossCoreSetFlag of the same flag for every CrossCoreWaitFlag, from every core of the mode") +
                         (layout.Mixed() ? "" : "; cube and vector cores run together by a type like KERNEL_TYPE_MIX_AIC_1_2 only");
    Abort(std::move(finding));
}

}  // namespace sim
