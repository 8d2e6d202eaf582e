// Flags between the cores of a launch.
#pragma once

#include "ascendc/sync.h"

namespace sim {

#if __NPU_ARCH__ == 3510
inline constexpr int kMostCrossFlag = 31;   // an AIC names the second of its vector cores by 16 more (mode 4)
#else
inline constexpr int kMostCrossFlag = 15;
#endif

inline int CrossFlag(const char* api, int64_t flag, bool both, Location where) {
    const int most = both ? kMostCrossFlag : 15;
    if (flag < 0 || flag > most)
        Core::Current().Fail(Rule::Argument, api, "flagId", "flagId is " + std::to_string(flag) + ", it must be 0 to " +
                             std::to_string(most), where);
    return int(flag);
}

}  // namespace sim

namespace AscendC {

// modeId 0: all cores of this kind; 1: the AIV cores of one AIC; 2: an AIC and its AIV cores; 4 (950): an AIC and one AIV core.
// Speaks for what `pipe` has done.
template <uint8_t modeId, pipe_t pipe>
void CrossCoreSetFlag(sim::Wide flagId, sim::Location where = sim::Location::Here()) {
    sim::Core& core = sim::Core::Current();
    const bool cube = core.Kind() == sim::CoreKind::Cube;
#if __NPU_ARCH__ == 3510
    static_assert(modeId <= 2 || modeId == 4, "modes of CrossCoreSetFlag are 0, 1, 2 and 4");
#else
    static_assert(modeId <= 2, "modes of CrossCoreSetFlag are 0, 1 and 2; mode 4 exists on arch 3510 only");
#endif
    if (modeId == 1 && cube)
        core.Fail(sim::Rule::PipeLegality, "CrossCoreSetFlag", "", "mode 1 is between the vector cores of one cube core; this is a "
                  "cube core", where);
    if (modeId >= 2 && !core.Mixed())
        core.Fail(sim::Rule::PipeLegality, "CrossCoreSetFlag", "", "mode " + std::to_string(modeId) + " is between a cube core and "
                  "its vector cores; the kernel runs on one kind only (KERNEL_TASK_TYPE_DEFAULT)", where);
    const int flag = sim::CrossFlag("CrossCoreSetFlag", flagId, modeId == 4 && cube, where);
    if constexpr (pipe == PIPE_ALL) core.PipeBarrierAll(where);
    core.CrossCoreSetFlag(modeId, pipe == PIPE_ALL ? sim::Pipe::S : sim::PipeOf(pipe, "CrossCoreSetFlag", where), flag, where);
}

// On 2201 the whole core waits, whatever the pipe.
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
void CrossCoreWaitFlag(sim::Wide flagId, sim::Location where = sim::Location::Here()) {
    sim::Core& core = sim::Core::Current();
    const int flag = sim::CrossFlag("CrossCoreWaitFlag", flagId, modeId == 4 && core.Kind() == sim::CoreKind::Cube, where);
    const sim::Pipe waiting = pipe == PIPE_ALL ? sim::Pipe::S : sim::PipeOf(pipe, "CrossCoreWaitFlag", where);
    core.CrossCoreWaitFlag(core.Soc().npuArch == 2201 ? sim::Pipe::S : waiting, flag, where);
}

}  // namespace AscendC
