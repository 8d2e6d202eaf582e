// Activation functions, gated units and their gradients.
#include "sim/aclnn/operator.h"

namespace sim::aclnn {
namespace {

// Of the tanh gelu or the erf gelu, by the number of GeluV2.
const char* Approximation(int64_t mode) { return mode == 1 ? "tanh" : "none"; }
// fast gelu: x * sigmoid(1.702 x)
Tensor FastGelu(const Tensor& x) { return x * at::sigmoid(x * 1.702); }
Tensor FastGeluGrad(const Tensor& grad, const Tensor& x) {
    const Tensor s = at::sigmoid(x * 1.702);
    return grad * s * (1 + 1.702 * x * (1 - s));
}
Tensor Wide(const Tensor& x) { return x.to(at::kFloat); }
Tensor SwiGlu(const Tensor& x, int64_t dim) {
    const auto halves = Wide(x).chunk(2, dim);
    return at::silu(halves[0]) * halves[1];
}
Tensor SwiGluGrad(const Tensor& grad, const Tensor& x, int64_t dim) {
    const auto halves = Wide(x).chunk(2, dim);
    return at::cat({at::silu_backward(Wide(grad) * halves[1], halves[0]), Wide(grad) * at::silu(halves[0])}, dim);
}

}  // namespace

ACLNN_BOTH(Relu, (), at::relu(self))
ACLNN_BOTH(Sigmoid, (), at::sigmoid(self))
ACLNN_BOTH(Tanh, (), at::tanh(self))
ACLNN_BOTH(Hardsigmoid, (), at::hardsigmoid(self))
ACLNN_BOTH(Hardswish, (), at::hardswish(self))
ACLNN_BOTH(Mish, (), at::mish(self))
ACLNN_BOTH(Hardtanh, ((Scalar)minimum, (Scalar)maximum), at::hardtanh(self, minimum, maximum))
ACLNN_BOTH(LeakyRelu, ((Scalar)negativeSlope), at::leaky_relu(self, negativeSlope))
ACLNN_BOTH(Elu, ((Scalar)alpha, (Scalar)scale, (Scalar)inputScale), at::elu(self, alpha, scale, inputScale))
ACLNN_BOTH(Celu, ((Scalar)alpha), at::celu(self, alpha))
ACLNN_BOTH(Threshold, ((Scalar)threshold, (Scalar)value), at::threshold(self, threshold, value))
ACLNN_OUT(Silu, (), at::silu(self))
ACLNN_OUT(Gelu, (), at::gelu(self))
ACLNN_OUT(GeluV2, ((int64_t)approximate), at::gelu(self, Approximation(approximate)))
ACLNN_OUT(FastGelu, (), FastGelu(self))
ACLNN_OUT(Softplus, ((Scalar)beta, (Scalar)threshold), at::softplus(self, beta, threshold))
ACLNN_OUT(Softshrink, ((Scalar)lambda), at::softshrink(self, lambda))
ACLNN_OUT(Hardshrink, ((Scalar)lambda), at::hardshrink(self, lambda))
ACLNN_OUT(LogSigmoid, (), at::log_sigmoid(self))
ACLNN(LogSigmoidForward, Any, ((Tensor)self, (Out)out, (OptionalOut)buffer), out = at::log_sigmoid(self))
ACLNN(Prelu, Any, ((Tensor)self, (Tensor)weight, (Out)out), out = at::_prelu_kernel(self, weight))
ACLNN(Glu, Any, ((Tensor)self, (int64_t)dim, (Out)out), out = at::glu(self, dim))
ACLNN(SwiGlu, Any, ((Tensor)self, (int64_t)dim, (Out)out), out = SwiGlu(self, dim))
ACLNN(Softmax, Any, ((Tensor)self, (int64_t)dim, (Out)out), out = at::softmax(self, dim))
ACLNN(LogSoftmax, Any, ((Tensor)self, (int64_t)dim, (Out)out), out = at::log_softmax(self, dim))

ACLNN(ThresholdBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Scalar)threshold, (Out)gradInput),
      gradInput = at::threshold_backward(gradOutput, self, threshold))
