#include "task_queue.h"

#include <limits>

#include <torch/csrc/inductor/aoti_torch/utils.h>
#include <torch_npu/csrc/core/npu/NPUFormat.h>
#include <torch_npu/csrc/core/npu/NPUStream.h>
#include <torch_npu/csrc/framework/OpCommand.h>

#include "cann_functions.h"

namespace custom_ops::npu {
namespace {

const at::Tensor& AtTensor(const Tensor& tensor) { return *torch::aot_inductor::tensor_handle_to_tensor_pointer(tensor.get()); }

Tensor StableTensor(at::Tensor tensor) { return Tensor(torch::aot_inductor::new_tensor_handle(std::move(tensor))); }

bool HasPrivateFormat(const at::Tensor& tensor) {
    switch (at_npu::native::get_npu_format(tensor)) {
        case ACL_FORMAT_UNDEFINED: case ACL_FORMAT_ND: case ACL_FORMAT_NCHW: case ACL_FORMAT_NHWC: case ACL_FORMAT_NCDHW:
        case ACL_FORMAT_NDHWC: case ACL_FORMAT_NCL: return false;
        default: return true;
    }
}

}  // namespace

void* CurrentStream() {
    void* stream = c10_npu::getCurrentNPUStream().stream(false);  // false: do not drain the queue first
    UseCoresOf(stream, /*inQueue=*/false);
    return stream;
}

void UseCoresOf(void* stream, bool inQueue) {
    const bool limited = inQueue ? c10_npu::check_dequeue_need_use(stream) : c10_npu::check_enqueue_need_use(stream);
    if (limited && Cann().useStreamResources) Cann().useStreamResources(stream);
}

void Enqueue(const std::string& name, const std::function<int()>& launch) { at_npu::native::OpCommand::RunOpApiV2(name, launch); }

Tensor NewEmpty(const Tensor& like, Sizes shape, ScalarType dtype) {
    return StableTensor(at::empty({shape.data(), shape.size()}, AtTensor(like).options().dtype(dtype)));
}

Tensor SaturatedToInt32(const Tensor& tensor) {
    using Limits = std::numeric_limits<int32_t>;
    return StableTensor(AtTensor(tensor).clamp(Limits::min(), Limits::max()).to(at::kInt));
}

bool IsDense(const Tensor& tensor) { return AtTensor(tensor).is_contiguous() && !HasPrivateFormat(AtTensor(tensor)); }

Tensor Dense(const Tensor& tensor) {
    const at::Tensor& given = AtTensor(tensor);
    return StableTensor((HasPrivateFormat(given) ? at_npu::native::npu_format_cast(given, ACL_FORMAT_ND) : given).contiguous());
}

}  // namespace custom_ops::npu
