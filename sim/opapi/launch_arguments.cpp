#include "sim/opapi/launch_arguments.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "sim/host/text.h"

namespace sim::opapi {
namespace {

constexpr uint64_t kGmAlignment = 512;  // what the device's allocators give

template <typename T>
void FillAs(void* memory, int64_t elements, uint64_t value) {
    T* values = static_cast<T*>(memory);
    for (int64_t i = 0; i < elements; ++i) values[i] = static_cast<T>(value);
}

uint16_t BFloat16Bits(uint64_t value) {
    const float wide = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &wide, sizeof bits);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);  // round to nearest even
}

// InitValue: what an output holds before the kernel runs.
void Initialise(const host::Parameter& parameter, ge::DataType dtype, void* memory, int64_t elements) {
    const uint64_t value = *parameter.initValue;
    switch (dtype) {
        case ge::DT_FLOAT: return FillAs<float>(memory, elements, value);
        case ge::DT_FLOAT16: return FillAs<_Float16>(memory, elements, value);
        case ge::DT_BF16: return FillAs<uint16_t>(memory, elements, BFloat16Bits(value));
        case ge::DT_DOUBLE: return FillAs<double>(memory, elements, value);
        case ge::DT_BOOL: case ge::DT_INT8: case ge::DT_UINT8: return FillAs<uint8_t>(memory, elements, value);
        case ge::DT_INT16: case ge::DT_UINT16: return FillAs<uint16_t>(memory, elements, value);
        case ge::DT_INT32: case ge::DT_UINT32: return FillAs<uint32_t>(memory, elements, value);
        case ge::DT_INT64: case ge::DT_UINT64: return FillAs<uint64_t>(memory, elements, value);
        default:
            host::Refuse(host::kInvalidParameter, "InitValue of output %s is not modelled for %s", parameter.name.c_str(),
                         host::DtypeName(dtype).c_str());
    }
}

}  // namespace

void LaunchArguments::Free::operator()(uint8_t* memory) const { std::free(memory); }

uint8_t* LaunchArguments::Allocate(uint64_t bytes) {
    void* memory = std::aligned_alloc(kGmAlignment, (bytes + kGmAlignment - 1) / kGmAlignment * kGmAlignment);
    if (memory == nullptr) throw std::bad_alloc();
    return staged_.emplace_back(static_cast<uint8_t*>(memory)).get();
}

void LaunchArguments::AddBuffer(const char* name, void* data, uint64_t bytes, GmRole role) {
    if (bytes != 0) request_.buffers.push_back({name, data, bytes, role});
    request_.argv.push_back(data);
}

void* LaunchArguments::Place(const Argument& argument, size_t instance, GmRole role) {
    const aclTensor& tensor = argument.tensors[instance];
    const bool strided = !tensor.IsContiguous();
    void* data = tensor.First();
    uint64_t bytes = tensor.Bytes();
    if (strided && role == GmRole::Input && argument.parameter->ignoreContiguous) {
        bytes = static_cast<uint64_t>((tensor.Reach() - tensor.offset) * tensor.ElementBytes());
    } else if (strided) {
        uint8_t* copy = Allocate(bytes);
        if (role == GmRole::Output) copyBack_.emplace_back(&tensor, copy);
        // An output's old values stay where the kernel does not write.
        tensor.Gather(copy);
        data = copy;
    }
    if (role == GmRole::Output && argument.parameter->initValue) {
        Initialise(*argument.parameter, tensor.dtype, data, tensor.Elements());
        role = GmRole::InOut;
    }
    if (bytes != 0) request_.buffers.push_back({argument.Name(instance), data, bytes, role});
    return data;
}

// A dynamic parameter's argument is a table in GM: byte offset of the pointers, then for each tensor its rank with its index in
// the upper half, and its dimensions; then the pointers. All entries have 64 bits.
void LaunchArguments::Add(const Argument& argument, GmRole role) {
    if (!argument.IsDynamic()) {
        request_.argv.push_back(argument.tensors.empty() ? nullptr : Place(argument, 0, role));
        return;
    }
    std::vector<uint64_t> table(1), pointers;
    for (size_t i = 0; i < argument.tensors.size(); ++i) {
        const gert::Shape& shape = argument.tensors[i].shape;
        table.push_back(uint64_t(i) << 32 | shape.GetDimNum());
        for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) table.push_back(static_cast<uint64_t>(shape[axis]));
        pointers.push_back(reinterpret_cast<uintptr_t>(Place(argument, i, role)));
    }
    table[0] = table.size() * sizeof(uint64_t);
    table.insert(table.end(), pointers.begin(), pointers.end());
    uint8_t* memory = Allocate(table.size() * sizeof(uint64_t));
    std::memcpy(memory, table.data(), table.size() * sizeof(uint64_t));
    AddBuffer(argument.parameter->name.c_str(), memory, table.size() * sizeof(uint64_t), GmRole::Input);
}

void LaunchArguments::AddInput(const Argument& argument) {
    Add(argument, GmRole::Input);
    inputs_.push_back(request_.argv.back());
}

void LaunchArguments::AddOutput(const Argument& argument) {
    const int inPlace = argument.parameter->inPlace;
    if (inPlace < 0 || argument.IsDynamic() || argument.tensors.empty()) return Add(argument, GmRole::Output);
    void* data = inputs_[static_cast<size_t>(inPlace)];
    request_.argv.push_back(data);
    for (GmBuffer& buffer : request_.buffers)
        if (buffer.data == data) buffer.role = GmRole::InOut;
    const aclTensor& tensor = argument.tensors.front();
    if (data != tensor.First()) copyBack_.emplace_back(&tensor, static_cast<const uint8_t*>(data));
}

void LaunchArguments::CopyBack() const {
    for (const auto& [tensor, copy] : copyBack_) tensor->Scatter(copy);
}

}  // namespace sim::opapi
