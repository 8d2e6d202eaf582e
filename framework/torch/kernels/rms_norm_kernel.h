// y[t, k] = x[t, k] / sqrt(sum_k x[t, k]^2 / K + epsilon) * weight[k] in float32, rounded once.
#pragma once

#include "inverse_rms.h"

namespace custom_ops::native::KERNEL_ISA {

template <typename T>
static void RmsNormRows(const RmsNormArgs& args, int64_t firstToken, int64_t lastToken) {
    const int64_t columns = args.columns;
    for (int64_t token = firstToken; token < lastToken; ++token) {
        const T* x = static_cast<const T*>(args.x) + token * columns;
        T* y = static_cast<T*>(args.y) + token * columns;
        const float inverse = InverseRms(x, columns, args.epsilon);
        for (int64_t column = 0; column < columns; column += kLanes) {
            const int64_t count = columns - column < kLanes ? columns - column : kLanes;
            StoreFirst(y + column, LoadFirst(x + column, count) * inverse * LoadFirst(args.weight + column, count), count);
        }
    }
}

static void RmsNorm(const RmsNormArgs& args, int64_t firstToken, int64_t lastToken) {
    WithElement(args.element, [&](auto element) { RmsNormRows<decltype(element)>(args, firstToken, lastToken); });
}

}  // namespace custom_ops::native::KERNEL_ISA
