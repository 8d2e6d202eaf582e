// libregister.so: parser plugins register here, and SimParseOnnxNode asks them as ATC does.
#include "register/register.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>

#include "graph/operator_factory.h"
#include "sim/ge/graph_impl.h"
#include "sim/ge/parsed_graph.h"
#include "sim/opapi/stream.h"

namespace domi {

struct ParserRecord {
    std::string type;
    domi::FrameworkType framework = FRAMEWORK_RESERVED;
    domi::ImplyType imply = domi::ImplyType::INVALID;
    std::vector<std::string> origins;
    ParseParamByOpFunc parse;
    ParseOpToGraphFunc toGraph;
};

namespace {

struct Registry {
    std::mutex mutex;
    std::vector<std::shared_ptr<const ParserRecord>> records;
};
Registry& Registered() {
    static Registry registry;
    return registry;
}

std::shared_ptr<const ParserRecord> Find(const std::string& origin) {
    Registry& registry = Registered();
    const std::lock_guard<std::mutex> lock(registry.mutex);
    std::string known;
    for (const auto& record : registry.records) {
        if (record->framework != ONNX) continue;
        for (const std::string& one : record->origins) known += (known.empty() ? "" : ", ") + one;
        if (std::find(record->origins.begin(), record->origins.end(), origin) != record->origins.end()) return record;
    }
    throw std::runtime_error("no ONNX parser for " + origin + "; there are: " + (known.empty() ? "none" : known));
}

std::string Parse(const std::string& origin, const char* name, const char* attributes, uint32_t inputs) {
    const auto record = Find(origin);
    auto impl = std::make_shared<ge::OperatorImpl>();
    impl->name = name;
    impl->type = origin;
    ge::Operator source(std::move(impl));
    source.SetAttr("attribute", attributes);
    source.DynamicInputRegister("inputs", inputs);
    ge::Operator parsed = ge::OperatorFactory::CreateOperator(name, record->type.c_str());
    const std::string parser = "the parser of " + origin;
    if (ImplOf(parsed) == nullptr) throw std::runtime_error(parser + " makes a " + record->type + ", which is not registered");
    if (!record->parse || record->parse(source, parsed) != SUCCESS) throw std::runtime_error(parser + " failed on " + name);
    if (!record->toGraph) return sim::Describe(parsed);
    ge::AscendString original;
    const bool named = parsed.GetAttr("original_type", original) == ge::GRAPH_SUCCESS && original.GetString() == origin;
    if (record->type != "PartitionedCall" || !named)
        throw std::runtime_error(parser + " makes a graph: it must be a PartitionedCall whose original_type is that name");
    if (parsed.GetInputsSize() != inputs) throw std::runtime_error(parser + " dropped inputs of " + name);
    ge::Graph graph(name);
    if (record->toGraph(parsed, graph) != SUCCESS) throw std::runtime_error(parser + " made no graph of " + name);
    return sim::Describe(graph);
}

}  // namespace

OpRegistrationData::OpRegistrationData(const char* type) : record_(std::make_shared<ParserRecord>()) { record_->type = type; }
OpRegistrationData& OpRegistrationData::FrameworkType(const domi::FrameworkType& framework) {
    record_->framework = framework;
    return *this;
}
OpRegistrationData& OpRegistrationData::OriginOpType(const std::vector<ge::AscendString>& types) {
    record_->origins.clear();
    for (const ge::AscendString& type : types) record_->origins.emplace_back(type.GetString());
    return *this;
}
OpRegistrationData& OpRegistrationData::ParseParamsByOperatorFn(const ParseParamByOpFunc& function) {
    record_->parse = function;
    return *this;
}
OpRegistrationData& OpRegistrationData::ParseOpToGraphFn(const ParseOpToGraphFunc& function) {
    record_->toGraph = function;
    return *this;
}
OpRegistrationData& OpRegistrationData::ImplyType(const domi::ImplyType& type) {
    record_->imply = type;
    return *this;
}

OpReceiver::OpReceiver(const OpRegistrationData& registration) {
    Registry& registry = Registered();
    const std::lock_guard<std::mutex> lock(registry.mutex);
    registry.records.push_back(registration.record_);
}

}  // namespace domi

// What the plugins that are loaded make of a node: JSON text as of sim::Describe, valid until the thread's next call. `origin` is
// domain::version::type, `attributes` {"attribute": [AttributeProto as JSON, ...]}. Null: aclGetRecentErrMsg() says why.
extern "C" const char* SimParseOnnxNode(const char* origin, const char* name, const char* attributes, uint32_t inputs) {
    static thread_local std::string text;
    try {
        text = domi::Parse(origin, name, attributes, inputs);
        return text.c_str();
    } catch (const std::exception& error) {
        sim::SetThreadError(error.what());
        return nullptr;
    }
}
