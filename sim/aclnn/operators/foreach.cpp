// The same function on every tensor of a list, as optimisers call it.
#include "sim/aclnn/operator.h"

namespace sim::aclnn {
namespace {

Scalar Item(const Tensor& scalar) { return scalar.item(); }
void Give(const Outs& out, const std::vector<Tensor>& results) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = results[i];
}
// modes of RoundOffNumber: the rounding modes of the cast instruction
std::vector<Tensor> Round(const Tensors& x, int64_t mode) {
    switch (mode) {
        case 1: return at::_foreach_round(x);
        case 2: return at::_foreach_floor(x);
        case 3: return at::_foreach_ceil(x);
        case 5: return at::_foreach_trunc(x);
        default: TORCH_CHECK(false, "rounding mode ", mode, " is not modelled");
    }
}

}  // namespace

#define FOREACH_UNARY(Name, function) ACLNN(Foreach##Name, Any, ((Tensors)x, (Outs)out), Give(out, at::function(x)))
FOREACH_UNARY(Abs, _foreach_abs)
FOREACH_UNARY(Acos, _foreach_acos)
FOREACH_UNARY(Asin, _foreach_asin)
FOREACH_UNARY(Atan, _foreach_atan)
FOREACH_UNARY(Cos, _foreach_cos)
FOREACH_UNARY(Cosh, _foreach_cosh)
FOREACH_UNARY(Erf, _foreach_erf)
FOREACH_UNARY(Erfc, _foreach_erfc)
FOREACH_UNARY(Exp, _foreach_exp)
FOREACH_UNARY(Expm1, _foreach_expm1)
FOREACH_UNARY(Log, _foreach_log)
FOREACH_UNARY(Log10, _foreach_log10)
FOREACH_UNARY(Log1p, _foreach_log1p)
FOREACH_UNARY(Log2, _foreach_log2)
FOREACH_UNARY(Neg, _foreach_neg)
FOREACH_UNARY(Reciprocal, _foreach_reciprocal)
FOREACH_UNARY(Sigmoid, _foreach_sigmoid)
FOREACH_UNARY(Sign, _foreach_sign)
FOREACH_UNARY(Sin, _foreach_sin)
FOREACH_UNARY(Sinh, _foreach_sinh)
FOREACH_UNARY(Sqrt, _foreach_sqrt)
FOREACH_UNARY(Tan, _foreach_tan)
FOREACH_UNARY(Tanh, _foreach_tanh)
#undef FOREACH_UNARY

