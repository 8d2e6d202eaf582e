// What operators and graphs hold behind their public classes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/graph.h"
#include "graph/operator.h"
#include "sim/host/op.h"

namespace ge {

using AttributeValue = std::variant<bool, int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, Tensor>;
constexpr const char* kAttributeTypes[] = {"Bool", "Int", "Float", "String", "ListInt", "ListFloat", "Tensor"};  // of each alternative

class OperatorImpl {
public:
    struct Link {
        std::shared_ptr<OperatorImpl> source;
        std::string output;
    };

    std::string name, type;
    const sim::host::Op* op = nullptr;  // null: of another framework
    std::map<std::string, TensorDesc> inputs, outputs;
    std::map<std::string, uint32_t> dynamicInputs, dynamicOutputs;  // tensors of each
    std::map<std::string, AttributeValue> attributes;
    std::map<std::string, Link> links;  // by input
    std::vector<std::string> faults;    // what its maker did wrong
};

class GraphImpl {
public:
    std::string name;
    std::string model;  // serialised
    std::vector<GNode> nodes;
    std::vector<Operator> inputs;
    std::vector<std::pair<Operator, std::vector<size_t>>> outputs;
};

std::shared_ptr<OperatorImpl> ImplOf(const Operator& op);  // null: there is no operator
std::shared_ptr<GraphImpl> ImplOf(const Graph& graph);

// "ListInt" -> "VT_LIST_INT"
std::string GraphType(const std::string& attributeType);

}  // namespace ge