ACLNN(SigmoidBackward, Elementwise, ((Tensor)gradOutput, (Tensor)output, (Out)gradInput),
      gradInput = at::sigmoid_backward(gradOutput, output))
ACLNN(TanhBackward, Elementwise, ((Tensor)gradOutput, (Tensor)output, (Out)gradInput), gradInput = at::tanh_backward(gradOutput, output))
ACLNN(HardsigmoidBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Out)gradInput),
      gradInput = at::hardsigmoid_backward(gradOutput, self))
ACLNN(HardswishBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Out)gradInput),
      gradInput = at::hardswish_backward(gradOutput, self))
ACLNN(HardswishBackwardV2, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Out)gradInput),
      gradInput = at::hardswish_backward(gradOutput, self))
ACLNN(MishBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Out)gradInput), gradInput = at::mish_backward(gradOutput, self))
ACLNN(SiluBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Out)gradInput), gradInput = at::silu_backward(gradOutput, self))
ACLNN(GeluBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Out)gradInput), gradInput = at::gelu_backward(gradOutput, self))
ACLNN(GeluBackwardV2, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Text)approximate, (Out)gradInput),
      gradInput = at::gelu_backward(gradOutput, self, approximate))
ACLNN(FastGeluBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Out)gradInput), gradInput = FastGeluGrad(gradOutput, self))
ACLNN(HardtanhBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Scalar)minimum, (Scalar)maximum, (Out)gradInput),
      gradInput = at::hardtanh_backward(gradOutput, self, minimum, maximum))
ACLNN(LeakyReluBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Scalar)negativeSlope, (bool)isResult, (Out)gradInput),
      gradInput = at::leaky_relu_backward(gradOutput, self, negativeSlope, isResult))
ACLNN(EluBackward, Elementwise, ((Tensor)gradOutput, (Scalar)alpha, (Scalar)scale, (Scalar)inputScale, (bool)isResult, (Tensor)self,
                                 (Out)gradInput),
      gradInput = at::elu_backward(gradOutput, alpha, scale, inputScale, isResult, self))
ACLNN(SoftplusBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Scalar)beta, (Scalar)threshold, (Out)gradInput),
      gradInput = at::softplus_backward(gradOutput, self, beta, threshold))
ACLNN(SoftshrinkBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Scalar)lambda, (Out)gradInput),
      gradInput = at::softshrink_backward(gradOutput, self, lambda))
ACLNN(HardshrinkBackward, Elementwise, ((Tensor)gradOutput, (Tensor)self, (Scalar)lambda, (Out)gradInput),
      gradInput = at::hardshrink_backward(gradOutput, self, lambda))
ACLNN(LogSigmoidBackward, Any, ((Tensor)gradOutput, (Tensor)self, (Optional)buffer, (Out)gradInput),
      gradInput = gradOutput * at::sigmoid(-self))
ACLNN(PreluBackward, Any, ((Tensor)gradOutput, (Tensor)self, (Tensor)weight, (Out)gradInput, (Out)gradWeight),
      const auto [forInput, forWeight] = at::_prelu_kernel_backward(gradOutput, self, weight); gradInput = forInput;
      gradWeight = forWeight.sum_to_size(weight.sizes()))
ACLNN(GluBackward, Any, ((Tensor)gradOutput, (Tensor)self, (int64_t)dim, (Out)gradInput),
      gradInput = at::glu_backward(gradOutput, self, dim))
ACLNN(SwiGluGrad, Any, ((Tensor)gradOutput, (Tensor)self, (int64_t)dim, (Out)gradInput), gradInput = SwiGluGrad(gradOutput, self, dim))
ACLNN(SoftmaxBackward, Elementwise, ((Tensor)gradOutput, (Tensor)output, (int64_t)dim, (Out)gradInput),
      gradInput = at::_softmax_backward_data(gradOutput, output, dim, output.scalar_type()))
ACLNN(LogSoftmaxBackward, Elementwise, ((Tensor)gradOutput, (Tensor)output, (int64_t)dim, (Out)gradInput),
      gradInput = at::_log_softmax_backward_data(gradOutput, output, dim, output.scalar_type()))

}  // namespace sim::aclnn
