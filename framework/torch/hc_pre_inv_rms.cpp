// npu_hc_pre_inv_rms: 1 / RMS over the flattened hc_mult * d of every token.
#include "hc_pre_inv_rms.h"

#include "op_support.h"

namespace custom_ops {

HcPreInvRmsShape CheckHcPreInvRms(const Tensor& x, double epsilon) {
    constexpr const char* kOp = "npu_hc_pre_inv_rms";
    CheckGiven(kOp, {{"x", &x}});
    const Sizes shape = x.sizes();
    if (shape.size() != 3 && shape.size() != 4)
        Fail(kOp, "x must be [T, hc_mult, d] or [b, s, hc_mult, d], got " + Text(shape));
    CheckDtype(kOp, "x", x, {ScalarType::BFloat16, ScalarType::Half, ScalarType::Float});
    const Sizes tokens = shape.slice(0, shape.size() - 2);
    const int64_t streams = shape[shape.size() - 2], hidden = shape.back();
    if (streams < 1 || streams > native::kMaxStreams)
        Fail(kOp, "hc_mult (dim -2 of x) must be 1 to 16, got x " + Text(shape));
    if (hidden < 1) Fail(kOp, "d (dim -1 of x) must be at least 1, got x " + Text(shape));
    CheckFiniteNonNegative(kOp, "epsilon", epsilon);
    return {Shape(tokens, {1}), Product(tokens), streams * hidden};
}

namespace {

Tensor HcPreInvRmsCpu(const Tensor& x, double epsilon) {
    const HcPreInvRmsShape shape = CheckHcPreInvRms(x, epsilon);
    Contiguous in;
    Tensor y = NewEmpty(x, shape.y, ScalarType::Float);
    const native::InvRmsArgs args{in.Data(x), static_cast<float*>(y.mutable_data_ptr()), ElementOf(x),
                                  shape.elementsPerToken, epsilon};
    const int64_t bytes = shape.tokens * shape.elementsPerToken * static_cast<int64_t>(x.element_size());
    const native::Kernels& kernels = native::HostKernels();
    ForTokens(shape.tokens, bytes, [&](int64_t first, int64_t last) { kernels.invRms(args, first, last); });
    return y;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) { m.def("npu_hc_pre_inv_rms(Tensor x, *, float epsilon=1e-20) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(custom, CPU, m) { m.impl("npu_hc_pre_inv_rms", TORCH_BOX(&HcPreInvRmsCpu)); }

}  // namespace custom_ops
