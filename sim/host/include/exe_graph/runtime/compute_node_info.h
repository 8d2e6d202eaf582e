// What is known of a node before it runs: its parameters' types and how many tensors each IR parameter stands for.
#pragma once

#include <cstddef>

#include "exe_graph/runtime/storage_format.h"
#include "graph/types.h"

namespace sim::host {
struct Node;
}

namespace gert {

class CompileTimeTensorDesc {
public:
    CompileTimeTensorDesc() = default;
    CompileTimeTensorDesc(ge::DataType dataType, const StorageFormat& format) : dataType_(dataType), format_(format) {}
    ge::DataType GetDataType() const { return dataType_; }
    void SetDataType(ge::DataType dataType) { dataType_ = dataType; }
    const StorageFormat& GetFormat() const { return format_; }
    ge::Format GetStorageFormat() const { return format_.GetStorageFormat(); }
    ge::Format GetOriginFormat() const { return format_.GetOriginFormat(); }
    void SetStorageFormat(ge::Format format) { format_.SetStorageFormat(format); }
    void SetOriginFormat(ge::Format format) { format_.SetOriginFormat(format); }

private:
    ge::DataType dataType_ = ge::DT_UNDEFINED;
    StorageFormat format_;
};

// The tensors of one IR parameter: [start, start + count) among the tensors present; count is 0 for an absent optional one.
class AnchorInstanceInfo {
public:
    AnchorInstanceInfo() = default;
    AnchorInstanceInfo(size_t start, size_t count) : start_(start), count_(count) {}
    size_t GetInstanceStart() const { return start_; }
    size_t GetInstanceNum() const { return count_; }

private:
    size_t start_ = 0, count_ = 0;
};

class RuntimeAttrs;

class ComputeNodeInfo {
public:
    explicit ComputeNodeInfo(sim::host::Node& node) : node_(&node) {}
    const char* GetNodeType() const;
    const char* GetNodeName() const;
    size_t GetIrInputsNum() const;
    size_t GetInputsNum() const;
    size_t GetOutputsNum() const;
    const AnchorInstanceInfo* GetInputInstanceInfo(size_t irIndex) const;
    const AnchorInstanceInfo* GetOutputInstanceInfo(size_t irIndex) const;
    const CompileTimeTensorDesc* GetInputTdInfo(size_t index) const;
    const CompileTimeTensorDesc* GetOutputTdInfo(size_t index) const;
    const RuntimeAttrs* GetAttrs() const;

private:
    sim::host::Node* node_;
};

}  // namespace gert
