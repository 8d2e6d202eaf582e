// Description of one input or output, with its values when the host may read them.
#pragma once

#include "exe_graph/runtime/storage_format.h"
#include "exe_graph/runtime/storage_shape.h"
#include "graph/types.h"

namespace gert {

using TensorAddress = void*;
using ConstTensorAddressPtr = const void*;

enum TensorPlacement { kOnDeviceHbm, kOnHost, kFollowing, kOnDeviceP2p, kTensorPlacementEnd };

class Tensor {
public:
    Tensor() = default;
    Tensor(const StorageShape& shape, const StorageFormat& format, ge::DataType dataType)
        : shape_(shape), format_(format), dataType_(dataType) {}

    int64_t GetShapeSize() const { return shape_.GetStorageShape().GetShapeSize(); }
    size_t GetSize() const {
        const int64_t elements = GetShapeSize(), bytes = ge::GetSizeByDataType(dataType_);
        return elements < 0 || bytes < 0 ? 0 : static_cast<size_t>(elements * bytes);
    }
    const Shape& GetStorageShape() const { return shape_.GetStorageShape(); }
    const Shape& GetOriginShape() const { return shape_.GetOriginShape(); }
    Shape& MutableStorageShape() { return shape_.MutableStorageShape(); }
    Shape& MutableOriginShape() { return shape_.MutableOriginShape(); }
    const StorageShape& GetShape() const { return shape_; }
    StorageShape& GetShape() { return shape_; }
    ge::DataType GetDataType() const { return dataType_; }
    void SetDataType(ge::DataType dataType) { dataType_ = dataType; }
    const StorageFormat& GetFormat() const { return format_; }
    ge::Format GetStorageFormat() const { return format_.GetStorageFormat(); }
    ge::Format GetOriginFormat() const { return format_.GetOriginFormat(); }
    void SetStorageFormat(ge::Format format) { format_.SetStorageFormat(format); }
    void SetOriginFormat(ge::Format format) { format_.SetOriginFormat(format); }

    // Values in host memory; null unless the parameter declares ValueDepend (or InputsDataDependency).
    template <typename T>
    const T* GetData() const { return static_cast<const T*>(data_); }
    template <typename T>
    T* GetData() { return static_cast<T*>(data_); }
    const void* GetAddr() const { return data_; }
    void SetData(void* data) { data_ = data; }
    TensorPlacement GetPlacement() const { return data_ == nullptr ? kOnDeviceHbm : kOnHost; }

private:
    StorageShape shape_;
    StorageFormat format_;
    ge::DataType dataType_ = ge::DT_UNDEFINED;
    void* data_ = nullptr;
};

}  // namespace gert
