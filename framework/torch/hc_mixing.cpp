#include "hc_mixing.h"

#include <limits>

#include "kernels/kernels.h"

namespace custom_ops {

void CheckMixingAttributes(const char* op, int64_t hcMult, int64_t iterations, double eps) {
    CheckRange(op, "hc_mult", hcMult, 1, native::kMaxStreams);
    CheckRange(op, "hc_sinkhorn_iters", iterations, 1, std::numeric_limits<int32_t>::max());
    CheckFiniteNonNegative(op, "hc_eps", eps);
}

HcMixingShape CheckStreams(const char* op, const Tensor& x, int64_t hcMult) {
    const Sizes given = x.sizes();
    if ((given.size() != 3 && given.size() != 4) || given[given.size() - 2] != hcMult)
        Fail(op, "x must be [T, hc_mult, d] or [b, s, hc_mult, d] with hc_mult = " + std::to_string(hcMult) + ", got " + Text(given));
    const Sizes tokens = given.slice(0, given.size() - 2);
    const int64_t hidden = given.back();
    if (hidden < 1) Fail(op, "d (dim -1 of x) must be at least 1, got x " + Text(given));
    CheckDtype(op, "x", x, {ScalarType::BFloat16, ScalarType::Half, ScalarType::Float});
    return {Shape(tokens, {hidden}), Shape(tokens, {hcMult}), Shape(tokens, {hcMult, hcMult}), Product(tokens), hidden};
}

void CheckBeside(const char* op, const char* argument, const Tensor& tensor, const char* symbols, Sizes want, const Tensor& x) {
    CheckDtype(op, argument, tensor, {ScalarType::Float});
    if (tensor.sizes() == want) return;
    std::string expected = symbols;
    if (expected != Text(want)) expected += " = " + Text(want) + " to match x " + Text(x.sizes());
    Fail(op, std::string(argument) + " must be " + expected + ", got " + Text(tensor.sizes()));
}

void CheckScaleAndBase(const char* op, const Tensor& hcScale, const Tensor& hcBase, const Tensor& x, int64_t hcMult) {
    CheckBeside(op, "hc_scale", hcScale, "[3]", Shape({}, {3}), x);
    CheckBeside(op, "hc_base", hcBase, "[(2 + hc_mult) * hc_mult]", Shape({}, {MixesPerToken(hcMult)}), x);
}

}  // namespace custom_ops
