// The operators on NPU tensors (PrivateUse1): the same checks as on the CPU, then aclnn.
#include <memory>
#include <tuple>

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>

#include "../hc_pre_inv_rms.h"
#include "../hc_pre_sinkhorn.h"
#include "../op_support.h"
#include "aclnn_call.h"

namespace custom_ops::npu {
namespace {

Tensor Dense(const Tensor& tensor) { return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor); }

Tensor HcPreInvRms(const Tensor& x, double epsilon) {
    using GetWorkspaceSize = int (*)(const aclTensor*, double, const aclTensor*, uint64_t*, aclOpExecutor**);
    const HcPreInvRmsShape shape = CheckHcPreInvRms(x, epsilon);
    const torch::stable::accelerator::DeviceGuard device(x.get_device_index());
    Tensor y = NewEmpty(x, shape.y, ScalarType::Float);
    if (shape.tokens == 0) return y;
    const auto t = std::make_shared<AclTensors>(std::vector<Tensor>{Dense(x), y});
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    constexpr const char* kPrepare = "aclnnHcPreInvRmsGetWorkspaceSize";
    CheckStatus(kPrepare, reinterpret_cast<GetWorkspaceSize>(Find(kPrepare, true))((*t)[0], epsilon, (*t)[1], &bytes, &executor));
    Launch("aclnnHcPreInvRms", bytes, executor, t, x);
    return y;
}

std::tuple<Tensor, Tensor, Tensor> HcPreSinkhorn(const Tensor& mixes, const Tensor& rsqrt, const Tensor& hcScale, const Tensor& hcBase,
                                                 const Tensor& x, int64_t hcMult, int64_t iterations, double eps) {
    using In = const aclTensor*;
    using GetWorkspaceSize = int (*)(In, In, In, In, In, int64_t, int64_t, double, In, In, In, uint64_t*, aclOpExecutor**);
    const HcPreSinkhornShape shape = CheckHcPreSinkhorn({mixes, rsqrt, hcScale, hcBase, x}, hcMult, iterations, eps);
    const torch::stable::accelerator::DeviceGuard device(x.get_device_index());
    Tensor y = NewEmpty(x, shape.y, x.scalar_type());
    Tensor post = NewEmpty(x, shape.post, ScalarType::Float);
    Tensor comb = NewEmpty(x, shape.comb, ScalarType::Float);
    if (shape.tokens == 0) return {y, post, comb};
    const auto t = std::make_shared<AclTensors>(
        std::vector<Tensor>{Dense(mixes), Dense(rsqrt), Dense(hcScale), Dense(hcBase), Dense(x), y, post, comb});
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    constexpr const char* kPrepare = "aclnnHcPreSinkhornGetWorkspaceSize";
    CheckStatus(kPrepare, reinterpret_cast<GetWorkspaceSize>(Find(kPrepare, true))((*t)[0], (*t)[1], (*t)[2], (*t)[3], (*t)[4], hcMult,
                                                                                   iterations, eps, (*t)[5], (*t)[6], (*t)[7], &bytes,
                                                                                   &executor));
    Launch("aclnnHcPreSinkhorn", bytes, executor, t, x);
    return {y, post, comb};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(custom, PrivateUse1, m) {
    m.impl("npu_hc_pre_inv_rms", TORCH_BOX(&HcPreInvRms));
    m.impl("npu_hc_pre_sinkhorn", TORCH_BOX(&HcPreSinkhorn));
}

}  // namespace custom_ops::npu
