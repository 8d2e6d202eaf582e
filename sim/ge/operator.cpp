// Operators as a graph knows them before it is compiled: names and kinds of inputs, outputs and attributes.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/ge/ge_types.h"
#include "sim/ge/op_packages.h"
#include "sim/opapi/stream.h"

namespace ge {
namespace {

const char* Kind(ops::Option type) { return type == ops::REQUIRED ? "required" : type == ops::DYNAMIC ? "dynamic" : "optional"; }

// "ListInt" -> "VT_LIST_INT"
std::string GraphType(const std::string& attributeType) {
    std::string type = "VT";
    for (const char letter : attributeType) {
        if (letter >= 'A' && letter <= 'Z') type += '_';
        type += static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 'a' + 'A' : letter);
    }
    return type;
}

}  // namespace

class OperatorImpl {
public:
    std::string name;
    const sim::host::Op* op = nullptr;
    std::map<std::string, TensorDesc> inputs;
};

Operator::Operator() = default;
Operator::Operator(std::shared_ptr<OperatorImpl> impl) : impl_(std::move(impl)) {}
Operator::~Operator() = default;

graphStatus Operator::UpdateInputDesc(const char* name, const TensorDesc& desc) {
    if (impl_ == nullptr || name == nullptr) return GRAPH_PARAM_INVALID;
    const auto& inputs = impl_->op->inputs;
    if (std::none_of(inputs.begin(), inputs.end(), [&](const auto& input) { return input.name == name; })) return GRAPH_PARAM_INVALID;
    impl_->inputs[name] = desc;
    return GRAPH_SUCCESS;
}

graphStatus Operator::GetAllIrAttrNamesAndTypes(std::map<AscendString, AscendString>& attributes) const {
    if (impl_ == nullptr) return GRAPH_PARAM_INVALID;
    for (const auto& attribute : impl_->op->attributes) attributes[attribute.name.c_str()] = GraphType(attribute.type).c_str();
    return GRAPH_SUCCESS;
}

bool OperatorFactory::IsExistOp(const char* type) { return type != nullptr && sim::FindPackagedOp(type) != nullptr; }

Operator OperatorFactory::CreateOperator(const char* name, const char* type) {
    const sim::host::Op* op = type == nullptr ? nullptr : sim::FindPackagedOp(type);
    if (op == nullptr) return Operator();
    return Operator(std::make_shared<OperatorImpl>(OperatorImpl{name == nullptr ? "" : name, op, {}}));
}

}  // namespace ge

using NamesAndKinds = std::vector<std::pair<ge::AscendString, ge::AscendString>>;

// torchair looks it up by name: what is registered for an operator type.
extern "C" uint32_t GetRegisteredIrDef(const char* type, NamesAndKinds& inputs, NamesAndKinds& outputs, NamesAndKinds& attributes) {
    try {
        const sim::host::Op* op = type == nullptr ? nullptr : sim::FindPackagedOp(type);
        if (op == nullptr) return ge::GRAPH_FAILED;
        for (const auto& input : op->inputs) inputs.emplace_back(input.name.c_str(), ge::Kind(input.type));
        for (const auto& output : op->outputs) outputs.emplace_back(output.name.c_str(), ge::Kind(output.type));
        for (const auto& attribute : op->attributes) attributes.emplace_back(attribute.name.c_str(), ge::GraphType(attribute.type).c_str());
        return ge::GRAPH_SUCCESS;
    } catch (const std::exception& error) {
        sim::SetThreadError(error.what());
        return ge::GRAPH_FAILED;
    }
}