// Four forms of a binary function: with a list, a scalar in a tensor, a scalar, a list of scalars.
#define FOREACH_LIST(Name, function) ACLNN(Foreach##Name##List, Any, ((Tensors)x, (Tensors)y, (Outs)out), Give(out, at::function(x, y)))
#define FOREACH_SCALARS(Name, function)                                                                                            \
    ACLNN(Foreach##Name##Scalar, Any, ((Tensors)x, (Tensor)scalar, (Outs)out), Give(out, at::function(x, Item(scalar))))           \
    ACLNN(Foreach##Name##ScalarV2, Any, ((Tensors)x, (Scalar)scalar, (Outs)out), Give(out, at::function(x, scalar)))               \
    ACLNN(Foreach##Name##ScalarList, Any, ((Tensors)x, (Scalars)scalars, (Outs)out), Give(out, at::function(x, scalars)))
FOREACH_SCALARS(Add, _foreach_add)
FOREACH_SCALARS(Sub, _foreach_sub)
FOREACH_SCALARS(Mul, _foreach_mul)
FOREACH_SCALARS(Div, _foreach_div)
FOREACH_SCALARS(Maximum, _foreach_maximum)
FOREACH_SCALARS(Minimum, _foreach_minimum)
FOREACH_SCALARS(Pow, _foreach_pow)
FOREACH_LIST(Mul, _foreach_mul)
FOREACH_LIST(Div, _foreach_div)
FOREACH_LIST(Maximum, _foreach_maximum)
FOREACH_LIST(Minimum, _foreach_minimum)
FOREACH_LIST(Pow, _foreach_pow)
#undef FOREACH_LIST
#undef FOREACH_SCALARS
ACLNN(ForeachAddList, Any, ((Tensors)x, (Tensors)y, (Tensor)alpha, (Outs)out), Give(out, at::_foreach_add(x, y, Item(alpha))))
ACLNN(ForeachAddListV2, Any, ((Tensors)x, (Tensors)y, (Scalar)alpha, (Outs)out), Give(out, at::_foreach_add(x, y, alpha)))
ACLNN(ForeachSubList, Any, ((Tensors)x, (Tensors)y, (Tensor)alpha, (Outs)out), Give(out, at::_foreach_sub(x, y, Item(alpha))))
ACLNN(ForeachSubListV2, Any, ((Tensors)x, (Tensors)y, (Scalar)alpha, (Outs)out), Give(out, at::_foreach_sub(x, y, alpha)))
ACLNN(ForeachPowScalarAndTensor, Any, ((Scalar)scalar, (Tensors)exponents, (Outs)out), Give(out, at::_foreach_pow(scalar, exponents)))
ACLNN(ForeachLerpScalar, Any, ((Tensors)x, (Tensors)y, (Scalar)weight, (Outs)out), Give(out, at::_foreach_lerp(x, y, weight)))
ACLNN(ForeachLerpList, Any, ((Tensors)x, (Tensors)y, (Tensors)weights, (Outs)out), Give(out, at::_foreach_lerp(x, y, weights)))

#define FOREACH_ADDC(Name, function)                                                                                  \
    ACLNN(Foreach##Name##Scalar, Any, ((Tensors)x, (Tensors)y, (Tensors)z, (Tensor)scalar, (Outs)out),                \
          Give(out, at::function(x, y, z, Item(scalar))))                                                             \
    ACLNN(Foreach##Name##ScalarV2, Any, ((Tensors)x, (Tensors)y, (Tensors)z, (Scalar)scalar, (Outs)out),              \
          Give(out, at::function(x, y, z, scalar)))
FOREACH_ADDC(Addcmul, _foreach_addcmul)
FOREACH_ADDC(Addcdiv, _foreach_addcdiv)
#undef FOREACH_ADDC
ACLNN(ForeachAddcmulScalarList, Any, ((Tensors)x, (Tensors)y, (Tensors)z, (Scalars)scalars, (Outs)out),
      Give(out, at::_foreach_addcmul(x, y, z, scalars)))
ACLNN(ForeachAddcdivScalarList, Any, ((Tensors)x, (Tensors)y, (Tensors)z, (Tensor)scalars, (Outs)out),
      Give(out, at::_foreach_addcdiv(x, y, z, scalars.cpu())))

ACLNN(ForeachCopy, Any, ((Tensors)source, (Outs)out), Give(out, source))
ACLNN(ForeachZeroInplace, Any, ((Outs)x), for (const Out& each : x) each.zero_())
ACLNN(ForeachNorm, Any, ((Tensors)x, (Scalar)order, (Outs)out), Give(out, at::_foreach_norm(x, order)))
ACLNN(ForeachRoundOffNumber, Any, ((Tensors)x, (Tensor)mode, (Outs)out), Give(out, Round(x, Item(mode).toLong())))
ACLNN(ForeachRoundOffNumberV2, Any, ((Tensors)x, (Scalar)mode, (Outs)out), Give(out, Round(x, mode.toLong())))
ACLNN(ForeachNonFiniteCheckAndUnscale, Any, ((Outs)grads, (Out)foundInf, (Tensor)inverseScale), for (const Out& grad : grads) {
    if (!at::isfinite(grad).all().item<bool>()) foundInf.fill_(1);
    grad = grad * inverseScale.reshape({});
})

// AdamW with decoupled weight decay: p <- p (1 - lr wd); m, v <- moments; p <- p - lr m^ / (sqrt(v^) + eps)
ACLNN(ApplyAdamWV2, Any, ((Out)p, (Out)m, (Out)v, (OptionalOut)maxV, (Tensor)grad, (Tensor)step, (float)lr, (float)beta1, (float)beta2,
                          (float)weightDecay, (float)eps, (bool)amsgrad, (bool)maximize),
      const Tensor g = (maximize ? -grad : grad).to(m.scalar_type()); const double t = step.item().toDouble() + 1;
      m = m * beta1 + g * (1 - beta1); v = v * beta2 + g * g * (1 - beta2); if (amsgrad) maxV = at::maximum(maxV, v);
      const Tensor root = at::sqrt((amsgrad ? Tensor(maxV) : Tensor(v)) / (1 - std::pow(static_cast<double>(beta2), t))) + eps;
      p = p * (1 - static_cast<double>(lr) * weightDecay) - m / root * (lr / (1 - std::pow(static_cast<double>(beta1), t))))

// Loss scale: halved (backoff) after an overflow, grown after `interval` steps without one.
ACLNN(AmpUpdateScale, Any, ((Tensor)scale, (Tensor)tracker, (Tensor)foundInf, (double)growth, (double)backoff, (int64_t)interval,
                            (Out)newScale, (Out)newTracker),
      const bool overflow = foundInf.item().toDouble() != 0; const int64_t good = overflow ? 0 : tracker.item().toLong() + 1;
      newScale = overflow ? scale * backoff : good == interval ? scale * growth : scale; newTracker.fill_(good == interval ? 0 : good))

}  // namespace sim::aclnn
