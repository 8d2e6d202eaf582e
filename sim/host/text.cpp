#include "sim/host/text.h"

#include <cstdarg>
#include <cstdio>

#include "graph/utils/type_utils.h"

namespace sim::host {
namespace {

struct DtypeRow {
    ge::DataType code;
    const char* symbol;
    const char* name;
    int bytes;
};
constexpr DtypeRow kDtypes[] = {
    {ge::DT_FLOAT, "DT_FLOAT", "float32", 4},
    {ge::DT_FLOAT16, "DT_FLOAT16", "float16", 2},
    {ge::DT_INT8, "DT_INT8", "int8", 1},
    {ge::DT_INT32, "DT_INT32", "int32", 4},
    {ge::DT_UINT8, "DT_UINT8", "uint8", 1},
    {ge::DT_INT16, "DT_INT16", "int16", 2},
    {ge::DT_UINT16, "DT_UINT16", "uint16", 2},
    {ge::DT_UINT32, "DT_UINT32", "uint32", 4},
    {ge::DT_INT64, "DT_INT64", "int64", 8},
    {ge::DT_UINT64, "DT_UINT64", "uint64", 8},
    {ge::DT_DOUBLE, "DT_DOUBLE", "float64", 8},
    {ge::DT_BOOL, "DT_BOOL", "bool", 1},
    {ge::DT_STRING, "DT_STRING", "string", -1},
    {ge::DT_COMPLEX64, "DT_COMPLEX64", "complex64", 8},
    {ge::DT_COMPLEX128, "DT_COMPLEX128", "complex128", 16},
    {ge::DT_COMPLEX32, "DT_COMPLEX32", "complex32", 4},
    {ge::DT_BF16, "DT_BF16", "bfloat16", 2},
    {ge::DT_UNDEFINED, "DT_UNDEFINED", "undefined", -1},
    {ge::DT_INT4, "DT_INT4", "int4", -1},
    {ge::DT_UINT1, "DT_UINT1", "uint1", -1},
    {ge::DT_INT2, "DT_INT2", "int2", -1},
    {ge::DT_UINT2, "DT_UINT2", "uint2", -1},
    {ge::DT_QINT8, "DT_QINT8", "qint8", 1},
    {ge::DT_QUINT8, "DT_QUINT8", "quint8", 1},
    {ge::DT_QINT32, "DT_QINT32", "qint32", 4},
    {ge::DT_HIFLOAT8, "DT_HIFLOAT8", "hifloat8", 1},
    {ge::DT_FLOAT8_E5M2, "DT_FLOAT8_E5M2", "float8_e5m2", 1},
    {ge::DT_FLOAT8_E4M3FN, "DT_FLOAT8_E4M3FN", "float8_e4m3fn", 1},
    {ge::DT_FLOAT8_E8M0, "DT_FLOAT8_E8M0", "float8_e8m0", 1},
    {ge::DT_FLOAT4_E2M1, "DT_FLOAT4_E2M1", "float4_e2m1", -1},
    {ge::DT_FLOAT4_E1M2, "DT_FLOAT4_E1M2", "float4_e1m2", -1},
};

struct FormatRow {
    ge::Format code;
    const char* name;
};
constexpr FormatRow kFormats[] = {
    {ge::FORMAT_NCHW, "NCHW"},
    {ge::FORMAT_NHWC, "NHWC"},
    {ge::FORMAT_ND, "ND"},
    {ge::FORMAT_NC1HWC0, "NC1HWC0"},
    {ge::FORMAT_FRACTAL_Z, "FRACTAL_Z"},
    {ge::FORMAT_CHWN, "CHWN"},
    {ge::FORMAT_HWCN, "HWCN"},
    {ge::FORMAT_NDHWC, "NDHWC"},
    {ge::FORMAT_FRACTAL_ZZ, "FRACTAL_ZZ"},
    {ge::FORMAT_FRACTAL_NZ, "FRACTAL_NZ"},
    {ge::FORMAT_NCDHW, "NCDHW"},
    {ge::FORMAT_DHWCN, "DHWCN"},
    {ge::FORMAT_NDC1HWC0, "NDC1HWC0"},
    {ge::FORMAT_FRACTAL_Z_3D, "FRACTAL_Z_3D"},
    {ge::FORMAT_CN, "CN"},
    {ge::FORMAT_NC, "NC"},
    {ge::FORMAT_DHWNC, "DHWNC"},
    {ge::FORMAT_ALL, "ALL"},
    {ge::FORMAT_NULL, "NULL"},
    {ge::FORMAT_ND_RNN_BIAS, "ND_RNN_BIAS"},
    {ge::FORMAT_FRACTAL_ZN_RNN, "FRACTAL_ZN_RNN"},
    {ge::FORMAT_NCL, "NCL"},
};

const DtypeRow* FindDtype(ge::DataType dataType) {
    for (const DtypeRow& row : kDtypes)
        if (row.code == dataType) return &row;
    return nullptr;
}

}  // namespace

static std::string FormatList(const char* format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    std::string text(static_cast<size_t>(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
    std::vsnprintf(text.data(), text.size() + 1, format, again);
    va_end(again);
    return text;
}

std::string Format(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::string text = FormatList(format, arguments);
    va_end(arguments);
    return text;
}

void Refuse(int32_t status, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const std::string text = FormatList(format, arguments);
    va_end(arguments);
    throw HostError(status, text);
}

std::string Join(const std::vector<std::string>& parts, const char* separator) {
    std::string text;
    for (size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : separator) + parts[i];
    return text;
}

std::string DtypeName(ge::DataType dataType) {
    const DtypeRow* row = FindDtype(dataType);
    return row == nullptr ? "dtype " + std::to_string(static_cast<int>(dataType)) : row->name;
}

std::string DtypeSymbol(ge::DataType dataType) {
    const DtypeRow* row = FindDtype(dataType);
    return row == nullptr ? "DT_" + std::to_string(static_cast<int>(dataType)) : row->symbol;
}

std::string FormatSymbol(ge::Format format) { return "FORMAT_" + ge::TypeUtils::FormatToSerialString(format); }

std::string ShapeText(const gert::Shape& shape) {
    std::vector<std::string> dims;
    for (size_t i = 0; i < shape.GetDimNum(); ++i) dims.push_back(std::to_string(shape.GetDim(i)));
    return "[" + Join(dims) + "]";
}

}  // namespace sim::host

namespace ge {

int GetSizeByDataType(DataType dataType) {
    const auto* row = sim::host::FindDtype(dataType);
    return row == nullptr ? -1 : row->bytes;
}

std::string TypeUtils::DataTypeToSerialString(DataType dataType) { return sim::host::DtypeSymbol(dataType); }

DataType TypeUtils::SerialStringToDataType(const std::string& name) {
    for (const auto& row : sim::host::kDtypes)
        if (name == row.symbol) return row.code;
    return DT_UNDEFINED;
}

std::string TypeUtils::FormatToSerialString(Format format) {
    for (const auto& row : sim::host::kFormats)
        if (row.code == format) return row.name;
    return std::to_string(static_cast<int>(format));
}

Format TypeUtils::SerialStringToFormat(const std::string& name) {
    for (const auto& row : sim::host::kFormats)
        if (name == row.name) return row.code;
    return FORMAT_RESERVED;
}

}  // namespace ge
