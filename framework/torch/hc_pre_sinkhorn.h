#pragma once

#include "hc_mixing.h"

namespace custom_ops {

struct HcPreSinkhornInputs {
    const Tensor &mixes, &rsqrt, &hcScale, &hcBase, &x;
};

// Refuses what no backend accepts, before anything runs; the same words on CPU, NPU and (in Python) Meta.
CUSTOM_OPS_API HcMixingShape CheckHcPreSinkhorn(const HcPreSinkhornInputs& inputs, int64_t hcMult, int64_t iterations, double eps);

}  // namespace custom_ops
