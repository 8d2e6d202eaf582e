#include <algorithm>
#include <atomic>
#include <cfenv>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>

#include "sim/core/await.h"
#include "sim/core/core_state.h"
#include "sim/core/current_core.h"
#include "sim/core/faults.h"
#include "sim/core/host_thread.h"
#include "sim/core/launch.h"
#include "sim/core/replay.h"
#include "sim/core/text.h"

namespace sim {
namespace {

void RunKernel(void* argument) {
    CoreState& core = *static_cast<CoreState*>(argument);
    const LaunchRequest& request = core.Request();
    try {
        request.invoke(request.argv.data());
        core.KernelReturned();
    } catch (const KernelAbort&) {
    } catch (const std::exception& error) {
        core.KernelThrew(error.what());
    } catch (...) {
        core.KernelThrew("an object that is no std::exception");
    }
}

// False when a fault cut through the kernel's frames: whatever they left in thread-local state is unknown.
bool RunCore(LaunchState& launch, uint32_t index) {
    CoreState core(launch, index);
    Fault fault;
    {
        const CurrentCore current(&core.Api());
        fault = RunGuarded(RunKernel, &core);
        if (fault.signal != 0) core.KernelFaulted(fault);
    }
    launch.results[index] = core.Result();
    launch.rendezvous.Leave(index, core.Aborted());
    return fault.signal == 0;
}

std::runtime_error HostRanOut(const std::string& lacks, const LaunchRequest& request) {
    return std::runtime_error(request.op + ": the host ran out of " + lacks + " while it simulated " + std::to_string(request.blockDim) +
                              " blocks; fewer host threads need less");
}

// Host threads that take the next core until none is left. A core that waits for others keeps its thread, so another thread
// takes its place while cores remain.
class Workers {
public:
    explicit Workers(LaunchState& launch) : launch_(launch) {
        launch_.stepAside = [this] { StartOne(); };
    }
    // Throws std::runtime_error when the host has too little memory or threads.
    void RunAll(uint32_t threads) {
        for (uint32_t i = 0; i < threads; ++i) StartOne();
        AwaitAll();
        if (!lacks_.empty()) throw HostRanOut(lacks_, launch_.request);
    }

private:
    void AwaitAll() {
        std::unique_lock<std::mutex> lock(mutex_);
        const auto ended = [this] { return working_ == 0; };   // threads start threads only while they work
        AwaitAwake(lock, ended);
        ended_.wait(lock, ended);
    }
    void StartOne() {
        if (next_.load() >= launch_.layout.Count()) return;
        ++working_;
        try {
            RunOnHostThread([this] { return Work(); });
            return;
        } catch (const std::system_error&) {
            GiveUp("threads");
        } catch (const std::bad_alloc&) {
            GiveUp("memory");
        }
        Ended();
    }
    // Cores that have not begun never will: whoever waits for them in SyncAll is let go.
    void GiveUp(const char* lacks) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            if (lacks_.empty()) lacks_ = lacks;
        }
        for (uint32_t index; (index = next_.fetch_add(1)) < launch_.layout.Count();)
            launch_.rendezvous.Leave(index, /*failed=*/true);
    }
    // False when the thread must not run another core.
    bool RunOrGiveUp(uint32_t index) {
        try {
            return RunCore(launch_, index);
        } catch (const std::bad_alloc&) {   // the core's memory, or its result
            launch_.rendezvous.Leave(index, /*failed=*/true);
            GiveUp("memory");
            return true;
        }
    }
    void Ended() {
        std::lock_guard<std::mutex> lock(mutex_);   // RunAll must not return before this has let go of it
        if (--working_ == 0) ended_.notify_one();
    }
    // False when the thread must not be used again.
    bool Work() {
        bool clean = true;
        try {
            thread_local const AlternateStack stack;
            clean = RunCores();
        } catch (const std::bad_alloc&) {
            GiveUp("memory");
        }
        Ended();
        return clean;
    }
    bool RunCores() {
        std::fesetenv(FE_DFL_ENV);   // the caller may flush denormals; the chip's arithmetic does not depend on it
        for (;;) {
            launch_.rendezvous.AcquirePermit();
            const uint32_t index = next_.fetch_add(1);
            const bool another = index < launch_.layout.Count();
            const bool clean = !another || RunOrGiveUp(index);
            launch_.rendezvous.ReleasePermit();
            if (!clean) StartOne();   // a fresh thread goes on
            if (!clean || !another) return clean;
        }
    }

