// npu_hc_pre_sinkhorn: mixing weights from the projected streams, Sinkhorn normalisation of the residual mix, weighted sum of the streams.
#include "hc_pre_sinkhorn.h"

#include <limits>
#include <tuple>

#include "op_support.h"

namespace custom_ops {

HcPreSinkhornShape CheckHcPreSinkhorn(const HcPreSinkhornInputs& in, int64_t hcMult, int64_t iterations, double eps) {
    constexpr const char* kOp = "npu_hc_pre_sinkhorn";
    CheckRange(kOp, "hc_mult", hcMult, 1, native::kMaxStreams);
    CheckRange(kOp, "hc_sinkhorn_iters", iterations, 1, std::numeric_limits<int32_t>::max());
    CheckFiniteNonNegative(kOp, "hc_eps", eps);

    CheckGiven(kOp, {{"mixes", &in.mixes}, {"rsqrt", &in.rsqrt}, {"hc_scale", &in.hcScale}, {"hc_base", &in.hcBase}, {"x", &in.x}});
    const Sizes x = in.x.sizes();
    if ((x.size() != 3 && x.size() != 4) || x[x.size() - 2] != hcMult)
        Fail(kOp, "x must be [T, hc_mult, d] or [b, s, hc_mult, d] with hc_mult = " + std::to_string(hcMult) + ", got " + Text(x));
    const Sizes tokens = x.slice(0, x.size() - 2);
    const int64_t hidden = x.back();
    if (hidden < 1) Fail(kOp, "d (dim -1 of x) must be at least 1, got x " + Text(x));
    CheckDtype(kOp, "x", in.x, {ScalarType::BFloat16, ScalarType::Half, ScalarType::Float});

    const int64_t mix = (2 + hcMult) * hcMult;
    const bool flat = tokens.size() == 1;
    const auto check = [&](const char* argument, const Tensor& tensor, const char* symbols, Sizes want) {
        CheckDtype(kOp, argument, tensor, {ScalarType::Float});
        if (tensor.sizes() == want) return;
        Fail(kOp, std::string(argument) + " must be " + symbols + " = " + Text(want) + " to match x " + Text(x) + ", got " +
                      Text(tensor.sizes()));
    };
    check("mixes", in.mixes, flat ? "[T, (2 + hc_mult) * hc_mult]" : "[b, s, (2 + hc_mult) * hc_mult]", Shape(tokens, {mix}));
    if (in.rsqrt.sizes() == tokens) CheckDtype(kOp, "rsqrt", in.rsqrt, {ScalarType::Float});
    else check("rsqrt", in.rsqrt, flat ? "[T] or [T, 1]" : "[b, s] or [b, s, 1]", Shape(tokens, {1}));
    check("hc_scale", in.hcScale, "[3]", Shape({}, {3}));
    check("hc_base", in.hcBase, "[(2 + hc_mult) * hc_mult]", Shape({}, {mix}));
    CheckDevice(kOp, "mixes", in.mixes, in.x);
    CheckDevice(kOp, "rsqrt", in.rsqrt, in.x);
    CheckDevice(kOp, "hc_scale", in.hcScale, in.x);
    CheckDevice(kOp, "hc_base", in.hcBase, in.x);
    return {Shape(tokens, {hidden}), Shape(tokens, {hcMult}), Shape(tokens, {hcMult, hcMult}), Product(tokens), hidden};
}

namespace {

std::tuple<Tensor, Tensor, Tensor> HcPreSinkhornCpu(const Tensor& mixes, const Tensor& rsqrt, const Tensor& hcScale,
                                                    const Tensor& hcBase, const Tensor& x, int64_t hcMult,
                                                    int64_t iterations, double eps) {
    // Past this, y cannot stay in a private cache anyway, and storing past it saves reading its lines first.
    constexpr int64_t kBypassBytes = 4 << 20;
    const HcPreSinkhornShape shape = CheckHcPreSinkhorn({mixes, rsqrt, hcScale, hcBase, x}, hcMult, iterations, eps);
    const Contiguous mixesIn(mixes), rsqrtIn(rsqrt), scaleIn(hcScale), baseIn(hcBase), xIn(x);
    Tensor y = NewEmpty(x, shape.y, x.scalar_type());
    Tensor post = NewEmpty(x, shape.post, ScalarType::Float);
    Tensor comb = NewEmpty(x, shape.comb, ScalarType::Float);
    const int64_t yBytes = shape.tokens * shape.hidden * static_cast<int64_t>(x.element_size());
    const native::SinkhornArgs args{mixesIn.Floats(), rsqrtIn.Floats(), scaleIn.Floats(), baseIn.Floats(), xIn.Data(),
                                    y.mutable_data_ptr(), static_cast<float*>(post.mutable_data_ptr()),
                                    static_cast<float*>(comb.mutable_data_ptr()), ElementOf(x),
                                    static_cast<int32_t>(hcMult), shape.hidden, iterations, static_cast<float>(eps),
                                    yBytes >= kBypassBytes};
    const native::Kernels& kernels = native::HostKernels();
    ForTokens(shape.tokens, yBytes * (hcMult + 1), [&](int64_t first, int64_t last) { kernels.sinkhorn(args, first, last); });
    return {std::move(y), std::move(post), std::move(comb)};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) {
    m.def("npu_hc_pre_sinkhorn(Tensor mixes, Tensor rsqrt, Tensor hc_scale, Tensor hc_base, Tensor x, int hc_mult=4, "
          "int hc_sinkhorn_iters=20, float hc_eps=1e-5) -> (Tensor y, Tensor post, Tensor comb_frag)");
}
STABLE_TORCH_LIBRARY_IMPL(custom, CPU, m) { m.impl("npu_hc_pre_sinkhorn", TORCH_BOX(&HcPreSinkhornCpu)); }

}  // namespace custom_ops
