// What a compiled kernel exports (sim::KernelInvoke in sim/core/launch.h). The build writes one file per kernel:
//
//     #include "<kernel>.cpp"
//     #include "ascendc/kernel_entry.h"
//     CUSTOM_OPS_KERNEL_ENTRY(<entry function>)
#pragma once

#include <utility>

#include "ascendc/block.h"

namespace sim {

template <typename Parameter>
Parameter EntryArgument(void* argument) {
    if constexpr (std::is_pointer_v<Parameter>) return static_cast<Parameter>(argument);
    else return *static_cast<std::remove_reference_t<Parameter>*>(argument);
}

// What can only be known when the kernel has ended.
inline void EndOfKernel() {
    Core& core = Core::Current();
    if (!core.framework) return;
    FrameworkState& state = FrameworkState::Current();
    if (state.tilingKeyAsked.line != 0 && !state.tilingKeyTaken)
        core.Report(Rule::TilingKey, "TILING_KEY_IS", "", "no branch of the kernel takes tiling key " +
                    std::to_string(core.TilingKey()), state.tilingKeyAsked);
    state.cache.End(core);
}

template <typename... Parameters, size_t... I>
void InvokeEntry(void (*entry)(Parameters...), void* const* argv, std::index_sequence<I...>) {
    entry(EntryArgument<Parameters>(argv[I])...);
    EndOfKernel();
}
template <typename... Parameters>
void InvokeEntry(void (*entry)(Parameters...), void* const* argv) {
    InvokeEntry(entry, argv, std::index_sequence_for<Parameters...>{});
}

}  // namespace sim

#define CUSTOM_OPS_KERNEL_ENTRY(entry)                                                                   \
    extern "C" __attribute__((visibility("default"))) void custom_ops_kernel_invoke(void* const* argv) { \
        ::sim::InvokeEntry(&entry, argv);                                                                \
    }
