// npu_hc_pre_sinkhorn: mixing weights from the projected streams, Sinkhorn normalisation of the residual mix, weighted sum of the streams.
#include "hc_pre_sinkhorn.h"

#include <tuple>

#include "op_support.h"

namespace custom_ops {

HcMixingShape CheckHcPreSinkhorn(const HcPreSinkhornInputs& in, int64_t hcMult, int64_t iterations, double eps) {
    constexpr const char* kOp = "npu_hc_pre_sinkhorn";
    CheckMixingAttributes(kOp, hcMult, iterations, eps);
    CheckGiven(kOp, {{"mixes", &in.mixes}, {"rsqrt", &in.rsqrt}, {"hc_scale", &in.hcScale}, {"hc_base", &in.hcBase}, {"x", &in.x}});
    const HcMixingShape shape = CheckStreams(kOp, in.x, hcMult);
    const Sizes tokens = in.x.sizes().slice(0, in.x.sizes().size() - 2);
    const bool flat = tokens.size() == 1;
    CheckBeside(kOp, "mixes", in.mixes, flat ? "[T, (2 + hc_mult) * hc_mult]" : "[b, s, (2 + hc_mult) * hc_mult]",
                Shape(tokens, {MixesPerToken(hcMult)}), in.x);
    if (in.rsqrt.sizes() == tokens) CheckDtype(kOp, "rsqrt", in.rsqrt, {ScalarType::Float});
    else CheckBeside(kOp, "rsqrt", in.rsqrt, flat ? "[T] or [T, 1]" : "[b, s] or [b, s, 1]", Shape(tokens, {1}), in.x);
    CheckScaleAndBase(kOp, in.hcScale, in.hcBase, in.x, hcMult);
    CheckDevice(kOp, "mixes", in.mixes, in.x);
    CheckDevice(kOp, "rsqrt", in.rsqrt, in.x);
    CheckDevice(kOp, "hc_scale", in.hcScale, in.x);
    CheckDevice(kOp, "hc_base", in.hcBase, in.x);
    return shape;
}

namespace {

std::tuple<Tensor, Tensor, Tensor> HcPreSinkhornCpu(const Tensor& mixes, const Tensor& rsqrt, const Tensor& hcScale,
                                                    const Tensor& hcBase, const Tensor& x, int64_t hcMult,
                                                    int64_t iterations, double eps) {
    const HcMixingShape shape = CheckHcPreSinkhorn({mixes, rsqrt, hcScale, hcBase, x}, hcMult, iterations, eps);
    Contiguous in;
    Tensor y = NewEmpty(x, shape.y, x.scalar_type());
    Tensor post = NewEmpty(x, shape.post, ScalarType::Float);
    Tensor comb = NewEmpty(x, shape.comb, ScalarType::Float);
    const int64_t yBytes = shape.tokens * shape.hidden * static_cast<int64_t>(x.element_size());
    const native::SinkhornArgs args{in.Floats(mixes), in.Floats(rsqrt), in.Floats(hcScale), in.Floats(hcBase), in.Data(x),
                                    y.mutable_data_ptr(), static_cast<float*>(post.mutable_data_ptr()),
                                    static_cast<float*>(comb.mutable_data_ptr()), ElementOf(x),
                                    static_cast<int32_t>(hcMult), shape.hidden, iterations, static_cast<float>(eps),
                                    yBytes >= kLargeResultBytes};
    const native::Kernels& kernels = native::HostKernels();
    ForTokens(shape.tokens, yBytes * (hcMult + 1), [&](int64_t first, int64_t last) { kernels.sinkhorn(args, first, last); },
              native::kMixedPerBlock);
    return {std::move(y), std::move(post), std::move(comb)};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) {
    m.def("npu_hc_pre_sinkhorn(Tensor mixes, Tensor rsqrt, Tensor hc_scale, Tensor hc_base, Tensor x, int hc_mult=4, "
          "int hc_sinkhorn_iters=20, float hc_eps=1e-5) -> (Tensor y, Tensor post, Tensor comb_frag)");
}
STABLE_TORCH_LIBRARY_IMPL(custom, CPU, m) { m.impl("npu_hc_pre_sinkhorn", TORCH_BOX(&HcPreSinkhornCpu)); }

}  // namespace custom_ops
