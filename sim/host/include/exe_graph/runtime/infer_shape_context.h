// Argument of a shape inference function.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"
#include "exe_graph/runtime/shape.h"

namespace gert {

class InferShapeContext : public ExtendedKernelContext {
public:
    using ExtendedKernelContext::ExtendedKernelContext;

    const Shape* GetInputShape(size_t index) const { return ShapeOf(InputTensor(index)); }
    const Shape* GetRequiredInputShape(size_t irIndex) const { return ShapeOf(IrInputTensor(irIndex, 0)); }
    const Shape* GetOptionalInputShape(size_t irIndex) const { return ShapeOf(IrInputTensor(irIndex, 0)); }
    const Shape* GetDynamicInputShape(size_t irIndex, size_t relative) const {
        return ShapeOf(IrInputTensor(irIndex, relative));
    }
    const Tensor* GetInputTensor(size_t index) const { return InputTensor(index); }
    const Tensor* GetRequiredInputTensor(size_t irIndex) const { return IrInputTensor(irIndex, 0); }
    const Tensor* GetOptionalInputTensor(size_t irIndex) const { return IrInputTensor(irIndex, 0); }
    const Tensor* GetDynamicInputTensor(size_t irIndex, size_t relative) const { return IrInputTensor(irIndex, relative); }
    Shape* GetOutputShape(size_t index) {
        Tensor* tensor = OutputTensor(index);
        return tensor == nullptr ? nullptr : &tensor->MutableOriginShape();
    }

private:
    static const Shape* ShapeOf(const Tensor* tensor) { return tensor == nullptr ? nullptr : &tensor->GetOriginShape(); }
};

}  // namespace gert
