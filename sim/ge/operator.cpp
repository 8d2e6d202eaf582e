// Operators as a graph knows them before it is compiled: names and kinds of inputs, outputs and attributes.
#include <algorithm>
#include <utility>

#include "graph/operator_factory.h"
#include "sim/ge/builtin_ops.h"
#include "sim/ge/graph_impl.h"
#include "sim/ge/op_packages.h"

namespace ge {
namespace {

std::string Text(const char* name) { return name == nullptr ? "(none)" : name; }

bool Has(const std::vector<sim::host::Parameter>& parameters, const char* name) {
    return name != nullptr && std::any_of(parameters.begin(), parameters.end(), [&](const auto& one) { return one.name == name; });
}

const sim::host::Op* FindOp(const char* type) {
    if (type == nullptr) return nullptr;
    const sim::host::Op* builtin = sim::FindBuiltinOp(type);
    return builtin != nullptr ? builtin : sim::FindPackagedOp(type);
}

}  // namespace

Operator::Operator() = default;
Operator::Operator(std::shared_ptr<OperatorImpl> impl) : impl_(std::move(impl)) {}
Operator::~Operator() = default;

std::shared_ptr<OperatorImpl> ImplOf(const Operator& op) { return op.impl_; }

std::string GraphType(const std::string& attributeType) {
    std::string type = "VT";
    for (const char letter : attributeType) {
        if (letter >= 'A' && letter <= 'Z') type += '_';
        type += static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 'a' + 'A' : letter);
    }
    return type;
}

graphStatus Operator::GetName(AscendString& name) const {
    if (impl_ == nullptr) return GRAPH_PARAM_INVALID;
    name = AscendString(impl_->name.c_str());
    return GRAPH_SUCCESS;
}

graphStatus Operator::UpdateInputDesc(const char* name, const TensorDesc& desc) {
    if (impl_ == nullptr || impl_->op == nullptr || !Has(impl_->op->inputs, name)) return GRAPH_PARAM_INVALID;
    impl_->inputs[name] = desc;
    return GRAPH_SUCCESS;
}

graphStatus Operator::UpdateOutputDesc(const char* name, const TensorDesc& desc) {
    if (impl_ == nullptr || impl_->op == nullptr || !Has(impl_->op->outputs, name)) return GRAPH_PARAM_INVALID;
    impl_->outputs[name] = desc;
    return GRAPH_SUCCESS;
}

size_t Operator::GetInputsSize() const {
    size_t count = 0;
    if (impl_ == nullptr) return count;
    for (const auto& entry : impl_->dynamicInputs) count += entry.second;
    if (impl_->op != nullptr)
        for (const auto& input : impl_->op->inputs) count += input.type != ops::DYNAMIC;
    return count;
}

Operator& Operator::SetInput(const char* name, const Operator& source, const char* output) {
    if (impl_ == nullptr) return *this;
    const auto from = ImplOf(source);
    if (impl_->op == nullptr || !Has(impl_->op->inputs, name)) impl_->faults.push_back("has no input " + Text(name));
    else if (from == nullptr) impl_->faults.push_back("input " + Text(name) + " is connected to no operator");
    else if (from->op == nullptr || !Has(from->op->outputs, output))
        impl_->faults.push_back("input " + Text(name) + " is connected to an output " + Text(output) + " that " + from->type + " has not");
    else impl_->links[name] = {from, output};
    return *this;
}

Operator& Operator::SetInput(const char* name, const Operator& source) {
    const auto from = ImplOf(source);
    const bool one = from != nullptr && from->op != nullptr && from->op->outputs.size() == 1;
    return SetInput(name, source, one ? from->op->outputs[0].name.c_str() : nullptr);
}

void Operator::DynamicInputRegister(const char* name, uint32_t count, bool) {
    if (impl_ != nullptr && name != nullptr) impl_->dynamicInputs[name] = count;
}
void Operator::DynamicOutputRegister(const char* name, uint32_t count, bool) {
    if (impl_ != nullptr && name != nullptr) impl_->dynamicOutputs[name] = count;
}

namespace {

Operator& Set(Operator& op, const char* name, AttributeValue value) {
    if (const auto impl = ImplOf(op); impl != nullptr && name != nullptr) impl->attributes[name] = std::move(value);
    return op;
}

template <typename T>
graphStatus Get(const Operator& op, const char* name, T& value) {
    const auto impl = ImplOf(op);
    if (impl == nullptr || name == nullptr) return GRAPH_PARAM_INVALID;
    const auto found = impl->attributes.find(name);
    const T* held = found == impl->attributes.end() ? nullptr : std::get_if<T>(&found->second);
    if (held == nullptr) return GRAPH_FAILED;
    value = *held;
    return GRAPH_SUCCESS;
}

}  // namespace

Operator& Operator::SetAttr(const char* name, bool value) { return Set(*this, name, value); }
Operator& Operator::SetAttr(const char* name, int64_t value) { return Set(*this, name, value); }
Operator& Operator::SetAttr(const char* name, float value) { return Set(*this, name, value); }
Operator& Operator::SetAttr(const char* name, const char* value) { return Set(*this, name, std::string(value == nullptr ? "" : value)); }
Operator& Operator::SetAttr(const char* name, const AscendString& value) { return SetAttr(name, value.GetString()); }
Operator& Operator::SetAttr(const char* name, const std::vector<int64_t>& value) { return Set(*this, name, value); }
Operator& Operator::SetAttr(const char* name, const std::vector<float>& value) { return Set(*this, name, value); }
Operator& Operator::SetAttr(const char* name, const Tensor& value) { return Set(*this, name, value); }

graphStatus Operator::GetAttr(const char* name, bool& value) const { return Get(*this, name, value); }
graphStatus Operator::GetAttr(const char* name, int64_t& value) const { return Get(*this, name, value); }
graphStatus Operator::GetAttr(const char* name, float& value) const { return Get(*this, name, value); }
graphStatus Operator::GetAttr(const char* name, AscendString& value) const {
    std::string text;
    const graphStatus status = Get(*this, name, text);
    if (status == GRAPH_SUCCESS) value = AscendString(text.c_str(), text.size());
    return status;
}
graphStatus Operator::GetAttr(const char* name, std::vector<int64_t>& value) const { return Get(*this, name, value); }
graphStatus Operator::GetAttr(const char* name, std::vector<float>& value) const { return Get(*this, name, value); }
graphStatus Operator::GetAttr(const char* name, Tensor& value) const { return Get(*this, name, value); }

graphStatus Operator::GetAllIrAttrNamesAndTypes(std::map<AscendString, AscendString>& attributes) const {
    if (impl_ == nullptr || impl_->op == nullptr) return GRAPH_PARAM_INVALID;
    for (const auto& attribute : impl_->op->attributes) attributes[attribute.name.c_str()] = GraphType(attribute.type).c_str();
    return GRAPH_SUCCESS;
}

bool OperatorFactory::IsExistOp(const char* type) { return FindOp(type) != nullptr; }

Operator OperatorFactory::CreateOperator(const char* name, const char* type) {
    const sim::host::Op* op = FindOp(type);
    if (op == nullptr) return Operator();
    auto impl = std::make_shared<OperatorImpl>();
    impl->name = name == nullptr ? "" : name;
    impl->type = type;
    impl->op = op;
    return Operator(std::move(impl));
}

}  // namespace ge
