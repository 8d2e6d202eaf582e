#include "checks.h"

#include <cmath>
#include <cstdio>
#include <stdexcept>

#if defined(__linux__)
// Since torch 2.13; this library also loads in 2.10, where the address is null and torch writes the reason to the standard error output.
extern "C" __attribute__((weak)) const char* torch_exception_get_what_without_backtrace();
#endif

namespace custom_ops {

std::string Text(Sizes shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

std::string Text(double value) {
    if (std::isnan(value)) return "nan";  // printf may write "-nan"
    char text[32];
    std::snprintf(text, sizeof(text), "%g", value);
    return text;
}

std::string Text(ScalarType dtype) {
    switch (dtype) {
        case ScalarType::Byte: return "uint8";
        case ScalarType::Char: return "int8";
        case ScalarType::Short: return "int16";
        case ScalarType::Int: return "int32";
        case ScalarType::Long: return "int64";
        case ScalarType::Half: return "float16";
        case ScalarType::Float: return "float32";
        case ScalarType::Double: return "float64";
        case ScalarType::ComplexHalf: return "complex32";
        case ScalarType::ComplexFloat: return "complex64";
        case ScalarType::ComplexDouble: return "complex128";
        case ScalarType::Bool: return "bool";
        case ScalarType::BFloat16: return "bfloat16";
        case ScalarType::Float8_e5m2: return "float8_e5m2";
        case ScalarType::Float8_e4m3fn: return "float8_e4m3fn";
        case ScalarType::UInt16: return "uint16";
        case ScalarType::UInt32: return "uint32";
        case ScalarType::UInt64: return "uint64";
        default: return "number " + std::to_string(static_cast<int>(dtype));
    }
}

std::string DeviceText(const Tensor& tensor) {
    if (tensor.is_cpu()) return "cpu";
    const auto type = tensor.device().type();
    const std::string index = std::to_string(tensor.get_device_index());
    if (type == torch::headeronly::DeviceType::PrivateUse1) return "npu:" + index;
    return "device type " + std::to_string(static_cast<int>(type)) + ":" + index;
}

void Fail(const char* op, const std::string& what) { throw std::runtime_error(std::string(op) + ": " + what); }

void FailEmpty(Sizes shape, ScalarType dtype) {
    std::string why;
#if defined(__linux__)
    if (torch_exception_get_what_without_backtrace) why = std::string(": ") + torch_exception_get_what_without_backtrace();
#endif
    Fail("custom_ops", "no tensor " + Text(shape) + " of " + Text(dtype) + why);
}

void CheckGiven(const char* op, std::initializer_list<std::pair<const char*, const Tensor*>> arguments) {
    for (const auto& [name, tensor] : arguments)
        if (!tensor->defined()) Fail(op, std::string(name) + " must be a tensor, got None");
}

void CheckDtype(const char* op, const char* argument, const Tensor& tensor, std::initializer_list<ScalarType> accepted) {
    const ScalarType dtype = tensor.scalar_type();
    for (ScalarType one : accepted)
        if (one == dtype) return;
    std::string names;
    size_t index = 0;
    for (ScalarType one : accepted) {
        names += (index == 0 ? "" : index + 1 == accepted.size() ? " or " : ", ") + Text(one);
        ++index;
    }
    Fail(op, std::string(argument) + " dtype " + Text(dtype) + " is not supported, use " + names);
}

void CheckSameDtype(const char* op, const char* argument, const Tensor& tensor, const Tensor& like, const char* name) {
    if (tensor.scalar_type() == like.scalar_type()) return;
    Fail(op, std::string(argument) + " must have the dtype of " + name + ", " + Text(like.scalar_type()) + ", got " +
                 Text(tensor.scalar_type()));
}

void CheckRange(const char* op, const char* argument, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return;
    Fail(op, std::string(argument) + " must be " + std::to_string(low) + " to " + std::to_string(high) + ", got " + std::to_string(value));
}

void CheckFiniteNonNegative(const char* op, const char* argument, double value) {
    if (std::isfinite(static_cast<float>(value)) && value >= 0) return;  // kernels and OpDefs hold it in float32
    Fail(op, std::string(argument) + " must be finite in float32 and >= 0, got " + Text(value));
}

void CheckDevice(const char* op, const char* argument, const Tensor& tensor, const Tensor& x, const char* name) {
    int32_t type, typeOfX;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(tensor.get(), &type));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(x.get(), &typeOfX));
    if (type == typeOfX && tensor.get_device_index() == x.get_device_index()) return;
    Fail(op, std::string(argument) + " is on " + DeviceText(tensor) + " and " + name + " on " + DeviceText(x) + ", all must be on one device");
}

}  // namespace custom_ops
