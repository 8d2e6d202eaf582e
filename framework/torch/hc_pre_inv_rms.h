#pragma once

#include "checks.h"

namespace custom_ops {

struct HcPreInvRmsShape {
    Shape y;                   // [T, 1] or [b, s, 1]
    int64_t tokens;            // T or b * s
    int64_t elementsPerToken;  // hc_mult * d
};

// Refuses what no backend accepts, before anything runs; the same words on CPU, NPU and (in Python) Meta.
CUSTOM_OPS_API HcPreInvRmsShape CheckHcPreInvRms(const Tensor& x, double epsilon);

}  // namespace custom_ops
