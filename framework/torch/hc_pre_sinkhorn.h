#pragma once

#include "checks.h"

namespace custom_ops {

struct HcPreSinkhornInputs {
    const Tensor &mixes, &rsqrt, &hcScale, &hcBase, &x;
};

struct HcPreSinkhornShape {
    Shape y;         // [T, d] or [b, s, d]
    Shape post;      // [T, n] ...
    Shape comb;      // [T, n, n] ...
    int64_t tokens;  // T or b * s
    int64_t hidden;  // d
};

// Refuses what no backend accepts, before anything runs; the same words on CPU, NPU and (in Python) Meta.
CUSTOM_OPS_API HcPreSinkhornShape CheckHcPreSinkhorn(const HcPreSinkhornInputs& inputs, int64_t hcMult, int64_t iterations, double eps);

}  // namespace custom_ops
