#include "graph/tensor.h"
#include "graph/utils/type_utils.h"

namespace ge {

const char* GetFormatName(Format format) {
    static thread_local std::string name;
    name = TypeUtils::FormatToSerialString(static_cast<Format>(GetPrimaryFormat(format)));
    return name.c_str();
}

class ShapeImpl {
public:
    std::vector<int64_t> dims;
};

Shape::Shape() : Shape(std::vector<int64_t>()) {}
Shape::Shape(const std::vector<int64_t>& dims) : impl_(std::make_shared<ShapeImpl>(ShapeImpl{dims})) {}
std::vector<int64_t> Shape::GetDims() const { return impl_->dims; }

class TensorDescImpl {
public:
    Shape shape, originShape;
    Format format = FORMAT_ND, originFormat = FORMAT_ND;
    DataType dtype = DT_FLOAT;
    Placement placement = kPlacementHost;
};

TensorDesc::TensorDesc() : impl_(std::make_shared<TensorDescImpl>()) {}
TensorDesc::TensorDesc(const TensorDesc& other) : impl_(std::make_shared<TensorDescImpl>(*other.impl_)) {}
TensorDesc::TensorDesc(TensorDesc&& other) : TensorDesc(static_cast<const TensorDesc&>(other)) {}
TensorDesc::TensorDesc(Shape shape, Format format, DataType dtype) : TensorDesc() {
    impl_->shape = impl_->originShape = shape;
    impl_->format = impl_->originFormat = format;
    impl_->dtype = dtype;
}
TensorDesc& TensorDesc::operator=(const TensorDesc& other) {
    *impl_ = *other.impl_;
    return *this;
}
TensorDesc& TensorDesc::operator=(TensorDesc&& other) { return *this = static_cast<const TensorDesc&>(other); }

Shape TensorDesc::GetShape() const { return impl_->shape; }
void TensorDesc::SetShape(const Shape& shape) { impl_->shape = shape; }
Shape TensorDesc::GetOriginShape() const { return impl_->originShape; }
void TensorDesc::SetOriginShape(const Shape& shape) { impl_->originShape = shape; }
Format TensorDesc::GetFormat() const { return impl_->format; }
void TensorDesc::SetFormat(Format format) { impl_->format = format; }
Format TensorDesc::GetOriginFormat() const { return impl_->originFormat; }
void TensorDesc::SetOriginFormat(Format format) { impl_->originFormat = format; }
DataType TensorDesc::GetDataType() const { return impl_->dtype; }
void TensorDesc::SetDataType(DataType dtype) { impl_->dtype = dtype; }
Placement TensorDesc::GetPlacement() const { return impl_->placement; }
void TensorDesc::SetPlacement(Placement placement) { impl_->placement = placement; }

}  // namespace ge
