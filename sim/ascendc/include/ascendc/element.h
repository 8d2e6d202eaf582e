// tensor(i): an element that reads and writes through GetValue and SetValue.
#pragma once

#include "sim/core/types.h"

namespace AscendC {

template <typename Tensor, typename T>
class Element {
public:
    Element(const Tensor& tensor, uint64_t index, sim::Location where) : tensor_(tensor), index_(index), where_(where) {}
    operator T() const { return tensor_.GetValue(index_, where_); }
    const Element& operator=(T value) const {
        tensor_.SetValue(index_, value, where_);
        return *this;
    }
    const Element& operator=(const Element& other) const { return *this = static_cast<T>(other); }
    const Element& operator+=(T value) const { return *this = static_cast<T>(static_cast<T>(*this) + value); }
    const Element& operator-=(T value) const { return *this = static_cast<T>(static_cast<T>(*this) - value); }
    const Element& operator*=(T value) const { return *this = static_cast<T>(static_cast<T>(*this) * value); }
    const Element& operator/=(T value) const { return *this = static_cast<T>(static_cast<T>(*this) / value); }

private:
    Tensor tensor_;
    uint64_t index_;
    sim::Location where_;
};

}  // namespace AscendC
