// A graph: either read from a serialised model, or made of operators by what leads from its inputs to its outputs.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "graph/gnode.h"
#include "graph/operator.h"
#include "graph/types.h"

namespace ge {

class GraphImpl;
class Graph {  // a copy is the same graph
public:
    explicit Graph(const char* name);
    Graph& SetInputs(const std::vector<Operator>& inputs);
    Graph& SetOutputs(const std::vector<std::pair<Operator, std::vector<size_t>>>& outputs);  // operators and indices of their outputs
    graphStatus LoadFromSerializedModelArray(const void* model, size_t size);
    graphStatus SaveToFile(const char* path) const;
    graphStatus CopyFrom(const Graph& source);
    std::vector<GNode> GetAllNodes() const;

private:
    friend std::shared_ptr<GraphImpl> ImplOf(const Graph& graph);
    std::shared_ptr<GraphImpl> impl_;
};

}  // namespace ge
