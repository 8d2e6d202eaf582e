// npu_hc_post: the block's output merged into the residual streams.
#include "hc_post.h"

#include "op_support.h"

namespace custom_ops {

HcPostShape CheckHcPost(const HcPostInputs& in) {
    constexpr const char* kOp = "npu_hc_post";
    const auto floats = {ScalarType::BFloat16, ScalarType::Half, ScalarType::Float};
    CheckGiven(kOp, {{"x", &in.x}, {"residual", &in.residual}, {"post", &in.post}, {"comb", &in.comb}});
    const Sizes residual = in.residual.sizes();
    if (residual.size() != 3 && residual.size() != 4)
        Fail(kOp, "residual must be [T, hc_mult, d] or [b, s, hc_mult, d], got " + Text(residual));
    const Sizes tokens = residual.slice(0, residual.size() - 2);
    const int64_t streams = residual[residual.size() - 2], hidden = residual.back();
    if (streams < 1 || streams > native::kMaxStreams)
        Fail(kOp, "hc_mult (dim -2 of residual) must be 1 to 16, got residual " + Text(residual));
    if (hidden < 1) Fail(kOp, "d (dim -1 of residual) must be at least 1, got residual " + Text(residual));
    CheckDtype(kOp, "residual", in.residual, floats);
    CheckDtype(kOp, "post", in.post, floats);

    const bool flat = tokens.size() == 1;
    const auto check = [&](const char* argument, const Tensor& tensor, const char* symbols, Sizes want) {
        if (tensor.sizes() == want) return;
        Fail(kOp, std::string(argument) + " must be " + (flat ? "[T, " : "[b, s, ") + symbols + "] = " + Text(want) +
                      " to match residual " + Text(residual) + ", got " + Text(tensor.sizes()));
    };
    CheckSameDtype(kOp, "x", in.x, in.residual, "residual");
    CheckSameDtype(kOp, "comb", in.comb, in.post, "post");
    check("x", in.x, "d", Shape(tokens, {hidden}));
    check("post", in.post, "hc_mult", Shape(tokens, {streams}));
    check("comb", in.comb, "hc_mult, hc_mult", Shape(tokens, {streams, streams}));
    CheckDevice(kOp, "residual", in.residual, in.x);
    CheckDevice(kOp, "post", in.post, in.x);
    CheckDevice(kOp, "comb", in.comb, in.x);
    return {Shape(tokens, {streams, hidden}), Product(tokens), streams, hidden};
}

namespace {

Tensor HcPostCpu(const Tensor& x, const Tensor& residual, const Tensor& post, const Tensor& comb) {
    const HcPostShape shape = CheckHcPost({x, residual, post, comb});
    Contiguous in;
    Tensor y = NewEmpty(residual, shape.y, residual.scalar_type());
    const int64_t yBytes = shape.tokens * shape.streams * shape.hidden * static_cast<int64_t>(residual.element_size());
    const native::PostArgs args{in.Data(x), in.Data(residual), in.Data(post), in.Data(comb), y.mutable_data_ptr(), ElementOf(residual),
                                ElementOf(post), static_cast<int32_t>(shape.streams), shape.hidden, yBytes >= kLargeResultBytes};
    const native::Kernels& kernels = native::HostKernels();
    ForTokens(shape.tokens, 2 * yBytes, [&](int64_t first, int64_t last) { kernels.post(args, first, last); });
    return y;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) {
    m.def("npu_hc_post(Tensor x, Tensor residual, Tensor post, Tensor comb) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(custom, CPU, m) { m.impl("npu_hc_post", TORCH_BOX(&HcPostCpu)); }

}  // namespace custom_ops
