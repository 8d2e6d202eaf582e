#include "sim/aclnn/values.h"

#include "sim/host/text.h"
#include "sim/opapi/handles.h"
#include "sim/opapi/stream.h"

namespace sim::aclnn {
namespace {

using host::kInvalidParameter;
using host::kNullPointer;
using host::Refuse;

std::optional<at::ScalarType> ScalarTypeOf(ge::DataType dtype) {
    switch (dtype) {
        case ge::DT_FLOAT: return at::kFloat;
        case ge::DT_FLOAT16: return at::kHalf;
        case ge::DT_BF16: return at::kBFloat16;
        case ge::DT_DOUBLE: return at::kDouble;
        case ge::DT_INT8: return at::kChar;
        case ge::DT_UINT8: return at::kByte;
        case ge::DT_INT16: return at::kShort;
        case ge::DT_INT32: return at::kInt;
        case ge::DT_INT64: return at::kLong;
        case ge::DT_UINT16: return at::kUInt16;
        case ge::DT_UINT32: return at::kUInt32;
        case ge::DT_UINT64: return at::kUInt64;
        case ge::DT_BOOL: return at::kBool;
        case ge::DT_COMPLEX32: return at::kComplexHalf;
        case ge::DT_COMPLEX64: return at::kComplexFloat;
        case ge::DT_COMPLEX128: return at::kComplexDouble;
        case ge::DT_FLOAT8_E5M2: return at::kFloat8_e5m2;
        case ge::DT_FLOAT8_E4M3FN: return at::kFloat8_e4m3fn;
        default: return std::nullopt;
    }
}

at::ScalarType CheckedType(ge::DataType dtype, const ArgumentName& name) {
    const auto type = ScalarTypeOf(dtype);
    if (!type) Refuse(kInvalidParameter, "%s has dtype %s, which is not modelled", name.Text().c_str(), host::DtypeSymbol(dtype).c_str());
    return *type;
}

template <typename Handle>
const Handle& Present(const Handle* handle, const ArgumentName& name) {
    if (handle == nullptr) Refuse(kNullPointer, "%s is null", name.Text().c_str());
    return *handle;
}

at::Tensor View(const aclTensor& tensor, const ArgumentName& name) {
    constexpr ge::Format base[] = {ge::FORMAT_ND, ge::FORMAT_NCHW, ge::FORMAT_NHWC, ge::FORMAT_NCDHW, ge::FORMAT_NDHWC, ge::FORMAT_NCL};
    if (std::find(std::begin(base), std::end(base), tensor.format) == std::end(base))
        Refuse(kInvalidParameter, "%s has format %s: private formats are not modelled, use ND", name.Text().c_str(),
               host::FormatSymbol(tensor.format).c_str());
    if (tensor.data == nullptr && tensor.Elements() != 0)
        Refuse(kNullPointer, "%s has no data, its shape is %s", name.Text().c_str(), host::ShapeText(tensor.shape).c_str());
    if (tensor.Elements() != 0) name.device.Add(tensor.data, [&] { return name.Text(); });
    const std::string error = ExtentError(tensor.First(), tensor.ReachBytes());
    if (!error.empty()) Refuse(kInvalidParameter, "%s: %s", name.Text().c_str(), error.c_str());
    std::array<int64_t, gert::Shape::kMaxDimNum> sizes;
    const size_t rank = tensor.shape.GetDimNum();
    for (size_t axis = 0; axis < rank; ++axis) sizes[axis] = tensor.shape[axis];
    uint8_t* first = static_cast<uint8_t*>(HostAddress(tensor.data));
    if (first != nullptr) first += tensor.offset * tensor.ElementBytes();
    return at::for_blob(first, at::IntArrayRef(sizes.data(), rank))
        .strides(at::IntArrayRef(tensor.strides.data(), rank))
        .options(at::TensorOptions().dtype(CheckedType(tensor.dtype, name)))
        .target_device(at::kCPU)
        .make_tensor();
}

template <typename Type>
at::Scalar ScalarValue(const std::vector<uint8_t>& bytes) {
    Type value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return at::Scalar(value);
}

at::Scalar ScalarOf(const aclScalar& scalar, const ArgumentName& name) {
    switch (CheckedType(scalar.dtype, name)) {
        case at::kFloat: return ScalarValue<float>(scalar.value);
        case at::kDouble: return ScalarValue<double>(scalar.value);
        case at::kHalf: return ScalarValue<at::Half>(scalar.value);
        case at::kBFloat16: return ScalarValue<at::BFloat16>(scalar.value);
        case at::kChar: return ScalarValue<int8_t>(scalar.value);
        case at::kByte: return ScalarValue<uint8_t>(scalar.value);
        case at::kShort: return ScalarValue<int16_t>(scalar.value);
        case at::kInt: return ScalarValue<int32_t>(scalar.value);
        case at::kLong: return ScalarValue<int64_t>(scalar.value);
        case at::kBool: return ScalarValue<bool>(scalar.value);
        case at::kComplexFloat: return ScalarValue<c10::complex<float>>(scalar.value);
        case at::kComplexDouble: return ScalarValue<c10::complex<double>>(scalar.value);
        default: Refuse(kInvalidParameter, "%s has dtype %s, which no scalar has", name.Text().c_str(),
                        host::DtypeSymbol(scalar.dtype).c_str());
    }
}

// Equal but for dimensions of size 1: torch_npu passes [1] where ATen makes a 0-dim tensor, and the reverse.
bool SameButForOnes(at::IntArrayRef a, at::IntArrayRef b) {
    size_t i = 0, j = 0;
    for (;; ++i, ++j) {
        while (i < a.size() && a[i] == 1) ++i;
        while (j < b.size() && b[j] == 1) ++j;
        if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
        if (a[i] != b[j]) return false;
    }
}

}  // namespace

void Out::operator=(const at::Tensor& result) const {
    TORCH_CHECK(SameButForOnes(sizes(), result.sizes()), "the result has shape ", result.sizes(), ", the output tensor ", sizes());
    copy_(sizes() == result.sizes() ? result : result.reshape(sizes()));
}

void DynamicOut::operator=(const at::Tensor& result) const {
    TORCH_CHECK(result.numel() <= buffer_.numel(), "the result has shape ", result.sizes(), ", the output has room for ", buffer_.numel(),
                " elements");
    buffer_.as_strided(result.sizes(), result.contiguous().strides()).copy_(result);
    handle_->shape.SetDimNum(static_cast<size_t>(result.dim()));
    for (int64_t axis = 0; axis < result.dim(); ++axis) handle_->shape.SetDim(static_cast<size_t>(axis), result.size(axis));
    handle_->strides = result.contiguous().strides().vec();
}

std::string ArgumentName::Text() const {
    std::string text(parameters);
    size_t at = 0;
    for (size_t i = 0; i <= index; ++i) at = text.find(')', at) + 1;
    return std::string(function) + ": " + text.substr(at, text.find(',', at) - at);
}

Tensor Argument<Tensor>::Read(const aclTensor* handle, const ArgumentName& name) { return View(Present(handle, name), name); }
Optional Argument<Optional>::Read(const aclTensor* handle, const ArgumentName& name) {
    if (handle == nullptr) return std::nullopt;
    return View(*handle, name);
}
Out Argument<Out>::Read(const aclTensor* handle, const ArgumentName& name) { return Out(View(Present(handle, name), name)); }
OptionalOut Argument<OptionalOut>::Read(const aclTensor* handle, const ArgumentName& name) {
    return handle == nullptr ? OptionalOut() : OptionalOut(View(*handle, name));
}
DynamicOut Argument<DynamicOut>::Read(aclTensor* handle, const ArgumentName& name) {
    return DynamicOut(View(Present(handle, name), name), handle);
}
OptionalDynamicOut Argument<OptionalDynamicOut>::Read(aclTensor* handle, const ArgumentName& name) {
    if (handle == nullptr) return std::nullopt;
    return DynamicOut(View(*handle, name), handle);
}
Tensors Argument<Tensors>::Read(const aclTensorList* handle, const ArgumentName& name) {
    Tensors tensors;
    for (const aclTensor* tensor : Present(handle, name).tensors) tensors.push_back(tensor == nullptr ? at::Tensor() : View(*tensor, name));
    return tensors;
}
Outs Argument<Outs>::Read(const aclTensorList* handle, const ArgumentName& name) {
    Outs tensors;
    for (const aclTensor* tensor : Present(handle, name).tensors) tensors.emplace_back(View(Present(tensor, name), name));
    return tensors;
}
Scalar Argument<Scalar>::Read(const aclScalar* handle, const ArgumentName& name) { return ScalarOf(Present(handle, name), name); }
OptionalScalar Argument<OptionalScalar>::Read(const aclScalar* handle, const ArgumentName& name) {
    if (handle == nullptr) return std::nullopt;
    return ScalarOf(*handle, name);
}
Scalars Argument<Scalars>::Read(const aclScalarList* handle, const ArgumentName& name) {
    Scalars values;
    for (const aclScalar* scalar : Present(handle, name).scalars) values.push_back(ScalarOf(Present(scalar, name), name));
    return values;
}
Ints Argument<Ints>::Read(const aclIntArray* handle, const ArgumentName& name) { return Present(handle, name).values; }
OptionalInts Argument<OptionalInts>::Read(const aclIntArray* handle, const ArgumentName&) {
    if (handle == nullptr) return std::nullopt;
    return handle->values;
}
Bools Argument<Bools>::Read(const aclBoolArray* handle, const ArgumentName&) {
    Bools values;
    if (handle != nullptr) values.assign(handle->values.begin(), handle->values.end());
    return values;
}
Dtype Argument<Dtype>::Read(int32_t dtype, const ArgumentName& name) { return CheckedType(static_cast<ge::DataType>(dtype), name); }
Text Argument<Text>::Read(const char* text, const ArgumentName&) { return text == nullptr ? "" : text; }

}  // namespace sim::aclnn
