#include "sim/opapi/handles.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "sim/opapi/session.h"

using sim::host::kInvalidParameter;
using sim::host::kNullPointer;
using sim::host::Refuse;
using sim::opapi::Guard;
using sim::opapi::GuardStatus;

bool aclTensor::IsContiguous() const {
    int64_t step = 1;
    for (size_t i = shape.GetDimNum(); i-- > 0;) {
        if (shape[i] != 1 && strides[i] != step) return Elements() == 0;
        step *= shape[i];
    }
    return true;
}

int64_t aclTensor::Reach() const {
    if (Elements() == 0) return 0;
    int64_t last = offset;
    for (size_t i = 0; i < shape.GetDimNum(); ++i) last += (shape[i] - 1) * std::max<int64_t>(strides[i], 0);
    return last + 1;
}

namespace {

// Visits the runs of adjacent elements of a view in its own order: visit(byte offset from the first element, bytes).
template <typename Visit>
void ForEachRun(const aclTensor& tensor, Visit&& visit) {
    if (tensor.Elements() == 0) return;
    size_t rank = tensor.shape.GetDimNum();
    int64_t run = 1;  // trailing dimensions that lie side by side
    while (rank > 0 && (tensor.shape[rank - 1] == 1 || tensor.strides[rank - 1] == run)) run *= tensor.shape[--rank];
    std::vector<int64_t> index(rank, 0);
    const int64_t bytes = tensor.ElementBytes();
    for (int64_t at = 0;;) {
        visit(at * bytes, run * bytes);
        size_t axis = rank;
        while (axis-- > 0) {
            at += tensor.strides[axis];
            if (++index[axis] < tensor.shape[axis]) break;
            at -= tensor.strides[axis] * tensor.shape[axis];
            index[axis] = 0;
        }
        if (axis == static_cast<size_t>(-1)) return;
    }
}

}  // namespace

void aclTensor::Gather(uint8_t* contiguous) const {
    ForEachRun(*this, [&](int64_t at, int64_t bytes) {
        std::memcpy(contiguous, First() + at, static_cast<size_t>(bytes));
        contiguous += bytes;
    });
}

void aclTensor::Scatter(const uint8_t* contiguous) const {
    ForEachRun(*this, [&](int64_t at, int64_t bytes) {
        std::memcpy(First() + at, contiguous, static_cast<size_t>(bytes));
        contiguous += bytes;
    });
}

