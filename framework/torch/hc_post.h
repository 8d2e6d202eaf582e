#pragma once

#include "checks.h"

namespace custom_ops {

struct HcPostInputs {
    const Tensor &x, &residual, &post, &comb;
};

struct HcPostShape {
    Shape y;          // of residual
    int64_t tokens;   // T or b * s
    int64_t streams;  // n
    int64_t hidden;   // d
};

// Refuses what no backend accepts, before anything runs; the same words on CPU, NPU and (in Python) Meta.
CUSTOM_OPS_API HcPostShape CheckHcPost(const HcPostInputs& inputs);

}  // namespace custom_ops