    LaunchState& launch_;
    std::atomic<uint32_t> next_{0};
    std::mutex mutex_;
    std::condition_variable ended_;
    std::atomic<uint32_t> working_{0};   // threads; its last decrement is under the mutex
    std::string lacks_;   // what the host ran out of
};

std::vector<Finding> CoreConflictFindings(const LaunchState& launch, std::vector<CoreResult>& results) {
    std::vector<std::vector<EpochLog>> epochs;
    std::vector<Sites> sites;
    std::vector<ForeignLog> learnt;
    for (CoreResult& result : results) {
        learnt.push_back(std::move(result.learnt));
        epochs.push_back(std::move(result.epochs));
        sites.push_back(std::move(result.sites));
    }
    const Layout& layout = launch.layout;
    std::vector<Finding> findings;
    if (launch.request.options.ignoredRules >> int(Rule::CoreConflict) & 1) return findings;
    for (const CoreConflict& conflict : FindCoreConflicts(epochs, sites, learnt)) {
        const GmTensor* tensor = launch.tensors.Find(conflict.begin);
        const uint64_t base = tensor != nullptr ? tensor->begin : 0;
        const std::string name = tensor != nullptr ? tensor->name : "GM";
        Finding finding;
        finding.rule = Rule::CoreConflict;
        for (const CoreConflict::Side& side : {conflict.first, conflict.second}) {
            const Site& site = sites[side.core][side.site];
            AccessRecord record;
            record.pipe = site.pipe;
            record.verb = side.kind == GmCore::Kind::Read ? "reads" : side.kind == GmCore::Kind::Write ? "writes" : "adds to";
            record.what = name + " on " + layout.Name(side.core);
            record.memory = Memory::GM;
            record.begin = conflict.begin - base;
            record.end = conflict.end - base;
            record.instruction = site.instruction;
            record.file = site.where.file;
            record.line = site.where.line;
            finding.core = side.core;
            finding.pipe = site.pipe;
            finding.instruction = record.instruction;
            finding.file = record.file;
            finding.line = record.line;
            finding.accesses.push_back(std::move(record));
        }
        finding.message = (layout.Mixed() ? layout.Name(conflict.first.core) + " and " + layout.Name(conflict.second.core)
                                          : "cores " + std::to_string(conflict.first.core) + " and " +
                                                std::to_string(conflict.second.core)) +
                          " both touch " + name + " " + ByteRange(conflict.begin - base, conflict.end - base) +
                          (layout.Mixed() ? " with no cross-core flag or SyncAll between" : " with no SyncAll between");
        finding.repair = layout.Mixed() ? "CrossCoreSetFlag with the pipe that touches them first, CrossCoreWaitFlag before the other"
                                        : "give each core its own bytes (exact length in DataCopyPad) or put SyncAll between";
        finding.times = conflict.times;
        findings.push_back(std::move(finding));
    }
    return findings;
}

// A flag that is still set disturbs the next kernel.
std::vector<Finding> FlagsLeftSet(const LaunchState& launch) {
    std::vector<Finding> findings;
    for (uint32_t core = 0; core < launch.layout.Count(); ++core)
        for (const auto& [flag, where] : launch.rendezvous.FlagsLeftSet(core)) {
            Finding finding;
            finding.rule = Rule::EventFlag;
            finding.core = core;
            finding.instruction = "CrossCoreSetFlag";
            finding.message = "cross-core flag " + std::to_string(flag) + " of " + launch.layout.Name(core) +
                              " is still set when the kernel ends";
            finding.repair = "a CrossCoreWaitFlag for every CrossCoreSetFlag";
            finding.file = where.file;
            finding.line = where.line;
            findings.push_back(std::move(finding));
        }
    return findings;
}

