#include "sim/ge/parsed_graph.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <stdexcept>

#include "sim/core/json.h"
#include "sim/ge/graph_impl.h"

namespace sim {
namespace {

using ge::OperatorImpl;

[[noreturn]] void Refuse(const OperatorImpl& op, const std::string& fault) {
    throw std::runtime_error("operator " + op.name + " (" + op.type + ") " + fault);
}

void Check(const OperatorImpl& op, bool inGraph) {
    if (!op.faults.empty()) Refuse(op, op.faults.front());
    if (op.op == nullptr) Refuse(op, "is of no type that is registered");
    for (const host::Parameter& input : op.op->inputs)
        if (inGraph && input.type == ops::REQUIRED && op.links.count(input.name) == 0) Refuse(op, "lacks its input " + input.name);
    for (const auto& [name, value] : op.attributes) {
        const auto& known = op.op->attributes;
        const auto found = std::find_if(known.begin(), known.end(), [&, &key = name](const auto& one) { return one.name == key; });
        if (found == known.end()) Refuse(op, "has no attribute " + name);
        const std::string type = ge::kAttributeTypes[value.index()];
        if (found->type != type) Refuse(op, "has an attribute " + name + " of type " + found->type + ", not " + type);
    }
    for (const ops::AttributeRecord& attribute : op.op->attributes)
        if (attribute.required && op.attributes.count(attribute.name) == 0) Refuse(op, "lacks its attribute " + attribute.name);
}

std::string Hex(const ge::Tensor& tensor) {
    static const char* digits = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < tensor.GetSize(); ++i) {
        const uint8_t byte = tensor.GetData()[i];
        text += {digits[byte >> 4], digits[byte & 15]};
    }
    return text;
}

template <typename T>
void Write(JsonWriter& json, const T& value) {
    json.Value(value);
}
template <typename T>
void Write(JsonWriter& json, const std::vector<T>& values) {
    json.BeginArray();
    for (const T value : values) json.Value(value);
    json.EndArray();
}
void Write(JsonWriter& json, float value) { json.Value(static_cast<double>(value)); }
void Write(JsonWriter& json, const std::vector<float>& values) { Write(json, std::vector<double>(values.begin(), values.end())); }
void Write(JsonWriter& json, const ge::Tensor& tensor) {
    const ge::TensorDesc desc = tensor.GetTensorDesc();
    json.BeginObject().Field("dtype", static_cast<int>(desc.GetDataType())).Key("shape");
    Write(json, desc.GetShape().GetDims());
    json.Field("bytes", Hex(tensor)).EndObject();
}

void Write(JsonWriter& json, const OperatorImpl& op) {
    json.BeginObject().Field("name", op.name).Field("type", op.type).Key("inputs").BeginObject();
    for (const auto& [input, link] : op.links) json.Key(input).BeginArray().Value(link.source->name).Value(link.output).EndArray();
    json.EndObject().Key("attributes").BeginObject();
    for (const auto& [name, value] : op.attributes) {
        json.Key(name).BeginObject().Field("type", ge::kAttributeTypes[value.index()]).Key("value");
        std::visit([&](const auto& held) { Write(json, held); }, value);
        json.EndObject();
    }
    json.EndObject().EndObject();
}

class Walk {
public:
    void Visit(const std::shared_ptr<OperatorImpl>& op) {
        if (!seen_.insert(op.get()).second) return;
        if (!names_.insert(op->name).second) Refuse(*op, "has the name of another one");
        for (const auto& entry : op->links) Visit(entry.second.source);
        Check(*op, true);
        order_.push_back(op);
    }
    const std::vector<std::shared_ptr<OperatorImpl>>& Order() const { return order_; }
    bool Has(const std::shared_ptr<OperatorImpl>& op) const { return seen_.count(op.get()) != 0; }

private:
    std::set<const OperatorImpl*> seen_;
    std::set<std::string> names_;
    std::vector<std::shared_ptr<OperatorImpl>> order_;
};

}  // namespace

std::string Describe(const ge::Graph& graph) {
    const auto impl = ImplOf(graph);
    Walk walk;
    JsonWriter json;
    json.BeginObject().Key("outputs").BeginArray();
    for (const auto& [op, indices] : impl->outputs) {
        const auto source = ImplOf(op);
        if (source == nullptr) throw std::runtime_error("an output of graph " + impl->name + " is no operator");
        walk.Visit(source);
        for (const size_t index : indices) {
            if (index >= source->op->outputs.size()) Refuse(*source, "has no output " + std::to_string(index));
            json.BeginArray().Value(source->name).Value(source->op->outputs[index].name).EndArray();
        }
    }
    json.EndArray().Key("inputs").BeginArray();
    int64_t place = 0;
    for (const ge::Operator& op : impl->inputs) {
        const auto input = ImplOf(op);
        int64_t index = -1;
        if (input == nullptr || input->type != "Data") throw std::runtime_error("an input of graph " + impl->name + " is no Data");
        if (op.GetAttr("index", index) != ge::GRAPH_SUCCESS || index != place++) Refuse(*input, "is not at its index");
        if (!walk.Has(input)) Refuse(*input, "leads to no output");
        json.Value(input->name);
    }
    json.EndArray().Key("operators").BeginArray();
    for (const auto& op : walk.Order()) Write(json, *op);
    return json.EndArray().EndObject().Take();
}

std::string Describe(const ge::Operator& op) {
    const auto impl = ImplOf(op);
    Check(*impl, false);
    JsonWriter json;
    json.BeginObject().Key("operator");
    Write(json, *impl);
    return json.EndObject().Take();
}

}  // namespace sim
