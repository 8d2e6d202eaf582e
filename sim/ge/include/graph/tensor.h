// Value classes of CANN's graph library. torchair's binaries see them too: names, virtual tables and the shape of each object (one shared
// pointer to what is defined in our .cpp files) are CANN's. Only members that torchair links to or parser plugins use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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
    explicit TensorDesc(Shape shape, Format format = FORMAT_ND, DataType dtype = DT_FLOAT);
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
    Tensor(const TensorDesc& desc, const uint8_t* data, size_t size);  // a copy of the data
    TensorDesc GetTensorDesc() const;
    graphStatus SetTensorDesc(const TensorDesc& desc);
    const uint8_t* GetData() const;
    size_t GetSize() const;  // bytes
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

}  // namespace ge
