#include "sim/core/core_state.h"

#include <algorithm>
#include <utility>

#include "sim/core/crash_site.h"
#include "sim/core/faults.h"
#include "sim/core/host_thread.h"
#include "sim/core/text.h"

namespace sim {

uint32_t HostThreads(const LaunchOptions& options) {
    return options.hostThreads > 0 ? uint32_t(options.hostThreads) : Processors();
}

LaunchState::LaunchState(const LaunchRequest& launchRequest, Declared byKernel)
    : request(launchRequest), soc(*launchRequest.soc), declared(byKernel), layout(LayoutOf(declared.type, launchRequest.blockDim)),
      tensors(launchRequest.buffers), activeBlocks(std::min(launchRequest.blockDim, BlocksAtOnce(soc, layout))),
      deadline(std::chrono::steady_clock::now() +
               std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                   std::chrono::duration<double>(std::min(launchRequest.options.timeoutSeconds, 1e9)))),
      rendezvous(layout, HostThreads(launchRequest.options)), cores(layout.Count(), nullptr), results(layout.Count()) {}

CoreState::CoreState(LaunchState& launch, uint32_t index)
    : launch_(launch), options_(launch.request.options), index_(index), memory_(LocalMemory::Take(launch.soc)), core_(*this),
      fast_(!options_.checks && !options_.trace && options_.adversarialSeed == 0), adversarial_(options_.adversarialSeed != 0),
      timeline_(launch.soc, launch.activeBlocks, options_.trace), pending_(options_.adversarialSeed, index),
      findings_(options_.ignoredRules, size_t(std::max(options_.maxFindings, 1))) {
    core_.operandsNeeded_ = options_.checks || options_.trace;
    if (options_.checks) memory_->StartShadows();
    if (memory_->lastSequence > kMaxSequence / 2) {   // ids of pooled shadows keep growing from launch to launch
        memory_->ForgetIds();
        memory_->lastSequence = 0;
    }
    if (launch.layout.Mixed()) gm_.KeepInstructions();
    order_.Start(memory_->lastSequence, launch.soc.vectorPipeOrdered);
    sites_.Start(memory_->lastSequence);
    launch_.cores[index_] = this;
}

CoreState::~CoreState() {
    memory_->lastSequence = order_.Sequence();
    LocalMemory::GiveBack(std::move(memory_));
}

Pipe CoreState::PipeOfRule(Rule rule) {
    switch (rule) {
        case Rule::RepeatLimit:
        case Rule::MaskLimit:
        case Rule::Dtype:
        case Rule::Overlap: return Pipe::V;   // limits of vector instructions
        default: return Pipe::S;
    }
}

Finding CoreState::MakeFinding(Rule rule, Pipe pipe, const char* instruction, const char* operand, std::string message,
                               Location where) const {
    Finding finding;
    finding.rule = rule;
    finding.core = index_;
    finding.pipe = pipe;
    finding.instruction = instruction;
    finding.operand = operand;
    finding.message = std::move(message);
    finding.file = where.file;
    finding.line = where.line;
    return finding;
}

void CoreState::Abort(Finding finding) {
    if (!aborted_) {
        finding.fatal = true;
        findings_.AddFatal(std::move(finding));
    }
    AbortSilently();
}

void CoreState::AbortSilently() {
    aborted_ = true;
    pending_.Drop();
    throw KernelAbort();
}

void CoreState::Violation(Rule rule, const Instruction& instruction, const Operand& operand, std::string message) {
    if (findings_.Ignored(rule)) return;
    Abort(MakeFinding(rule, instruction.pipe, instruction.name, operand.name, std::move(message), instruction.where));
}

void CoreState::KernelReturned() {
    if (aborted_) return;
    if (adversarial_) pending_.RunAll();
    ReportFlagsLeftSet();
}

void CoreState::KernelThrew(const char* what) {
    if (aborted_) return;
    aborted_ = true;
    Finding finding = MakeFinding(Rule::KernelCrash, Pipe::S, lastName_, "", std::string("the kernel threw: ") + what, lastWhere_);
    finding.fatal = true;
    findings_.AddFatal(std::move(finding));
}

void CoreState::KernelFaulted(const Fault& fault) {
    if (aborted_) return;   // a destructor could not unwind any further; the cause is known
    aborted_ = true;
    const bool held = pending_.RunningName() != nullptr;
    const char* name = held ? pending_.RunningName() : lastName_;
    const Location where = held ? pending_.RunningWhere() : lastWhere_;
    const Location source = SourceOfFault(fault, reinterpret_cast<const void*>(launch_.request.invoke));
    std::string message = fault.Describe();
    if (fault.address != 0 && !fault.stackOverflow) message += " at address " + Hex(fault.address);
    message += *name == '\0' ? ", before its first instruction" : std::string(held ? ", in " : ", in or after ") + name;
    Finding finding = MakeFinding(fault.IsMemoryFault() ? Rule::MemoryFault : Rule::KernelCrash, Pipe::S, name, "",
                                  std::move(message), source.line != 0 ? source : where);
    finding.fatal = true;
    findings_.AddFatal(std::move(finding));
}

CoreResult CoreState::Result() {
    launch_.cores[index_] = nullptr;
    CoreResult result;
    result.stats.core = index_;
    result.stats.name = launch_.layout.Name(index_);
    for (int p = 0; p < kPipes; ++p) result.stats.pipes[p] = timeline_.Stats(Pipe(p));
    result.log = timeline_.TakeLog();
    result.findings = findings_.Take();
    for (const Buffer& buffer : buffers_) {
        if (buffer.memory == Memory::UB) result.ubPeakBytes = std::max(result.ubPeakBytes, buffer.address + buffer.bytes);
        if (index_ >= launch_.layout.PerBlock()) continue;
        result.buffers.push_back({buffer.Name(), buffer.position, buffer.memory, buffer.address, buffer.bytes, buffer.count});
    }
    result.slices = std::move(slices_);
    result.sliceSteps = std::move(sliceSteps_);
    result.sites = std::move(sites_);
    if (options_.checks) result.epochs = gm_.TakeEpochs();
    result.learnt = std::move(learnt_);
    return result;
}

}  // namespace sim
