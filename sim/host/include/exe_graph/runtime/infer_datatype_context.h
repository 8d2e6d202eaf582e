// Argument of a data type inference function.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class InferDataTypeContext : public ExtendedKernelContext {
public:
    using ExtendedKernelContext::ExtendedKernelContext;

    ge::DataType GetInputDataType(size_t index) const { return TypeOf(InputTensor(index)); }
    ge::DataType GetRequiredInputDataType(size_t irIndex) const { return TypeOf(IrInputTensor(irIndex, 0)); }
    ge::DataType GetOptionalInputDataType(size_t irIndex) const { return TypeOf(IrInputTensor(irIndex, 0)); }
    ge::DataType GetDynamicInputDataType(size_t irIndex, size_t relative) const {
        return TypeOf(IrInputTensor(irIndex, relative));
    }
    ge::DataType GetOutputDataType(size_t index) const { return TypeOf(OutputTensor(index)); }
    ge::graphStatus SetOutputDataType(size_t index, ge::DataType dataType) {
        Tensor* tensor = OutputTensor(index);
        if (tensor == nullptr) return ge::GRAPH_FAILED;
        tensor->SetDataType(dataType);
        return ge::GRAPH_SUCCESS;
    }

private:
    static ge::DataType TypeOf(const Tensor* tensor) {
        return tensor == nullptr ? ge::DT_UNDEFINED : tensor->GetDataType();
    }
};

}  // namespace gert
