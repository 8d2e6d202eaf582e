// hc_pre: a block of tokens at a time, whose x comes from memory once. Inverse RMS and projection read it first; the weighted sum, which
// needs their results, finds it in the cache.
#pragma once

#include "hc_pre_sinkhorn_kernel.h"
#include "projection.h"

namespace custom_ops::native::KERNEL_ISA {

template <typename T>
static void PreRows(const PreArgs& args, int64_t firstToken, int64_t lastToken) {
    const SinkhornArgs& all = args.mixing;
    const int64_t n = all.streams, elements = n * all.hidden, width = (2 + n) * n;
    const int64_t most = lastToken - firstToken < args.tokensPerBlock ? lastToken - firstToken : args.tokensPerBlock;
    const ProjectionArgs projectionArgs{all.x, args.fn, nullptr, all.element, elements, static_cast<int32_t>(width)};
    Projection<T> projection(projectionArgs, all.mixes ? 0 : most);
    const Scratch scratch((most * (width + 1) + kLanes - 1) / kLanes);
    float* const raw = reinterpret_cast<float*>(scratch.Data());
    float* const rsqrt = raw + most * width;
    for (int64_t first = firstToken; first < lastToken; first += most) {
        const int64_t count = lastToken - first < most ? lastToken - first : most;
        const T* x = static_cast<const T*>(all.x) + first * elements;
        for (int64_t token = 0; token < count; ++token) rsqrt[token] = InverseRms(x + token * elements, elements, args.normEpsilon);
        if (!all.mixes) projection.Run(first, first + count, 0, static_cast<int>(width), raw);
        SinkhornOfBlock<T>(all, first, count, all.mixes ? all.mixes + first * width : raw, rsqrt);
    }
}

static void Pre(const PreArgs& args, int64_t firstToken, int64_t lastToken) {
    WithElement(args.mixing.element, [&](auto element) { PreRows<decltype(element)>(args, firstToken, lastToken); });
}

}  // namespace custom_ops::native::KERNEL_ISA
