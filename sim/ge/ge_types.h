// Value classes of CANN's graph library as torchair's binaries see them: names, virtual tables and the shape of each object (one
// shared pointer to what is defined in our .cpp files). Only members that torchair links to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/types.h"

namespace ge {

enum Placement : int { kPlacementHost = 0, kPlacementDevice = 1 };

const char* GetFormatName(Format format);

class ShapeImpl;
class Shape {
public:
    Shape();
    explicit Shape(const std::vector<int64_t>& dims);
    std::vector<int64_t> GetDims() const;

private:
    std::shared_ptr<ShapeImpl> impl_;  // immutable: copies may share it
};

class TensorDescImpl;
class TensorDesc {
public:
    TensorDesc();
    TensorDesc(const TensorDesc& other);
    TensorDesc(TensorDesc&& other);
    TensorDesc& operator=(const TensorDesc& other);
    TensorDesc& operator=(TensorDesc&& other);
    Shape GetShape() const;
    void SetShape(const Shape& shape);
    void SetOriginShape(const Shape& shape);
    Shape GetOriginShape() const;
    Format GetFormat() const;
    void SetFormat(Format format);
    Format GetOriginFormat() const;
    void SetOriginFormat(Format format);
    DataType GetDataType() const;
    void SetDataType(DataType dtype);
    Placement GetPlacement() const;
    void SetPlacement(Placement placement);

private:
    std::shared_ptr<TensorDescImpl> impl_;
};

class TensorImpl;
class Tensor {  // a copy is the same tensor
public:
    using DeleteFunc = std::function<void(uint8_t*)>;
    Tensor();
    TensorDesc GetTensorDesc() const;
    graphStatus SetTensorDesc(const TensorDesc& desc);
    const uint8_t* GetData() const;
    uint8_t* GetData();
    graphStatus SetData(uint8_t* data, size_t size, const DeleteFunc& deleter);
    graphStatus ResetData(uint8_t* data, size_t size, const DeleteFunc& deleter);
    std::unique_ptr<uint8_t[], DeleteFunc> ResetData();
    graphStatus SetShapeDimNum(size_t count);
    size_t GetShapeDimNum() const;
    graphStatus SetShapeDim(size_t index, int64_t value);
    int64_t GetShapeDim(size_t index) const;
    graphStatus SetOriginShapeDimNum(size_t count);
    size_t GetOriginShapeDimNum() const;
    graphStatus SetOriginShapeDim(size_t index, int64_t value);
    int64_t GetOriginShapeDim(size_t index) const;
    graphStatus SetFormat(const Format& format);
    Format GetFormat() const;
    graphStatus SetDataType(const DataType& dtype);
    DataType GetDataType() const;
    graphStatus SetPlacement(const Placement& placement);
    Placement GetPlacement() const;

private:
    std::shared_ptr<TensorImpl> impl_;
};

class NodeImpl;
class GNode {
public:
    explicit GNode(std::shared_ptr<NodeImpl> impl);
    graphStatus GetType(AscendString& type) const;

private:
    std::shared_ptr<NodeImpl> impl_;
};

class OperatorImpl;
class Operator {  // a copy is the same operator
public:
    Operator();
    explicit Operator(std::shared_ptr<OperatorImpl> impl);
    virtual ~Operator();
    graphStatus UpdateInputDesc(const char* name, const TensorDesc& desc);
    graphStatus GetAllIrAttrNamesAndTypes(std::map<AscendString, AscendString>& attributes) const;

private:
    std::shared_ptr<OperatorImpl> impl_;
};

class OperatorFactory {
public:
    static Operator CreateOperator(const char* name, const char* type);
    static bool IsExistOp(const char* type);
};

class GraphImpl;
class Graph {  // a copy is the same graph
public:
    explicit Graph(const char* name);
    graphStatus LoadFromSerializedModelArray(const void* model, size_t size);
    graphStatus SaveToFile(const char* path) const;
    graphStatus CopyFrom(const Graph& source);
    std::vector<GNode> GetAllNodes() const;

private:
    std::shared_ptr<GraphImpl> impl_;
};

}  // namespace ge
