// cpu_rms_norm: what PyTorch makes of nine operators, of which each costs as much as the arithmetic of a token.
#include "few_tokens.h"

namespace custom_ops {
namespace {

Tensor CpuRmsNorm(const Tensor& x, const Tensor& weight, double epsilon) {
    constexpr const char* kOp = "cpu_rms_norm";
    CheckGiven(kOp, {{"x", &x}, {"weight", &weight}});
    CheckTokens(kOp, x);
    CheckNorm(kOp, "weight", weight, x, epsilon);
    const int64_t columns = x.size(-1);
    const Contiguous in(x), factor(weight);
    const Shape shape(x.sizes(), {});
    Tensor y = NewEmpty(x, shape, x.scalar_type());
    const native::RmsNormArgs args{in.Data(), factor.Floats(), y.mutable_data_ptr(), ElementOf(x), columns, epsilon};
    const int64_t total = Product(shape), tokens = columns ? total / columns : 0;
    const native::Kernels& kernels = native::HostKernels();
    const int64_t bytes = 2 * total * static_cast<int64_t>(x.element_size());
    ForTokens(tokens, bytes, [&](int64_t first, int64_t last) { kernels.rmsNorm(args, first, last); });
    return y;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) { m.def("cpu_rms_norm(Tensor x, Tensor weight, float epsilon) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(custom, CPU, m) { m.impl("cpu_rms_norm", TORCH_BOX(&CpuRmsNorm)); }

}  // namespace custom_ops
