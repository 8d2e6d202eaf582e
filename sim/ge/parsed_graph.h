// The graph that a parser plugin made of one operator, as JSON text.
#pragma once

#include <string>

#include "graph/graph.h"
#include "graph/operator.h"

namespace sim {

//   {"inputs": ["x", ...], "outputs": [["op", 0], ...], "operators": [{"name", "type", "inputs": {"x": ["source", "y"]},
//    "attributes": {"index": {"type": "Int", "value": 0}}}, ...]}
// "inputs" are names of Data operators by their index; operators stand after those they need; a Tensor is {"dtype", "shape", "bytes": hex}.
// std::runtime_error when an operator lacks a required input or attribute, or has one that its type does not have.
std::string Describe(const ge::Graph& graph);

// {"operator": {...}}: of a plugin that maps one operator to one.
std::string Describe(const ge::Operator& op);

}  // namespace sim
