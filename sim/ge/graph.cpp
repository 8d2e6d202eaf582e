#include <fstream>

#include "sim/ge/graph_impl.h"
#include "sim/ge/model_file.h"

namespace ge {

class NodeImpl {
public:
    std::string type;
};

GNode::GNode(std::shared_ptr<NodeImpl> impl) : impl_(std::move(impl)) {}
graphStatus GNode::GetType(AscendString& type) const {
    type = AscendString(impl_->type.c_str());
    return GRAPH_SUCCESS;
}

Graph::Graph(const char* name) : impl_(std::make_shared<GraphImpl>()) { impl_->name = name == nullptr ? "" : name; }

Graph& Graph::SetInputs(const std::vector<Operator>& inputs) {
    impl_->inputs = inputs;
    return *this;
}
Graph& Graph::SetOutputs(const std::vector<std::pair<Operator, std::vector<size_t>>>& outputs) {
    impl_->outputs = outputs;
    return *this;
}

std::shared_ptr<GraphImpl> ImplOf(const Graph& graph) { return graph.impl_; }

graphStatus Graph::LoadFromSerializedModelArray(const void* model, size_t size) {
    if (model == nullptr) return GRAPH_PARAM_INVALID;
    auto loaded = std::make_shared<GraphImpl>();
    loaded->model.assign(static_cast<const char*>(model), size);
    std::vector<std::string> types;
    if (!sim::ReadModel(loaded->model, loaded->name, types)) return GRAPH_FAILED;
    for (std::string& type : types) loaded->nodes.emplace_back(std::make_shared<NodeImpl>(NodeImpl{std::move(type)}));
    impl_ = std::move(loaded);
    return GRAPH_SUCCESS;
}

graphStatus Graph::SaveToFile(const char* path) const {
    if (path == nullptr || impl_ == nullptr) return GRAPH_PARAM_INVALID;
    std::ofstream file(path, std::ios::binary);
    file << impl_->model;
    return file.good() ? GRAPH_SUCCESS : GRAPH_FAILED;
}

graphStatus Graph::CopyFrom(const Graph& source) {
    if (source.impl_ == nullptr) return GRAPH_PARAM_INVALID;
    impl_ = std::make_shared<GraphImpl>(*source.impl_);
    return GRAPH_SUCCESS;
}

std::vector<GNode> Graph::GetAllNodes() const { return impl_ == nullptr ? std::vector<GNode>() : impl_->nodes; }

}  // namespace ge