namespace {

gert::Shape CheckedShape(const int64_t* dims, uint64_t count) {
    if (count > gert::Shape::kMaxDimNum)
        Refuse(kInvalidParameter, "aclCreateTensor: %llu dimensions, at most %zu are possible",
               static_cast<unsigned long long>(count), gert::Shape::kMaxDimNum);
    if (dims == nullptr && count != 0) Refuse(kNullPointer, "aclCreateTensor: viewDims is null");
    gert::Shape shape;
    for (uint64_t i = 0; i < count; ++i) {
        if (dims[i] < 0)
            Refuse(kInvalidParameter, "aclCreateTensor: dimension %llu is %lld, it must not be negative",
                   static_cast<unsigned long long>(i), static_cast<long long>(dims[i]));
        shape.AppendDim(dims[i]);
    }
    return shape;
}

template <typename Handle>
aclnnStatus Destroy(const Handle* handle) {
    delete handle;
    return 0;
}

template <typename Handle>
const Handle& Checked(const Handle* handle, const char* function) {
    if (handle == nullptr) Refuse(kNullPointer, "%s: the handle is null", function);
    return *handle;
}

void CopyOut(const std::vector<int64_t>& values, int64_t** array, uint64_t* count) {
    *array = new int64_t[std::max<size_t>(values.size(), 1)];
    std::copy(values.begin(), values.end(), *array);
    *count = values.size();
}

}  // namespace

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride,
                           int64_t offset, aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                           void* tensorData) {
    return Guard<aclTensor*>(nullptr, [&] {
        auto tensor = std::make_unique<aclTensor>();
        tensor->shape = CheckedShape(viewDims, viewDimsNum);
        tensor->strides.assign(viewDimsNum, 1);
        int64_t step = 1;
        for (size_t i = viewDimsNum; i-- > 0;) {
            tensor->strides[i] = stride != nullptr ? stride[i] : step;
            step *= viewDims[i];
        }
        tensor->offset = offset;
        tensor->dtype = static_cast<ge::DataType>(dataType);
        tensor->format = static_cast<ge::Format>(format);
        if (storageDims != nullptr) tensor->storageDims.assign(storageDims, storageDims + storageDimsNum);
        tensor->data = tensorData;
        return tensor.release();
    });
}

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
    return Guard<aclScalar*>(nullptr, [&] {
        const size_t bytes = aclDataTypeSize(dataType);
        if (value == nullptr || bytes == 0) Refuse(kInvalidParameter,
                                                   "aclCreateScalar: no value, or a dtype without size");
        const uint8_t* first = static_cast<const uint8_t*>(value);
        return new aclScalar{static_cast<ge::DataType>(dataType), {first, first + bytes}};
    });
}
aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) { return new aclIntArray{{value, value + size}}; }
aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) { return new aclFloatArray{{value, value + size}}; }
aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) { return new aclBoolArray{{value, value + size}}; }
aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
    return new aclTensorList{{value, value + size}};
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) { return Destroy(tensor); }
aclnnStatus aclDestroyScalar(const aclScalar* scalar) { return Destroy(scalar); }
aclnnStatus aclDestroyIntArray(const aclIntArray* array) { return Destroy(array); }
aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) { return Destroy(array); }
aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) { return Destroy(array); }
aclnnStatus aclDestroyTensorList(const aclTensorList* list) {
    if (list != nullptr)
        for (const aclTensor* tensor : list->tensors) delete tensor;
    return Destroy(list);
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
    return GuardStatus([&] {
        const gert::Shape& shape = Checked(tensor, "aclGetViewShape").shape;
        std::vector<int64_t> dims;
        for (size_t i = 0; i < shape.GetDimNum(); ++i) dims.push_back(shape[i]);
        CopyOut(dims, viewDims, viewDimsNum);
    });
}
aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum) {
    return GuardStatus([&] { CopyOut(Checked(tensor, "aclGetStorageShape").storageDims, storageDims, storageDimsNum); });
}
aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** strides, uint64_t* stridesNum) {
    return GuardStatus([&] { CopyOut(Checked(tensor, "aclGetViewStrides").strides, strides, stridesNum); });
}
aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
    return GuardStatus([&] { *offset = Checked(tensor, "aclGetViewOffset").offset; });
}
aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
    return GuardStatus([&] { *format = static_cast<aclFormat>(Checked(tensor, "aclGetFormat").format); });
}
aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
    return GuardStatus([&] { *dataType = static_cast<aclDataType>(Checked(tensor, "aclGetDataType").dtype); });
}
aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** address) {
    return GuardStatus([&] { *address = Checked(tensor, "aclGetRawTensorAddr").data; });
}
aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
    return GuardStatus([&] { *size = Checked(array, "aclGetIntArraySize").values.size(); });
}
aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
    return GuardStatus([&] { *size = Checked(array, "aclGetFloatArraySize").values.size(); });
}
aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
    return GuardStatus([&] { *size = Checked(array, "aclGetBoolArraySize").values.size(); });
}
aclnnStatus aclGetTensorListSize(const aclTensorList* list, uint64_t* size) {
    return GuardStatus([&] { *size = Checked(list, "aclGetTensorListSize").tensors.size(); });
}

size_t aclDataTypeSize(aclDataType dataType) {
    const int bytes = ge::GetSizeByDataType(static_cast<ge::DataType>(dataType));
    return bytes < 0 ? 0 : static_cast<size_t>(bytes);
}
