// The Autograd key of every operator: one test for "does an input want a gradient", then either the operator below autograd or its
// differentiable twin in Python (custom_ops/_autograd.py). In Python the same test costs 5 us on each call, as much as all the rest.
// Tensors that the operator writes get a new version: autograd then refuses a backward that would need their old values.
//
// This is the one file on PyTorch's C++ interface that is not stable: the library is loaded only by the torch version it was built
// with, any other uses the test in Python.
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

namespace {

// Those of the arguments that the schema marks as written. Inference tensors have no version.
std::vector<at::Tensor> Written(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    std::vector<at::Tensor> written;
    const std::vector<c10::Argument>& arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
        const c10::AliasInfo* alias = arguments[i].alias_info();
        if (!alias || !alias->isWrite()) continue;
        const c10::IValue& value = torch::jit::peek(stack, i, arguments.size());
        if (value.isTensor() && value.toTensor().defined() && !value.toTensor().is_inference()) written.push_back(value.toTensor());
    }
    return written;
}

void Gate(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    bool differentiable = false;
    const bool backward = c10::GradMode::is_enabled();
    for (const c10::IValue& value : torch::jit::last(*stack, op.schema().arguments().size())) {
        if (!value.isTensor()) continue;
        const at::Tensor& tensor = value.toTensor();
        // A tangent (forward mode, level 0 is the only one) is refused there, and not lost here.
        differentiable |= (backward && tensor.requires_grad()) || (tensor.defined() && tensor._fw_grad(0).defined());
    }
    if (!differentiable) {
        const std::vector<at::Tensor> written = Written(op, *stack);
        op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
        for (const at::Tensor& tensor : written) tensor.unsafeGetTensorImpl()->bump_version();
        return;
    }
    const std::string name = op.schema().name();  // custom::npu_x -> custom::_npu_x_with_gradient
    const size_t bare = name.rfind(':') + 1;
    c10::Dispatcher::singleton().findSchemaOrThrow((name.substr(0, bare) + "_" + name.substr(bare) + "_with_gradient").c_str(), "").callBoxed(stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(custom, Autograd, m) {
    for (const char* name : {"npu_fused_linear_attention", "npu_hc_post", "npu_hc_pre", "npu_hc_pre_inv_rms", "npu_hc_pre_sinkhorn"})
        m.impl(name, torch::CppFunction::makeFromBoxedFunction<&Gate>());
}
