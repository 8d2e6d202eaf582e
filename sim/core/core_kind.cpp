// What a core has by its kind, and which kinds a kernel runs on.
#include <string>

#include "sim/core/core_state.h"

namespace sim {

uint32_t BlocksAtOnce(const SocSpec& soc, const Layout& layout) {
    return layout.cube > 0 ? soc.cubeCores : soc.vectorCores;
}

// Facts 2.1. L1 -> GM by MTE3 exists on the cube core of 2201 only.
bool CoreState::HasPipe(Pipe pipe) const {
    switch (pipe) {
        case Pipe::S:
        case Pipe::MTE2: return true;
        case Pipe::V: return !OnCube();
        case Pipe::MTE3: return !OnCube() || launch_.soc.npuArch == 2201;
        default: return OnCube();
    }
}

bool CoreState::HasMemory(Memory memory) const {
    return memory == Memory::GM || (memory == Memory::UB) != OnCube();
}

// As the compiler does: a kernel of no declared type that uses the cube runs on cube cores.
void CoreState::Deduce(Location where) {
    if (taskType_ == KernelType::Undeclared && launch_.type == KernelType::Undeclared && !OnCube()) Declare(KernelType::AicOnly, where);
}

void CoreState::CheckCoreKind(const Instruction& instruction) {
    if (!HasPipe(instruction.pipe)) {
        Deduce(instruction.where);
        Violation(Rule::PipeLegality, instruction, Operand(), std::string(Kind()) + " has no " + PipeName(instruction.pipe) + " pipe");
    }
    for (const Operand& operand : instruction.operands) {
        if (HasMemory(operand.memory)) continue;
        Deduce(instruction.where);
        Violation(Rule::PipeLegality, instruction, operand,
                  std::string(operand.name) + " lies in " + MemoryName(operand.memory) + ", which " + Kind() + " does not have");
    }
}

// The type is known once the kernel runs. A kernel that needs other cores than the launch has begun with is run again from the
// start, so it must not have changed anything yet.
void CoreState::Declare(KernelType type, Location where) {
    if (aborted_) return;
    taskType_ = type;
    const Layout wanted = LayoutOf(type, launch_.layout.blocks), &given = launch_.layout;
    if (wanted.cube == given.cube && wanted.vector == given.vector) return;
    if (launch_.type != KernelType::Undeclared)
        Abort(MakeFinding(Rule::Argument, Pipe::S, "KERNEL_TASK_TYPE", "", "the kernel declares two types that run on different cores", where));
    if (timeline_.GmBytes() != 0)
        Abort(MakeFinding(Rule::Argument, Pipe::S, "KERNEL_TASK_TYPE", "",
                          "the kernel has already copied to or from GM when its type becomes known; declare it with KERNEL_TASK_TYPE_DEFAULT first", where));
    launch_.restartAs = type;
    AbortSilently();
}

}  // namespace sim
