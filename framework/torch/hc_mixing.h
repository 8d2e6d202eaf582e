// What npu_hc_pre and npu_hc_pre_sinkhorn check alike: the attributes, the streams x and the tensors that go with them.
#pragma once

#include "checks.h"

namespace custom_ops {

// The results of both operators.
struct HcMixingShape {
    Shape y;         // [T, d] or [b, s, d]
    Shape post;      // [T, n] ...
    Shape comb;      // [T, n, n] ...
    int64_t tokens;  // T or b * s
    int64_t hidden;  // d
};

inline int64_t MixesPerToken(int64_t hcMult) { return (2 + hcMult) * hcMult; }

void CheckMixingAttributes(const char* op, int64_t hcMult, int64_t iterations, double eps);
// x is [T, hc_mult, d] or [b, s, hc_mult, d].
HcMixingShape CheckStreams(const char* op, const Tensor& x, int64_t hcMult);
// float32 and of shape `want`, which the message also gives in `symbols`.
void CheckBeside(const char* op, const char* argument, const Tensor& tensor, const char* symbols, Sizes want, const Tensor& x);
void CheckScaleAndBase(const char* op, const Tensor& hcScale, const Tensor& hcBase, const Tensor& x, int64_t hcMult);

}  // namespace custom_ops
