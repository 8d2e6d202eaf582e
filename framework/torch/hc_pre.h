#pragma once

#include "hc_mixing.h"

namespace custom_ops {

struct HcPreInputs {
    const Tensor &x, &hcFn, &hcScale, &hcBase;
};

// In the order of the schema.
struct HcPreAttributes {
    int64_t hcMult, iterations;
    double normEps, hcEps;
};

// Refuses what no backend accepts, before anything runs; the same words on CPU, NPU and (in Python) Meta.
CUSTOM_OPS_API HcMixingShape CheckHcPre(const HcPreInputs& inputs, const HcPreAttributes& attributes);

}  // namespace custom_ops
