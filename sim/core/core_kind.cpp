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
    if (task_.type == KernelType::Undeclared && launch_.declared.type == KernelType::Undeclared && !OnCube())
        Declare(KernelType::AicOnly, false, where);
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
// start, so it must not have changed anything yet. The type of a tiling key counts more than that of all keys, wherever it stands.
void CoreState::Declare(KernelType type, bool ofKey, Location where) {
    const Declared given = launch_.declared;
    if (aborted_ || ((given.ofKey || task_.ofKey) && !ofKey)) return;
    task_ = {type, ofKey};
    const Layout wanted = LayoutOf(type, launch_.layout.blocks), &now = launch_.layout;
    if (wanted.cube == now.cube && wanted.vector == now.vector) return;
    const auto refuse = [&](const char* why) { Abort(MakeFinding(Rule::Argument, Pipe::S, "KERNEL_TASK_TYPE", "", why, where)); };
    if (given.type != KernelType::Undeclared && given.ofKey == ofKey) refuse("the kernel declares two types that run on different cores");
    if (timeline_.GmBytes() != 0)
        refuse("the kernel has already copied to or from GM when its type becomes known; declare it with KERNEL_TASK_TYPE_DEFAULT first");
    launch_.restartAs = Declared{type, ofKey};
    AbortSilently();
}

}  // namespace sim
