#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "kernels.h"

namespace custom_ops::native {

namespace baseline { extern const Kernels kKernels; }
#if defined(__x86_64__)
namespace avx2 { extern const Kernels kKernels; }
namespace avx512 { extern const Kernels kKernels; }
namespace amx { extern const TileKernels kTileKernels; }
#endif

namespace {

#if defined(__x86_64__)
// The processor multiplies bfloat16 tiles and vectors, and the system lets this process use them: it must be asked, once, for all threads.
bool HasTiles() {
#if defined(__linux__)
    constexpr unsigned kTiles = 1u << 24, kBfloat16Tiles = 1u << 22;  // of leaf 7, edx
    constexpr long kRequestState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM; fails where the system does not know it
    unsigned eax, ebx, ecx, edx;
    if (!__builtin_cpu_supports("avx512bf16") || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
    return (edx & kTiles) && (edx & kBfloat16Tiles) && syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
#else
    return false;
#endif
}
#endif

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
    if (supported.back() == &avx512::kKernels && HasTiles()) {
        static Kernels amx = avx512::kKernels;
        amx.name = "amx";
        amx.tiles = &amx::kTileKernels;
        supported.push_back(&amx);
    }
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
