#include <array>

#include "sim/ge/ge_types.h"

namespace ge {
namespace {

// C_Format 0 .. 51, in its order.
constexpr std::array<const char*, 52> kFormatNames = {
    "NCHW", "NHWC", "ND", "NC1HWC0", "FRACTAL_Z", "NC1C0HWPAD", "NHWC1C0", "FSR_NCHW", "FRACTAL_DECONV", "C1HWNC0",
    "FRACTAL_DECONV_TRANSPOSE", "FRACTAL_DECONV_SP_STRIDE_TRANS", "NC1HWC0_C04", "FRACTAL_Z_C04", "CHWN",
    "FRACTAL_DECONV_SP_STRIDE8_TRANS", "HWCN", "NC1KHKWHWC0", "BN_WEIGHT", "FILTER_HWCK", "HASHTABLE_LOOKUP_LOOKUPS",
    "HASHTABLE_LOOKUP_KEYS", "HASHTABLE_LOOKUP_VALUE", "HASHTABLE_LOOKUP_OUTPUT", "HASHTABLE_LOOKUP_HITS", "C1HWNCoC0", "MD",
    "NDHWC", "FRACTAL_ZZ", "FRACTAL_NZ", "NCDHW", "DHWCN", "NDC1HWC0", "FRACTAL_Z_3D", "CN", "NC", "DHWNC",
    "FRACTAL_Z_3D_TRANSPOSE", "FRACTAL_ZN_LSTM", "FRACTAL_Z_G", "RESERVED", "ALL", "NULL", "ND_RNN_BIAS", "FRACTAL_ZN_RNN",
    "NYUV", "NYUV_A", "NCL", "FRACTAL_Z_WINO", "C1HWC0", "FRACTAL_NZ_C0_16", "FRACTAL_NZ_C0_32"};

}  // namespace

const char* GetFormatName(Format format) {
    const auto primary = static_cast<size_t>(format) & 0xFF;  // the sub-format is in the bits above
    return primary < kFormatNames.size() ? kFormatNames[primary] : "UNKNOWN";
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
