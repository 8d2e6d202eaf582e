// A list of at most 25 dimensions without heap memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace gert {

class Shape {
public:
    static constexpr size_t kMaxDimNum = 25;
    static constexpr int64_t kInvalidDimValue = std::numeric_limits<int64_t>::min();

    Shape() = default;
    Shape(std::initializer_list<int64_t> dims) {
        for (const int64_t dim : dims) AppendDim(dim);
    }

    bool operator==(const Shape& other) const {
        if (dimNum_ != other.dimNum_) return false;
        for (size_t i = 0; i < dimNum_; ++i)
            if (dims_[i] != other.dims_[i]) return false;
        return true;
    }
    bool operator!=(const Shape& other) const { return !(*this == other); }
    int64_t operator[](size_t index) const { return dims_[index]; }
    int64_t& operator[](size_t index) { return dims_[index]; }

    size_t GetDimNum() const { return dimNum_; }
    void SetDimNum(size_t dimNum) { dimNum_ = dimNum < kMaxDimNum ? dimNum : kMaxDimNum; }
    int64_t GetDim(size_t index) const { return index < dimNum_ ? dims_[index] : kInvalidDimValue; }
    void SetDim(size_t index, int64_t value) {
        if (index < kMaxDimNum) dims_[index] = value;
    }
    Shape& AppendDim(int64_t value) {
        if (dimNum_ < kMaxDimNum) dims_[dimNum_++] = value;
        return *this;
    }
    bool IsScalar() const { return dimNum_ == 0; }
    void SetScalar() { dimNum_ = 0; }
    // Product of the dimensions; 1 for a scalar, -1 when a dimension is unknown.
    int64_t GetShapeSize() const {
        int64_t size = 1;
        for (size_t i = 0; i < dimNum_; ++i) {
            if (dims_[i] < 0) return -1;
            size *= dims_[i];
        }
        return size;
    }

private:
    size_t dimNum_ = 0;
    std::array<int64_t, kMaxDimNum> dims_{};
};

}  // namespace gert
