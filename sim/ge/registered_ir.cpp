// What is registered for an operator type.
#include <exception>
#include <utility>
#include <vector>

#include "sim/ge/graph_impl.h"
#include "sim/ge/op_packages.h"
#include "sim/opapi/stream.h"

namespace {

const char* Kind(ops::Option type) { return type == ops::REQUIRED ? "required" : type == ops::DYNAMIC ? "dynamic" : "optional"; }

}  // namespace

using NamesAndKinds = std::vector<std::pair<ge::AscendString, ge::AscendString>>;

// torchair looks it up by name: what is registered for an operator type.
extern "C" uint32_t GetRegisteredIrDef(const char* type, NamesAndKinds& inputs, NamesAndKinds& outputs, NamesAndKinds& attributes) {
    try {
        const sim::host::Op* op = type == nullptr ? nullptr : sim::FindPackagedOp(type);
        if (op == nullptr) return ge::GRAPH_FAILED;
        for (const auto& input : op->inputs) inputs.emplace_back(input.name.c_str(), Kind(input.type));
        for (const auto& output : op->outputs) outputs.emplace_back(output.name.c_str(), Kind(output.type));
        for (const auto& attribute : op->attributes) attributes.emplace_back(attribute.name.c_str(), ge::GraphType(attribute.type).c_str());
        return ge::GRAPH_SUCCESS;
    } catch (const std::exception& error) {
        sim::SetThreadError(error.what());
        return ge::GRAPH_FAILED;
    }
}
