// Normalisations and their gradients. float16 and bfloat16 are computed in float32 and rounded once.
#include "sim/aclnn/operator.h"

namespace sim::aclnn {
namespace {

Tensor Wide(const Tensor& x) { return at::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x; }
Optional Wide(const Optional& x) { return x.has_value() && x->defined() && x->numel() != 0 ? Optional(Wide(*x)) : std::nullopt; }
template <size_t N>
void Give(const std::tuple<Tensor, Tensor, Tensor>& grads, const std::array<bool, N>& mask, const OptionalOut& a, const OptionalOut& b,
          const OptionalOut& c) {
    if (mask[0]) a = std::get<0>(grads);
    if (mask[1]) b = std::get<1>(grads);
    if (mask[2]) c = std::get<2>(grads);
}

// rstd = 1 / sqrt(mean(x^2) + eps) over the dimensions of gamma, y = x * rstd * gamma
Tensor Rstd(const Tensor& x, const Tensor& gamma, double eps) {
    Ints dims;
    for (int64_t axis = 1; axis <= gamma.dim(); ++axis) dims.push_back(-axis);
    return at::rsqrt(at::mean(x * x, dims, true) + eps);
}
// dx = rstd * (g - x * rstd^2 * mean(g * x)) with g = dy * gamma
std::pair<Tensor, Tensor> RmsNormGrad(const Tensor& dy, const Tensor& x, const Tensor& rstd, const Tensor& gamma) {
    Ints dims;
    for (int64_t axis = 1; axis <= gamma.dim(); ++axis) dims.push_back(-axis);
    const Tensor g = dy * gamma;
    return {rstd * (g - x * rstd * rstd * at::mean(g * x, dims, true)), (dy * x * rstd).sum_to_size(gamma.sizes())};
}
void RmsNorm(const Tensor& x, const Tensor& gamma, double eps, const Out& y, const OptionalOut& rstd) {
    const Tensor r = Rstd(x, gamma, eps);
    y = x * r * gamma;
    rstd = r;
}

}  // namespace

ACLNN(LayerNorm, Any, ((Tensor)input, (Ints)shape, (Optional)weight, (Optional)bias, (double)eps, (Out)out, (OptionalOut)mean,
                       (OptionalOut)rstd),
      std::tie(out, mean, rstd) = at::native_layer_norm(Wide(input), shape, Wide(weight), Wide(bias), eps))
ACLNN(FastLayerNorm, Any, ((Tensor)input, (Ints)shape, (Optional)weight, (Optional)bias, (double)eps, (Out)out, (OptionalOut)mean,
                           (OptionalOut)rstd),
      std::tie(out, mean, rstd) = at::native_layer_norm(Wide(input), shape, Wide(weight), Wide(bias), eps))
ACLNN(LayerNormBackward, Any, ((Tensor)grad, (Tensor)input, (Ints)shape, (Tensor)mean, (Tensor)rstd, (Optional)weight, (Optional)bias,
                               (Bools)mask, (OptionalOut)gradInput, (OptionalOut)gradWeight, (OptionalOut)gradBias),
      Give(at::native_layer_norm_backward(Wide(grad), Wide(input), shape, Wide(mean), Wide(rstd), Wide(weight), Wide(bias),
                                          mask.Array<3>()),
           mask.Array<3>(), gradInput, gradWeight, gradBias))
ACLNN(RmsNorm, Any, ((Tensor)x, (Tensor)gamma, (double)eps, (Out)y, (OptionalOut)rstd), RmsNorm(Wide(x), Wide(gamma), eps, y, rstd))
ACLNN(GemmaRmsNorm, Any, ((Tensor)x, (Tensor)gamma, (double)eps, (Out)y, (OptionalOut)rstd),
      RmsNorm(Wide(x), Wide(gamma) + 1, eps, y, rstd))
ACLNN(RmsNormGrad, Any, ((Tensor)dy, (Tensor)x, (Tensor)rstd, (Tensor)gamma, (Out)dx, (Out)dgamma),
      std::tie(dx, dgamma) = RmsNormGrad(Wide(dy), Wide(x), rstd, Wide(gamma)))
ACLNN(AddRmsNorm, Any, ((Tensor)x1, (Tensor)x2, (Tensor)gamma, (double)eps, (Out)y, (OptionalOut)rstd, (Out)x), x = x1 + x2;
      RmsNorm(Wide(x), Wide(gamma), eps, y, rstd))
ACLNN(BatchNorm, Any, ((Tensor)input, (Optional)weight, (Optional)bias, (Optional)runningMean, (Optional)runningVar, (bool)training,
                       (double)momentum, (double)eps, (Out)out, (OptionalOut)saveMean, (OptionalOut)saveInvstd),
      const auto [y, mean, invstd] = at::native_batch_norm(Wide(input), Wide(weight), Wide(bias), runningMean, runningVar, training,
                                                           momentum, eps);
      out = y; if (training) { saveMean = mean; saveInvstd = invstd; })
ACLNN(BatchNormBackward, Any, ((Tensor)grad, (Tensor)input, (Optional)weight, (Optional)runningMean, (Optional)runningVar,
                               (Optional)saveMean, (Optional)saveInvstd, (bool)training, (double)eps, (Bools)mask, (OptionalOut)gradInput,
                               (OptionalOut)gradWeight, (OptionalOut)gradBias),
      Give(at::native_batch_norm_backward(Wide(grad), Wide(input), Wide(weight), Wide(runningMean), Wide(runningVar), Wide(saveMean),
                                          Wide(saveInvstd), training, eps, mask.Array<3>()), mask.Array<3>(), gradInput, gradWeight,
                                          gradBias))
ACLNN(GroupNorm, Any, ((Tensor)input, (Optional)weight, (Optional)bias, (int64_t)n, (int64_t)c, (int64_t)hw, (int64_t)group, (double)eps,
                       (Out)out, (OptionalOut)mean, (OptionalOut)rstd),
      std::tie(out, mean, rstd) = at::native_group_norm(Wide(input).contiguous(), Wide(weight), Wide(bias), n, c, hw, group, eps))
ACLNN(GroupNormBackward, Any, ((Tensor)grad, (Tensor)input, (Tensor)mean, (Tensor)rstd, (Optional)weight, (int64_t)n, (int64_t)c,
                               (int64_t)hw, (int64_t)group, (Bools)mask, (OptionalOut)gradInput, (OptionalOut)gradWeight,
                               (OptionalOut)gradBias),
      Give(at::native_group_norm_backward(Wide(grad).contiguous(), Wide(input).contiguous(), Wide(mean), Wide(rstd), Wide(weight), n, c, hw,
                                          group, mask.Array<3>()),
           mask.Array<3>(), gradInput, gradWeight, gradBias))
ACLNN(Renorm, Any, ((Tensor)self, (Scalar)p, (int64_t)dim, (Scalar)maxNorm, (Out)out), out = at::renorm(self, p, dim, maxNorm))
ACLNN(InplaceRenorm, Any, ((Out)self, (Scalar)p, (int64_t)dim, (Scalar)maxNorm), self = at::renorm(self, p, dim, maxNorm))

}  // namespace sim::aclnn
