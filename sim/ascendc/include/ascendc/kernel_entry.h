// What a compiled kernel exports (sim::KernelInvoke in sim/core/launch.h). The build writes one file per kernel:
//
//     #include "<kernel>.cpp"
//     #include "ascendc/kernel_entry.h"
//     CUSTOM_OPS_KERNEL(<entry function>)
//
// or, for a file with several entries that are launched by name, CUSTOM_OPS_KERNEL_ENTRY for each of them.
#pragma once

#include <stdlib.h>

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

// A kernel that left its process would take the host's along: inside the kernel's library these stand in for libc's. Hidden by the
// assembler, since the system's declarations, which come first, ask for the opposite.
#ifndef __THROW
#define __THROW
#endif
#define CUSTOM_OPS_EXIT(name, ...)                                         \
    extern "C" __attribute__((noreturn)) void name(int status) __VA_ARGS__ { \
        ::sim::KernelExit(#name, status, __builtin_return_address(0));     \
    }                                                                      \
    __asm__(".hidden " #name);
CUSTOM_OPS_EXIT(exit, __THROW)
CUSTOM_OPS_EXIT(quick_exit, __THROW)
CUSTOM_OPS_EXIT(_Exit, __THROW)
CUSTOM_OPS_EXIT(_exit)

// The only entry of a kernel library, and one of several.
#define CUSTOM_OPS_KERNEL(entry) CUSTOM_OPS_EXPORT_ENTRY(custom_ops_kernel_invoke, entry)
#define CUSTOM_OPS_KERNEL_ENTRY(entry) CUSTOM_OPS_EXPORT_ENTRY(custom_ops_kernel_invoke_##entry, entry)
#define CUSTOM_OPS_EXPORT_ENTRY(symbol, entry)                                                 \
    extern "C" __attribute__((visibility("default"))) void symbol(void* const* argv) {         \
        ::sim::InvokeEntry(&entry, argv);                                                      \
    }
