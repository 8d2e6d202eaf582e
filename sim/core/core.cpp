// The public face of a core; the work is done by CoreState.
#include "sim/core/core.h"

#include <stdexcept>
#include <utility>

#include "sim/core/core_state.h"
#include "sim/core/current_core.h"

namespace sim {
namespace {
thread_local Core* currentCore = nullptr;
}

CurrentCore::CurrentCore(Core* core) : previous_(std::exchange(currentCore, core)) {}
CurrentCore::~CurrentCore() { currentCore = previous_; }

Core& Core::Current() {
    if (currentCore == nullptr) throw std::logic_error("no kernel runs on this thread: AscendC APIs work inside a launch only");
    return *currentCore;
}

Core::Core(CoreState& state) : state_(state) {}

const SocSpec& Core::Soc() const { return state_.launch_.soc; }
uint32_t Core::BlockIdx() const { return state_.launch_.layout.BlockIdx(state_.index_); }
uint32_t Core::BlockNum() const { return state_.launch_.request.blockDim; }
CoreKind Core::Kind() const { return state_.OnCube() ? CoreKind::Cube : CoreKind::Vector; }
uint32_t Core::SubBlockIdx() const { return state_.launch_.layout.SubBlockOf(state_.index_); }
uint32_t Core::VectorsPerCube() const { return state_.launch_.layout.Mixed() ? state_.launch_.layout.vector : 1; }
bool Core::Mixed() const { return state_.launch_.layout.Mixed(); }
bool Core::HasMemory(Memory memory, Location where) {
    if (!state_.HasMemory(memory)) state_.Deduce(where);
    return state_.HasMemory(memory);
}
uint64_t Core::TilingKey() const { return state_.launch_.request.tilingKey; }
uint8_t* Core::UserWorkspace() const { return state_.launch_.request.userWorkspace; }
uint8_t* Core::SystemWorkspace() const { return state_.launch_.request.systemWorkspace; }

uint8_t* Core::Local(Memory memory, uint64_t address) const { return state_.memory_->Use(memory) + address; }
bool Core::Locate(const void* pointer, Memory* memory, uint64_t* address) const {
    return state_.memory_->Locate(pointer, memory, address);
}
uint64_t Core::LocalBytes(Memory memory) const { return state_.memory_->Bytes(memory); }

void Core::RecordBuffer(Memory memory, const char* position, uint64_t address, uint64_t bytes, uint32_t count, Location where) {
    if (!state_.aborted_) state_.RecordBuffer(memory, position, address, bytes, count, where);
}

void Core::MarkUnwritten(Memory memory, uint64_t address, uint64_t bytes) {
    if (state_.options_.checks && memory != Memory::GM && address + bytes <= LocalBytes(memory))
        state_.memory_->ShadowOf(memory).MarkUnwritten(address, bytes);
}

bool Core::Unwritten(Memory memory, uint64_t address, uint64_t bytes, uint64_t* bits) const {
    if (!state_.options_.checks) return false;
    const Shadow& shadow = state_.memory_->ShadowOf(memory);
    bool any = false;
    for (uint64_t at = address, end = address + bytes; (at = shadow.FirstUnwritten(at, end - at)) < end; ++at) {
        bits[(at - address) / 64] |= uint64_t(1) << (at - address) % 64;
        any = true;
    }
    return any;
}

void Core::BufferAround(Memory memory, uint64_t address, uint64_t* low, uint64_t* high) const {
    state_.BufferAround(memory, address, low, high);
}

bool Core::Adversarial() const { return state_.adversarial_; }

void Core::Defer(std::unique_ptr<DeferredBody> body) {
    if (state_.aborted_) return;   // destructors of an aborted kernel still issue: drop it
    state_.pending_.Add(state_.heldId_, state_.heldBefore_, state_.lastName_, state_.lastWhere_, std::move(body));
}

void Core::CheckTime(const char* name, Location where) {
    state_.Reach(name, where);
    state_.CheckLimits();
}

void Core::FlushBefore(Pipe pipe) {
    if (state_.adversarial_ && !state_.aborted_) state_.pending_.RunKnown(state_.order_.Before(pipe));
}

void Core::Fail(Rule rule, const char* instruction, const char* operand, const std::string& message, Location where) {
    state_.Abort(state_.MakeFinding(rule, state_.PipeOfRule(rule), instruction, operand, message, where));
}

void Core::Report(Rule rule, const char* instruction, const char* operand, const std::string& message, Location where) {
    if (state_.aborted_) return;   // leftovers of an aborted kernel are no finding
    state_.findings_.Add(rule, where, {}, operand, [&] {
        return state_.MakeFinding(rule, state_.PipeOfRule(rule), instruction, operand, message, where);
    });
}

void Core::SetTaskType(int type, bool ofKey, Location where) { state_.Declare(KernelType(type), ofKey, where); }

}  // namespace sim
