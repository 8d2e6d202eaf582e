// OP_ADD(Type): the class ops::Type, derived from OpDef, becomes an op of the library being built.
// OP_ADD(Type, CompileInfo): its tiling finds a default-constructed CompileInfo in the context.
#pragma once

#include "register/op_def.h"
#include "register/op_impl_registry.h"

namespace ops {

struct OpRegistration {
    explicit OpRegistration(const OpDef& definition);
};

template <typename... CompileInfo>
void RegisterCompileInfo(const char* opType) {
    (gert::OpImplRegisterV2(opType).TilingParse<CompileInfo>(
         static_cast<gert::TilingParseFunc>([](gert::TilingParseContext*) { return ge::GRAPH_SUCCESS; })),
     ...);
    (void)opType;
}

}  // namespace ops

#define OP_ADD(op_type, ...)                                                                           \
    [[maybe_unused]] static const ::ops::OpRegistration g_opDef_##op_type = []() {                     \
        ::ops::RegisterCompileInfo<__VA_ARGS__>(#op_type);                                             \
        return ::ops::OpRegistration(op_type(#op_type));                                               \
    }()
