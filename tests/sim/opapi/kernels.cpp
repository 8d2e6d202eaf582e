// Kernels without the framework: what they check is what opapi hands to a kernel.
#include <cstdint>

extern "C" void custom_ops_kernel_invoke(void* const* argv) {
#if defined(BIASED)
    struct Split { uint8_t tag; int64_t perCore; };
    struct Tiling { uint32_t total; float alpha; uint8_t hasBias; uint16_t axes[3]; Split split; };
    const float* x = static_cast<const float*>(argv[0]);
    const float* bias = static_cast<const float*>(argv[1]);
    float* y = static_cast<float*>(argv[2]);
    const Tiling& tiling = *static_cast<const Tiling*>(argv[4]);
    const bool layout = tiling.split.tag == 5 && tiling.split.perCore == -12345678901234 && tiling.axes[2] == 7;
    for (uint32_t i = 0; i < tiling.total; ++i) y[i] = x[i] * tiling.alpha + (bias != nullptr ? bias[i] : 0);
    if (!layout || tiling.hasBias != (bias != nullptr) || argv[3] == nullptr) y[0] = -1e30f;
#elif defined(SCALED)
    struct Tiling { uint32_t total; float factor; };
    float* x = static_cast<float*>(argv[2]);
    const Tiling& tiling = *static_cast<const Tiling*>(argv[4]);
    if (argv[0] != argv[2]) return;
    for (uint32_t i = 0; i < tiling.total; ++i) x[i] *= tiling.factor;
#elif defined(GATHERED)
    const uint64_t* table = static_cast<const uint64_t*>(argv[0]);
    const int64_t* lengths = static_cast<const int64_t*>(argv[4]);
    const uint64_t* pointers = table + table[0] / sizeof(uint64_t);
    float* y = static_cast<float*>(argv[2]);
    const uint64_t* entry = table + 1;
    for (int64_t i = 0; i < lengths[0]; ++i) {
        const uint32_t rank = static_cast<uint32_t>(*entry);
        if (static_cast<int64_t>(*entry >> 32) != i || rank != 1) return;
        for (uint64_t k = 0; k < entry[1]; ++k) y[0] += reinterpret_cast<const float*>(pointers[i])[k];
        entry += 1 + rank;
    }
    y[0] += static_cast<const float*>(argv[1])[2 * (lengths[2] - 1)];  // the view takes every other element
#elif defined(CONSTANT)
    static_cast<float*>(argv[2])[0] = CONSTANT;
#endif
}
