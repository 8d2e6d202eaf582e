// Descriptions of single operators for the path before aclnn (aclopCompileAndExecute): tensors, buffers and attributes. They are
// real, so that callers can build them; running them is what libacl_op_compiler.so refuses by name.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "acl/acl_base.h"
#include "sim/acl/status.h"

struct aclTensorDesc {
    aclDataType dtype;
    std::vector<int64_t> dims;
    aclFormat format, storageFormat;
    std::vector<int64_t> storageDims;
    std::string name;
    int placement = 0;
};
struct aclDataBuffer {
    void* data;
    size_t bytes;
};
struct aclopAttr {
    using Value = std::variant<bool, int64_t, float, std::string, std::vector<uint8_t>, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::vector<int64_t>>, aclDataType>;
    std::map<std::string, Value> values;
};

using namespace sim::acl;

namespace {

template <typename Value>
int SetAttribute(const char* function, aclopAttr* attributes, const char* name, Value&& value) {
    return Call(function, [&] { NotNull(attributes, "attr").values[&NotNull(name, "attrName")] = value(); });
}

template <typename T>
std::vector<T> List(int count, const T* values) {
    if (count < 0) Refuse(kBadParameter, "%d values", count);
    if (count > 0) NotNull(values, "values");
    return {values, values + count};
}

}  // namespace

