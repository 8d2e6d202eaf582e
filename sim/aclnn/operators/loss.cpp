// Losses and their gradients. reduction: 0 none, 1 mean, 2 sum.
#include "sim/aclnn/operator.h"

namespace sim::aclnn {
namespace {

Tensor Long(const Tensor& index) { return index.to(at::kLong); }

}  // namespace

ACLNN(MseLoss, Any, ((Tensor)self, (Tensor)target, (int64_t)reduction, (Out)out), out = at::mse_loss(self, target, reduction))
ACLNN(MseLossBackward, Any, ((Tensor)grad, (Tensor)self, (Tensor)target, (int64_t)reduction, (Out)out),
      out = at::mse_loss_backward(grad, self, target, reduction))
ACLNN(L1Loss, Any, ((Tensor)self, (Tensor)target, (int64_t)reduction, (Out)out), out = at::l1_loss(self, target, reduction))
ACLNN(L1LossBackward, Any, ((Tensor)grad, (Tensor)self, (Tensor)target, (int64_t)reduction, (Out)out),
      const Tensor each = at::sign(self - target) * grad; out = reduction == 1 ? each / self.numel() : each)
ACLNN(SmoothL1Loss, Any, ((Tensor)self, (Tensor)target, (int64_t)reduction, (float)beta, (Out)out),
      out = at::smooth_l1_loss(self, target, reduction, beta))
ACLNN(SmoothL1LossBackward, Any, ((Tensor)grad, (Tensor)self, (Tensor)target, (int64_t)reduction, (float)beta, (Out)out),
      out = at::smooth_l1_loss_backward(grad, self, target, reduction, beta))
ACLNN(SoftMarginLoss, Any, ((Tensor)self, (Tensor)target, (int64_t)reduction, (Out)out),
      out = at::soft_margin_loss(self, target, reduction))
ACLNN(SoftMarginLossBackward, Any, ((Tensor)grad, (Tensor)self, (Tensor)target, (int64_t)reduction, (Out)out),
      out = at::soft_margin_loss_backward(grad, self, target, reduction))
ACLNN(KlDiv, Any, ((Tensor)self, (Tensor)target, (int64_t)reduction, (bool)logTarget, (Out)out),
      out = at::kl_div(self, target, reduction, logTarget))
ACLNN(KlDivBackward, Any, ((Tensor)grad, (Tensor)self, (Tensor)target, (int64_t)reduction, (bool)logTarget, (Out)out),
      const Tensor each = -(logTarget ? at::exp(target) : target) * grad; out = reduction == 1 ? each / self.numel() : each)
ACLNN(BinaryCrossEntropy, Any, ((Tensor)self, (Tensor)target, (Optional)weight, (int64_t)reduction, (Out)out),
      out = at::binary_cross_entropy(self, target, weight, reduction))
ACLNN(BinaryCrossEntropyBackward, Any, ((Tensor)grad, (Tensor)self, (Tensor)target, (Optional)weight, (int64_t)reduction, (Out)out),
      out = at::binary_cross_entropy_backward(grad, self, target, weight, reduction))
ACLNN(BinaryCrossEntropyWithLogits, Any, ((Tensor)self, (Tensor)target, (Optional)weight, (Optional)positiveWeight, (int64_t)reduction,
                                          (Out)out),
      out = at::binary_cross_entropy_with_logits(self, target, weight, positiveWeight, reduction))
// d/dx of -w [p y log s(x) + (1 - y) log(1 - s(x))] = w [(p y + 1 - y) s(x) - p y]
ACLNN(BinaryCrossEntropyWithLogitsBackward, Any,
      ((Tensor)grad, (Tensor)self, (Tensor)target, (Optional)weight, (Optional)positiveWeight, (int64_t)reduction, (Out)out),
          const Tensor py = positiveWeight ? *positiveWeight * target : target;
          Tensor each = ((py + 1 - target) * at::sigmoid(self) - py) * grad;
      if (weight) each = each * *weight; out = reduction == 1 ? each / self.numel() : each)
ACLNN(NLLLoss, Any, ((Tensor)self, (Tensor)target, (Optional)weight, (int64_t)reduction, (int64_t)ignoreIndex, (Out)out,
                     (OptionalOut)totalWeight),
      std::tie(out, totalWeight) = at::nll_loss_forward(self, Long(target), weight, reduction, ignoreIndex))
ACLNN(NLLLossBackward, Any, ((Tensor)grad, (Tensor)self, (Tensor)target, (Optional)weight, (int64_t)reduction, (int64_t)ignoreIndex,
                             (Tensor)totalWeight, (Out)out),
      out = at::nll_loss_backward(grad, self, Long(target), weight, reduction, ignoreIndex, totalWeight))
ACLNN(NLLLoss2d, Any, ((Tensor)self, (Tensor)target, (Optional)weight, (int64_t)reduction, (int64_t)ignoreIndex, (Out)out,
                       (OptionalOut)totalWeight),
      std::tie(out, totalWeight) = at::nll_loss2d_forward(self, Long(target), weight, reduction, ignoreIndex))
ACLNN(NLLLoss2dBackward, Any, ((Tensor)grad, (Tensor)self, (Tensor)target, (Optional)weight, (int64_t)reduction, (int64_t)ignoreIndex,
                               (Tensor)totalWeight, (Out)out),
      out = at::nll_loss2d_backward(grad, self, Long(target), weight, reduction, ignoreIndex, totalWeight))

}  // namespace sim::aclnn
