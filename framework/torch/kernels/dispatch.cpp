#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels.h"

namespace custom_ops::native {

namespace baseline { extern const Kernels kKernels; }
#if defined(__x86_64__)
namespace avx2 { extern const Kernels kKernels; }
namespace avx512 { extern const Kernels kKernels; }
#endif

namespace {

// Narrowest first.
std::vector<const Kernels*> Supported() {
    std::vector<const Kernels*> supported = {&baseline::kKernels};
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool hasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    if (hasAvx2) supported.push_back(&avx2::kKernels);
    if (hasAvx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        supported.push_back(&avx512::kKernels);
#endif
    return supported;
}

const Kernels& Choose() {
    const std::vector<const Kernels*> supported = Supported();
    const char* wanted = std::getenv("CUSTOM_OPS_CPU");
    if (!wanted || !*wanted) return *supported.back();
    std::string names;
    for (const Kernels* kernels : supported) {
        if (std::string(wanted) == kernels->name) return *kernels;
        names += std::string(names.empty() ? "" : ", ") + kernels->name;
    }
    throw std::runtime_error("CUSTOM_OPS_CPU is '" + std::string(wanted) + "', this host has: " + names);
}

}  // namespace

const Kernels& HostKernels() {
    static const Kernels& kernels = Choose();
    return kernels;
}

}  // namespace custom_ops::native
