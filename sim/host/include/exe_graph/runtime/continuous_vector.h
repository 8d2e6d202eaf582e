// A vector whose elements follow its header in one block of memory; list attributes are handed out as such.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gert {

class ContinuousVector {
public:
    explicit ContinuousVector(size_t size) : capacity_(size), size_(size) {}
    size_t GetSize() const { return size_; }
    size_t GetCapacity() const { return capacity_; }
    const void* GetData() const { return this + 1; }
    void* MutableData() { return this + 1; }

private:
    size_t capacity_, size_;
    int64_t reserved_[2] = {0, 0};  // keeps the elements on 16 bytes
};

template <typename T>
class TypedContinuousVector : public ContinuousVector {
public:
    using ContinuousVector::ContinuousVector;
    const T* GetData() const { return static_cast<const T*>(ContinuousVector::GetData()); }
    T* MutableData() { return static_cast<T*>(ContinuousVector::MutableData()); }
};

}  // namespace gert