// When everything happened, from the logs of all cores.
void TellTime(LaunchState& launch, LaunchReport& report) {
    std::vector<TimeLog> logs;
    for (CoreResult& result : launch.results) logs.push_back(std::move(result.log));
    Replay replay(launch.soc, launch.layout, launch.tensors, launch.activeBlocks, std::move(logs), launch.request.options.trace);
    replay.Run();
    for (uint32_t core = 0; core < launch.results.size(); ++core) {
        CoreResult& result = launch.results[core];
        const Replay::CoreTime& time = replay.Times()[core];
        result.stats.endCycles = time.end;
        for (int p = 0; p < kPipes; ++p) result.stats.pipes[p].busyCycles += time.busy[p];
        for (size_t i = 0; i < result.slices.size(); ++i) {
            const Replay::Span& span = time.spans[result.sliceSteps[i]];
            result.slices[i].start = span.start;
            result.slices[i].cycles = span.cycles;
        }
    }
    report.modelledCycles = replay.End();
    report.modelledSeconds = launch.soc.launchSeconds + report.modelledCycles / double(launch.soc.clockHz);
    report.hbmBytes = replay.HbmBytes();
    report.l2Bytes = replay.L2Bytes();
}

void RunAllCores(LaunchState& launch) {
    if (launch.layout.Count() == 0) return;
    const FaultHandlers handlers;
    Workers workers(launch);
    workers.RunAll(std::min(launch.layout.Count(), HostThreads(launch.request.options)));
}

LaunchReport RunAndTell(const LaunchRequest& request) {
    static std::atomic<uint64_t> launches{0};
    LaunchReport report;
    report.op = request.op;
    report.soc = request.soc->name;
    report.blockDim = request.blockDim;
    report.launch = ++launches;
    auto state = std::make_unique<LaunchState>(request, Declared());
    RunAllCores(*state);
    for (Declared next; (next = state->restartAs).type != KernelType::Undeclared;) {   // at most by the default, then by the key
        state = std::make_unique<LaunchState>(request, next);
        RunAllCores(*state);
    }
    LaunchState& launch = *state;
    TellTime(launch, report);
    std::vector<std::vector<Finding>> findings;
    for (CoreResult& result : launch.results) {
        report.cores.push_back(result.stats);
        findings.push_back(std::move(result.findings));
        report.slices.insert(report.slices.end(), std::make_move_iterator(result.slices.begin()),
                             std::make_move_iterator(result.slices.end()));
        report.ubPeakBytes = std::max(report.ubPeakBytes, result.ubPeakBytes);
    }
    for (uint32_t i = 0; i < launch.layout.PerBlock() && i < launch.results.size(); ++i)
        for (BufferRecord& buffer : launch.results[i].buffers) report.buffers.push_back(std::move(buffer));
    const bool stopped = std::any_of(findings.begin(), findings.end(), [](const auto& list) {
        return std::any_of(list.begin(), list.end(), [](const Finding& finding) { return finding.fatal; });
    });
    if (request.options.checks && !stopped && !(request.options.ignoredRules >> int(Rule::EventFlag) & 1))
        findings.push_back(FlagsLeftSet(launch));
    if (request.options.checks) findings.push_back(CoreConflictFindings(launch, launch.results));
    report.findings = MergeFindings(std::move(findings), size_t(std::max(request.options.maxFindings, 1)));
    return report;
}

}  // namespace

LaunchReport Launch(const LaunchRequest& request) {
    try {
        return RunAndTell(request);
    } catch (const std::bad_alloc&) {
        throw HostRanOut("memory", request);
    }
}

}  // namespace sim
