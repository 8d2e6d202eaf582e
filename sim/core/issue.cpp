// The path of every instruction: operand checks -> order checks -> timeline -> execution.
#include <string>
#include <utility>

#include "sim/core/core_state.h"
#include "sim/core/text.h"

namespace sim {

void CoreState::CheckLimits() {
    const auto stillRunning = [&](const std::string& limit) {
        Abort(MakeFinding(Rule::Timeout, Pipe::S, lastName_, "",
                          launch_.layout.Name(index_) + " was still running after " + limit + " and " + std::to_string(reached_) +
                              " API calls",
                          lastWhere_));
    };
    const uint64_t logged = timeline_.Log().Bytes() + slices_.capacity() * sizeof(Slice);
    const uint64_t byAll = launch_.loggedBytes += logged - std::exchange(loggedBytes_, logged);
    if (byAll > options_.logBytes)
        stillRunning("the record of the launch's instructions had filled " + std::to_string(options_.logBytes >> 20) + " MiB");
    if (std::chrono::steady_clock::now() >= launch_.deadline) stillRunning(Decimal(options_.timeoutSeconds) + " s");
}

bool Core::BeginIssue(const Instruction& instruction) {
    CoreState& s = state_;
    if (s.aborted_) return true;   // destructors of an aborted kernel: Defer() drops the body
    s.Reach(instruction.name, instruction.where);
    s.CheckCoreKind(instruction);
    if (!s.fast_) return s.Issue(instruction);
    s.timeline_.Issue(instruction);
    return false;
}

bool CoreState::Issue(const Instruction& instruction) {
    if (options_.checks) CheckOperands(instruction);
    const Clock before = order_.Before(instruction.pipe, instruction.selfOrdered);
    if (options_.checks) CheckOrder(instruction, before);
    if (order_.Sequence() >= kMaxSequence) {
        // Ids wrap around: earlier accesses are taken as complete, at the price of one missed hazard in 2^29 instructions.
        pending_.RunAll();
        memory_->ForgetIds();
        gm_.ForgetIds();
        order_.Start(0, launch_.soc.vectorPipeOrdered);
        sites_.Start(0);
    }
    const InstructionId id = order_.Issue(instruction.pipe);
    if (options_.checks) {
        const SiteIndex site = sites_.Intern(instruction);
        sites_.Record(SequenceOf(id), site);
        RecordAccesses(id, site, before);
    }
    const uint64_t bytes = timeline_.Issue(instruction);
    if (options_.trace) AddSlice(instruction, bytes);
    if (!adversarial_) return false;
    if (instruction.pipe == Pipe::S) {         // the scalar unit waits for the value
        pending_.RunKnown(before);
        return false;
    }
    heldId_ = id;
    heldBefore_ = before;
    return true;
}

void CoreState::AddSlice(const Instruction& instruction, uint64_t bytes) {
    Slice slice{index_, instruction.pipe, InternString(instruction.name), 0, 0, bytes, "", instruction.where};
    slice.where.file = InternString(instruction.where.file);
    for (const Operand& operand : instruction.operands) {
        const Region region = operand.region.Normalized();
        if (region.Bytes() == 0) continue;
        if (bytes == 0) slice.bytes += region.Bytes();
        if (!slice.detail.empty()) slice.detail += ", ";
        slice.detail += std::string(operand.name) + " " + Place(operand.memory, region.start, region.start + region.run);
    }
    if (instruction.note != nullptr) slice.detail += std::string(slice.detail.empty() ? "" : "; ") + instruction.note;
    slices_.push_back(std::move(slice));
    sliceSteps_.push_back(timeline_.LastStep());
}

}  // namespace sim
