// Macro-declared tiling data. Fields are laid out as in a plain C++ struct of the same members, so the kernel's struct is
// generated from the field list.
//
//   BEGIN_TILING_DATA_DEF(HcPostTiling)
//   TILING_DATA_FIELD_DEF(uint32_t, tokens);
//   TILING_DATA_FIELD_DEF_ARR(int64_t, 4, rows);
//   TILING_DATA_FIELD_DEF_STRUCT(TileTiling, tile);
//   END_TILING_DATA_DEF;
//   REGISTER_TILING_DATA_CLASS(HcPost, HcPostTiling)
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/types.h"

namespace optiling {

class TilingDef;

struct FieldInfo {
    const char* type;    // as written; the class name for a struct
    const char* name;
    size_t count;        // 1 for a scalar
    size_t bytes;        // of all elements
    size_t alignment;
    size_t member;       // place in the host class
    bool isStruct;
    size_t offset = 0;   // in the buffer
};

class TilingDef {
public:
    virtual ~TilingDef() = default;

    // Writes the fields at their offsets; padding is zero. Nothing is written when `capacity` is too small.
    void SaveToBuffer(void* buffer, size_t capacity) const;
    void LoadFromBuffer(const void* buffer);   // GetDataSize() bytes
    size_t GetDataSize() const { return bytes_; }
    size_t Alignment() const { return alignment_; }
    const char* GetTilingClassName() const { return className_; }
    const std::vector<FieldInfo>& GetFieldInfo() const { return fields_; }
    const TilingDef& Nested(const FieldInfo& field) const;

protected:
    explicit TilingDef(const char* className) : className_(className) {}
    void AddField(FieldInfo field, const void* member);

    // Default member initialisers of this type announce the fields in declaration order.
    struct FieldMark {
        FieldMark(TilingDef* owner, const char* type, const char* name, size_t count, size_t bytes, size_t alignment,
                  const void* member) {
            owner->AddField({type, name, count, bytes, alignment, 0, false}, member);
        }
        FieldMark(TilingDef* owner, const char* type, const char* name, const TilingDef* nested) {
            owner->AddField({type, name, 1, nested->GetDataSize(), nested->Alignment(), 0, true}, nested);
        }
    };

private:
    const char* className_;
    std::vector<FieldInfo> fields_;
    size_t bytes_ = 0, end_ = 0, alignment_ = 1;
};

struct TilingClassRegistration {
    TilingClassRegistration(const char* opType, std::shared_ptr<TilingDef> (*create)());
};

}  // namespace optiling

#define BEGIN_TILING_DATA_DEF(class_name)               \
    class class_name : public ::optiling::TilingDef {   \
    public:                                             \
        class_name() : ::optiling::TilingDef(#class_name) {}

#define TILING_DATA_FIELD_DEF(data_type, field_name)                                                        \
public:                                                                                                     \
    void set_##field_name(data_type value) { field_name##_ = value; }                                       \
    data_type get_##field_name() const { return field_name##_; }                                            \
                                                                                                            \
private:                                                                                                    \
    data_type field_name##_ = {};                                                                           \
    FieldMark field_name##Mark_{this, #data_type, #field_name, 1, sizeof(data_type), alignof(data_type),    \
                                &field_name##_};                                                            \
                                                                                                            \
public:

#define TILING_DATA_FIELD_DEF_ARR(data_type, arr_size, field_name)                                          \
public:                                                                                                     \
    void set_##field_name(const data_type* values) {                                                        \
        for (size_t i = 0; i < (arr_size); ++i) field_name##_[i] = values[i];                               \
    }                                                                                                       \
    data_type* get_##field_name() { return field_name##_; }                                                 \
    const data_type* get_##field_name() const { return field_name##_; }                                     \
                                                                                                            \
private:                                                                                                    \
    data_type field_name##_[arr_size] = {};                                                                 \
    FieldMark field_name##Mark_{this, #data_type, #field_name, arr_size, sizeof(data_type) * (arr_size),    \
                                alignof(data_type), field_name##_};                                         \
                                                                                                            \
public:

#define TILING_DATA_FIELD_DEF_STRUCT(struct_type, field_name)                   \
public:                                                                         \
    struct_type field_name;                                                     \
                                                                                \
private:                                                                        \
    FieldMark field_name##Mark_{this, #struct_type, #field_name, &field_name};  \
                                                                                \
public:

#define END_TILING_DATA_DEF \
    }

// `op_type` is an op, an op and a tiling key (HcPost_2), or any name for a class that is only nested in others.
#define REGISTER_TILING_DATA_CLASS(op_type, class_name)                                                       \
    [[maybe_unused]] static const ::optiling::TilingClassRegistration g_tilingClass_##op_type##_##class_name( \
        #op_type, []() -> std::shared_ptr<::optiling::TilingDef> { return std::make_shared<class_name>(); });
