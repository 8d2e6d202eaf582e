// cpu_rms_norm: what PyTorch makes of nine operators, of which each costs as much as the arithmetic of a token.
#include "few_tokens.h"

namespace custom_ops {
namespace {

Tensor CpuRmsNorm(const Tensor& x, const Tensor& weight, double epsilon) {
    constexpr const char* kOp = "cpu_rms_norm";
    CheckGiven(kOp, {{"x", &x}, {"weight", &weight}});
    CheckTokens(kOp, x);
    CheckNorm(kOp, "weight", weight, x, epsilon);
    const FewTokens tokens{kOp, x, &weight, epsilon};
    Contiguous in;
    Tensor y = NewEmpty(x, Shape(x.sizes(), {}), x.scalar_type());
    const native::RmsNormArgs args{in.Data(x), in.Floats(weight), y.mutable_data_ptr(), tokens.Element(), tokens.Columns(), epsilon};
    const native::Kernels& kernels = native::HostKernels();
    const int64_t bytes = 2 * x.numel() * static_cast<int64_t>(x.element_size());
    ForTokens(tokens.Tokens(), bytes, [&](int64_t first, int64_t last) { kernels.rmsNorm(args, first, last); });
    return y;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) { m.def("cpu_rms_norm(Tensor x, Tensor weight, float epsilon) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(custom, CPU, m) { m.impl("cpu_rms_norm", TORCH_BOX(&CpuRmsNorm)); }

}  // namespace custom_ops
