// Node of a compiled graph.
#pragma once

#include <memory>

#include "graph/ascend_string.h"
#include "graph/types.h"

namespace ge {

class NodeImpl;
class GNode {
public:
    explicit GNode(std::shared_ptr<NodeImpl> impl);
    graphStatus GetType(AscendString& type) const;

private:
    std::shared_ptr<NodeImpl> impl_;
};

}  // namespace ge
