#include <algorithm>

#include "graph/tensor.h"

namespace ge {

class TensorImpl {
public:
    TensorDesc desc;
    std::unique_ptr<uint8_t[], Tensor::DeleteFunc> data;
    size_t bytes = 0;

    std::vector<int64_t> Dims() const { return desc.GetShape().GetDims(); }
    std::vector<int64_t> OriginDims() const { return desc.GetOriginShape().GetDims(); }
    void SetDims(const std::vector<int64_t>& dims) { desc.SetShape(Shape(dims)); }
    void SetOriginDims(const std::vector<int64_t>& dims) { desc.SetOriginShape(Shape(dims)); }
};

Tensor::Tensor() : impl_(std::make_shared<TensorImpl>()) {}
Tensor::Tensor(const TensorDesc& desc, const uint8_t* data, size_t size) : Tensor() {
    impl_->desc = desc;
    auto copy = std::make_unique<uint8_t[]>(size);
    std::copy_n(data, size, copy.get());
    SetData(copy.release(), size, [](uint8_t* bytes) { delete[] bytes; });
}

TensorDesc Tensor::GetTensorDesc() const { return impl_->desc; }
graphStatus Tensor::SetTensorDesc(const TensorDesc& desc) {
    impl_->desc = desc;
    return GRAPH_SUCCESS;
}

const uint8_t* Tensor::GetData() const { return impl_->data.get(); }
uint8_t* Tensor::GetData() { return impl_->data.get(); }
size_t Tensor::GetSize() const { return impl_->bytes; }

graphStatus Tensor::SetData(uint8_t* data, size_t size, const DeleteFunc& deleter) {
    if (data == nullptr && size > 0) return GRAPH_PARAM_INVALID;
    impl_->data = std::unique_ptr<uint8_t[], DeleteFunc>(data, deleter);
    impl_->bytes = size;
    return GRAPH_SUCCESS;
}
graphStatus Tensor::ResetData(uint8_t* data, size_t size, const DeleteFunc& deleter) { return SetData(data, size, deleter); }

std::unique_ptr<uint8_t[], Tensor::DeleteFunc> Tensor::ResetData() {
    impl_->bytes = 0;
    return std::move(impl_->data);
}

graphStatus Tensor::SetShapeDimNum(size_t count) {
    std::vector<int64_t> dims = impl_->Dims();
    dims.resize(count);
    impl_->SetDims(dims);
    return GRAPH_SUCCESS;
}
size_t Tensor::GetShapeDimNum() const { return impl_->Dims().size(); }
graphStatus Tensor::SetShapeDim(size_t index, int64_t value) {
    std::vector<int64_t> dims = impl_->Dims();
    if (index >= dims.size()) return GRAPH_PARAM_INVALID;
    dims[index] = value;
    impl_->SetDims(dims);
    return GRAPH_SUCCESS;
}
int64_t Tensor::GetShapeDim(size_t index) const {
    const std::vector<int64_t> dims = impl_->Dims();
    return index < dims.size() ? dims[index] : 0;
}

graphStatus Tensor::SetOriginShapeDimNum(size_t count) {
    std::vector<int64_t> dims = impl_->OriginDims();
    dims.resize(count);
    impl_->SetOriginDims(dims);
    return GRAPH_SUCCESS;
}
size_t Tensor::GetOriginShapeDimNum() const { return impl_->OriginDims().size(); }
graphStatus Tensor::SetOriginShapeDim(size_t index, int64_t value) {
    std::vector<int64_t> dims = impl_->OriginDims();
    if (index >= dims.size()) return GRAPH_PARAM_INVALID;
    dims[index] = value;
    impl_->SetOriginDims(dims);
    return GRAPH_SUCCESS;
}
int64_t Tensor::GetOriginShapeDim(size_t index) const {
    const std::vector<int64_t> dims = impl_->OriginDims();
    return index < dims.size() ? dims[index] : 0;
}

graphStatus Tensor::SetFormat(const Format& format) {
    impl_->desc.SetFormat(format);
    return GRAPH_SUCCESS;
}
Format Tensor::GetFormat() const { return impl_->desc.GetFormat(); }
graphStatus Tensor::SetDataType(const DataType& dtype) {
    impl_->desc.SetDataType(dtype);
    return GRAPH_SUCCESS;
}
DataType Tensor::GetDataType() const { return impl_->desc.GetDataType(); }
graphStatus Tensor::SetPlacement(const Placement& placement) {
    impl_->desc.SetPlacement(placement);
    return GRAPH_SUCCESS;
}
Placement Tensor::GetPlacement() const { return impl_->desc.GetPlacement(); }

}  // namespace ge
