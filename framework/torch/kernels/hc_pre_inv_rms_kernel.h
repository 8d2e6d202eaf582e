// y[t] = 1 / sqrt(sum_k x[t, k]^2 / K + epsilon), K = hc_mult * d; x is read once.
#pragma once

#include "inverse_rms.h"

namespace custom_ops::native::KERNEL_ISA {

template <typename T>
static void InvRmsRows(const InvRmsArgs& args, int64_t firstToken, int64_t lastToken) {
    const int64_t count = args.elementsPerToken;
    const T* x = static_cast<const T*>(args.x) + firstToken * count;
    for (int64_t token = firstToken; token < lastToken; ++token, x += count) args.y[token] = InverseRms(x, count, args.epsilon);
}

static void InvRms(const InvRmsArgs& args, int64_t firstToken, int64_t lastToken) {
    WithElement(args.element, [&](auto element) { InvRmsRows<decltype(element)>(args, firstToken, lastToken); });
}

}  // namespace custom_ops::native::KERNEL_ISA
