// Registration of shape inference, type inference and tiling functions by op type.
//
//   IMPL_OP_INFERSHAPE(HcPost).InferShape(InferShapeHcPost).InferDataType(InferDataTypeHcPost);
//   IMPL_OP_OPTILING(HcPost).Tiling(TilingHcPost).TilingParse<HcPostCompileInfo>(ParseHcPost);
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "graph/types.h"

namespace sim::host {
struct OpImplRecord;
}

namespace gert {

class InferShapeRangeContext;

using InferShapeFunc = ge::graphStatus (*)(InferShapeContext*);
using InferDataTypeFunc = ge::graphStatus (*)(InferDataTypeContext*);
using InferShapeRangeFunc = ge::graphStatus (*)(InferShapeRangeContext*);
using TilingFunc = ge::graphStatus (*)(TilingContext*);
using TilingParseFunc = ge::graphStatus (*)(TilingParseContext*);

class OpImplRegisterV2 {
public:
    explicit OpImplRegisterV2(const char* opType);  // continues what the library registered for this op so far

    OpImplRegisterV2& InferShape(InferShapeFunc function);
    OpImplRegisterV2& InferDataType(InferDataTypeFunc function);
    OpImplRegisterV2& InferShapeRange(InferShapeRangeFunc function);  // graphs with shape ranges are not simulated
    OpImplRegisterV2& Tiling(TilingFunc function, size_t maxTilingDataBytes = 2048);
    template <typename CompileInfo>
    OpImplRegisterV2& TilingParse(TilingParseFunc function) {
        return Parse(function, []() -> void* { return new CompileInfo(); },
                     [](void* info) { delete static_cast<CompileInfo*>(info); });
    }
    template <typename CompileInfo>
    OpImplRegisterV2& TilingParse(ge::graphStatus (*function)(KernelContext*)) {
        return Parse(function, []() -> void* { return new CompileInfo(); },
                     [](void* info) { delete static_cast<CompileInfo*>(info); });
    }
    // Inputs whose values the functions read.
    OpImplRegisterV2& InputsDataDependency(std::initializer_list<int32_t> inputs);
    OpImplRegisterV2& TilingInputsDataDependency(std::initializer_list<int32_t> inputs) { return InputsDataDependency(inputs); }

private:
    OpImplRegisterV2& Parse(TilingParseFunc function, void* (*create)(), void (*destroy)(void*));
    OpImplRegisterV2& Parse(ge::graphStatus (*function)(KernelContext*), void* (*create)(), void (*destroy)(void*));
    sim::host::OpImplRecord* record_;
};

}  // namespace gert

#define IMPL_OP_NAMED(op_type, counter) IMPL_OP_NAMED_(op_type, counter)
#define IMPL_OP_NAMED_(op_type, counter) \
    [[maybe_unused]] static const ::gert::OpImplRegisterV2 g_opImpl_##op_type##_##counter = ::gert::OpImplRegisterV2(#op_type)
#define IMPL_OP(op_type) IMPL_OP_NAMED(op_type, __COUNTER__)
#define IMPL_OP_INFERSHAPE(op_type) IMPL_OP(op_type)
#define IMPL_OP_OPTILING(op_type) IMPL_OP(op_type)
