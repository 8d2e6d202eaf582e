// Attribute values of a node, in the order of the OpDef's Attr() calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exe_graph/runtime/continuous_vector.h"

namespace gert {

class RuntimeAttrs {
public:
    size_t GetAttrNum() const { return values_.size(); }
    // Pointer to the value: bool, float, int64_t, the characters of a string, or a ContinuousVector. Null past the end.
    template <typename T>
    const T* GetAttrPointer(size_t index) const {
        return static_cast<const T*>(index < values_.size() ? Address(values_[index]) : nullptr);
    }
    const int64_t* GetInt(size_t index) const { return GetAttrPointer<int64_t>(index); }
    const float* GetFloat(size_t index) const { return GetAttrPointer<float>(index); }
    const bool* GetBool(size_t index) const { return GetAttrPointer<bool>(index); }
    const char* GetStr(size_t index) const { return GetAttrPointer<char>(index); }
    const TypedContinuousVector<int64_t>* GetListInt(size_t index) const {
        return GetAttrPointer<TypedContinuousVector<int64_t>>(index);
    }
    const TypedContinuousVector<float>* GetListFloat(size_t index) const {
        return GetAttrPointer<TypedContinuousVector<float>>(index);
    }

    void Append(const void* value, size_t bytes);
    template <typename T>
    void AppendList(const T* values, size_t count) { AppendVector(values, count, sizeof(T)); }

private:
    using Block = std::vector<std::max_align_t>;
    static const void* Address(const Block& block) { return block.data(); }
    void AppendVector(const void* values, size_t count, size_t elementBytes);
    std::vector<Block> values_;
};

}  // namespace gert
