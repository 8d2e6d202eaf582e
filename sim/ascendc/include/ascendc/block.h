// Who this core is, its workspace, the tiling key, kernel types and debugging aids.
#pragma once

#include <cstdio>

#include "ascendc/framework_state.h"

enum KernelMetaType : uint8_t {
    KERNEL_TYPE_AIV_ONLY, KERNEL_TYPE_AIC_ONLY, KERNEL_TYPE_MIX_AIV_1_0, KERNEL_TYPE_MIX_AIC_1_0, KERNEL_TYPE_MIX_AIC_1_1,
    KERNEL_TYPE_MIX_AIC_1_2, KERNEL_TYPE_AICORE, KERNEL_TYPE_VECTORCORE, KERNEL_TYPE_MIX_AICORE,
    KERNEL_TYPE_MIX_VECTOR_CORE, KERNEL_TYPE_MAX
};

namespace AscendC {

inline int64_t GetBlockIdx() { return sim::Core::Current().BlockIdx(); }
inline int64_t GetBlockNum() { return sim::Core::Current().BlockNum(); }
inline int64_t GetSubBlockIdx() { return sim::Core::Current().SubBlockIdx(); }
inline int64_t GetSubBlockNum() { return sim::Core::Current().VectorsPerCube(); }
inline int64_t GetTaskRatio() { return sim::Core::Current().VectorsPerCube(); }
inline int64_t GetTaskRation() { return GetTaskRatio(); }   // as older kernels spell it

inline void SetSysWorkspace(GM_ADDR) {}  // the launch knows where the system part of the workspace ends
inline GM_ADDR GetUserWorkspace(GM_ADDR workspace) {
    GM_ADDR user = sim::Core::Current().UserWorkspace();
    return user != nullptr ? user : workspace;
}

[[noreturn]] inline void Trap(sim::Location where = sim::Location::Here()) {
    sim::Core::Current().Fail(sim::Rule::Argument, "Trap", "", "the kernel called Trap()", where);
}

}  // namespace AscendC

namespace sim {

inline bool TilingKeyIs(uint64_t key, Location where = Location::Here()) {
    FrameworkState& state = FrameworkState::Current();
    const bool taken = Core::Current().TilingKey() == key;
    state.tilingKeyAsked = where;
    state.tilingKeyTaken |= taken;
    return taken;
}
template <typename... Keys>
bool TilingKeyIn(Location where, Keys... keys) {
    return (... | TilingKeyIs(static_cast<uint64_t>(keys), where));
}
inline int32_t CoreType() { return Core::Current().Kind() == CoreKind::Cube ? AscendC::AIC : AscendC::AIV; }
inline void SetKernelType(KernelMetaType type, bool ofKey, Location where) {
    if (type == KERNEL_TYPE_VECTORCORE) type = KERNEL_TYPE_AIV_ONLY;
    if (type > KERNEL_TYPE_MIX_AIC_1_2)
        Core::Current().Fail(Rule::PipeLegality, "KERNEL_TASK_TYPE", "", "this kernel type belongs to chips whose cube and vector "
                             "units share a core", where);
    Core::Current().SetTaskType(type, ofKey, where);
}
[[noreturn]] __attribute__((noinline, cold)) inline void AssertFailed(const char* condition, Location where) {
    Core::Current().Fail(Rule::Argument, "ASSERT", "", std::string("assertion failed: ") + condition, where);
}

}  // namespace sim

// The key is a run-time value here; on the device every key is a binary of its own.
#define TILING_KEY_VAR (::sim::Core::Current().TilingKey())
#define TILING_KEY_IS(key) (::sim::TilingKeyIs(key))
#define TILING_KEY_LIST(...) (::sim::TilingKeyIn(::sim::Location::Here(), __VA_ARGS__))
#define KERNEL_TASK_TYPE_DEFAULT(type) ::sim::SetKernelType(type, false, ::sim::Location::Here())
#define KERNEL_TASK_TYPE(key, type) \
    do { if (TILING_KEY_VAR == (key)) ::sim::SetKernelType(type, true, ::sim::Location::Here()); } while (0)

#define ASSERT(condition, ...) \
    do { if (!(condition)) ::sim::AssertFailed(#condition, ::sim::Location::Here()); } while (0)
#define ascendc_assert(condition, ...) ASSERT(condition)
#define PRINTF(...) ::std::printf(__VA_ARGS__)
namespace AscendC { using ::printf; }