extern "C" {

ACL_FUNC_VISIBILITY aclTensorDesc* aclCreateTensorDesc(aclDataType dtype, int count, const int64_t* dims, aclFormat format) {
    aclTensorDesc* made = nullptr;
    Call("aclCreateTensorDesc", [&] {
        const auto shape = List(count, dims);
        made = new aclTensorDesc{dtype, shape, format, format, shape, "", 0};
    });
    return made;
}
ACL_FUNC_VISIBILITY void aclDestroyTensorDesc(const aclTensorDesc* description) { delete description; }
ACL_FUNC_VISIBILITY aclDataType aclGetTensorDescType(const aclTensorDesc* description) {
    return description == nullptr ? ACL_DT_UNDEFINED : description->dtype;
}
ACL_FUNC_VISIBILITY aclFormat aclGetTensorDescFormat(const aclTensorDesc* description) {
    return description == nullptr ? ACL_FORMAT_UNDEFINED : description->format;
}
ACL_FUNC_VISIBILITY size_t aclGetTensorDescNumDims(const aclTensorDesc* description) {
    return description == nullptr ? 0 : description->dims.size();
}
ACL_FUNC_VISIBILITY int aclGetTensorDescDimV2(const aclTensorDesc* description, size_t index, int64_t* size) {
    return Call("aclGetTensorDescDimV2", [&] {
        const auto& dims = NotNull(description, "desc").dims;
        if (index >= dims.size()) Refuse(kBadParameter, "dimension %zu of %zu", index, dims.size());
        NotNull(size, "dimSize") = dims[index];
    });
}
ACL_FUNC_VISIBILITY void aclSetTensorDescName(aclTensorDesc* description, const char* name) {
    if (description != nullptr) description->name = name == nullptr ? "" : name;
}
ACL_FUNC_VISIBILITY int aclSetTensorFormat(aclTensorDesc* description, aclFormat format) {
    return Call("aclSetTensorFormat", [&] { NotNull(description, "desc").storageFormat = format; });
}
ACL_FUNC_VISIBILITY int aclSetTensorShape(aclTensorDesc* description, int count, const int64_t* dims) {
    return Call("aclSetTensorShape", [&] { NotNull(description, "desc").storageDims = List(count, dims); });
}
ACL_FUNC_VISIBILITY int aclSetTensorPlaceMent(aclTensorDesc* description, int placement) {
    return Call("aclSetTensorPlaceMent", [&] { NotNull(description, "desc").placement = placement; });
}

ACL_FUNC_VISIBILITY aclDataBuffer* aclCreateDataBuffer(void* data, size_t bytes) { return new aclDataBuffer{data, bytes}; }
ACL_FUNC_VISIBILITY int aclDestroyDataBuffer(const aclDataBuffer* buffer) {
    delete buffer;
    return kSuccess;
}

ACL_FUNC_VISIBILITY aclopAttr* aclopCreateAttr() { return new aclopAttr; }
ACL_FUNC_VISIBILITY void aclopDestroyAttr(const aclopAttr* attributes) { delete attributes; }
ACL_FUNC_VISIBILITY int aclopSetAttrBool(aclopAttr* attributes, const char* name, uint8_t value) {
    return SetAttribute("aclopSetAttrBool", attributes, name, [&] { return value != 0; });
}
ACL_FUNC_VISIBILITY int aclopSetAttrInt(aclopAttr* attributes, const char* name, int64_t value) {
    return SetAttribute("aclopSetAttrInt", attributes, name, [&] { return value; });
}
ACL_FUNC_VISIBILITY int aclopSetAttrFloat(aclopAttr* attributes, const char* name, float value) {
    return SetAttribute("aclopSetAttrFloat", attributes, name, [&] { return value; });
}
ACL_FUNC_VISIBILITY int aclopSetAttrString(aclopAttr* attributes, const char* name, const char* value) {
    return SetAttribute("aclopSetAttrString", attributes, name, [&] { return std::string(&NotNull(value, "attrValue")); });
}
ACL_FUNC_VISIBILITY int aclopSetAttrDataType(aclopAttr* attributes, const char* name, aclDataType value) {
    return SetAttribute("aclopSetAttrDataType", attributes, name, [&] { return value; });
}
ACL_FUNC_VISIBILITY int aclopSetAttrListBool(aclopAttr* attributes, const char* name, int count, const uint8_t* values) {
    return SetAttribute("aclopSetAttrListBool", attributes, name, [&] { return List(count, values); });
}
ACL_FUNC_VISIBILITY int aclopSetAttrListInt(aclopAttr* attributes, const char* name, int count, const int64_t* values) {
    return SetAttribute("aclopSetAttrListInt", attributes, name, [&] { return List(count, values); });
}
ACL_FUNC_VISIBILITY int aclopSetAttrListFloat(aclopAttr* attributes, const char* name, int count, const float* values) {
    return SetAttribute("aclopSetAttrListFloat", attributes, name, [&] { return List(count, values); });
}
ACL_FUNC_VISIBILITY int aclopSetAttrListListInt(aclopAttr* attributes, const char* name, int count, const int* counts,
                                                const int64_t* const* values) {
    return SetAttribute("aclopSetAttrListListInt", attributes, name, [&] {
        std::vector<std::vector<int64_t>> lists;
        const auto sizes = List(count, counts);
        const auto rows = List(count, values);
        for (size_t i = 0; i < rows.size(); ++i) lists.push_back(List(sizes[i], rows[i]));
        return lists;
    });
}

// The log of applications: on the device a file, or the screen when ASCEND_SLOG_PRINT_TO_STDOUT is 1, from the level on that
// ASCEND_GLOBAL_LOG_LEVEL gives. Here the screen or nothing.
ACL_FUNC_VISIBILITY void aclAppLog(int level, const char* function, const char* file, uint32_t line, const char* format, ...) {
    constexpr int kError = 3;
    const char* shown = std::getenv("ASCEND_SLOG_PRINT_TO_STDOUT");
    const char* least = std::getenv("ASCEND_GLOBAL_LOG_LEVEL");
    if (shown == nullptr || *shown != '1' || level < (least != nullptr ? std::atoi(least) : kError) || format == nullptr) return;
    va_list arguments;
    va_start(arguments, format);
    std::fprintf(stderr, "[acl] %s (%s:%u): ", function == nullptr ? "" : function, file == nullptr ? "" : file, line);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
}

}  // extern "C"
