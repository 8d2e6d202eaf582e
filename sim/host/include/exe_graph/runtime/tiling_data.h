// The raw tiling buffer that the kernel receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "graph/ge_error_codes.h"

namespace gert {

class TilingData {
public:
    TilingData(void* data, size_t capacity) : data_(data), capacity_(capacity) {}

    void* GetData() { return data_; }
    const void* GetData() const { return data_; }
    size_t GetCapacity() const { return capacity_; }
    size_t GetDataSize() const { return size_; }
    void SetDataSize(size_t size) { size_ = size; }

    template <typename T, std::enable_if_t<std::is_trivially_copyable_v<T>, int> = 0>
    ge::graphStatus Append(const T& value) { return Append(&value, 1); }
    template <typename T, std::enable_if_t<std::is_trivially_copyable_v<T>, int> = 0>
    ge::graphStatus Append(const T* values, size_t count) {
        const size_t bytes = sizeof(T) * count;
        if (bytes > capacity_ - size_) return ge::GRAPH_FAILED;
        std::memcpy(static_cast<uint8_t*>(data_) + size_, values, bytes);
        size_ += bytes;
        return ge::GRAPH_SUCCESS;
    }

private:
    void* data_;
    size_t capacity_;
    size_t size_ = 0;
};

}  // namespace gert
