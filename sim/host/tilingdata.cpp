// Layout of macro-declared tiling data: the layout a C++ compiler gives the same members.
#include "register/tilingdata_base.h"

namespace optiling {
namespace {

size_t AlignUp(size_t value, size_t alignment) { return (value + alignment - 1) / alignment * alignment; }

}  // namespace

void TilingDef::AddField(FieldInfo field, const void* member) {
    field.member = static_cast<size_t>(static_cast<const uint8_t*>(member) - reinterpret_cast<const uint8_t*>(this));
    field.offset = AlignUp(end_, field.alignment);
    end_ = field.offset + field.bytes;
    if (field.alignment > alignment_) alignment_ = field.alignment;
    bytes_ = AlignUp(end_, alignment_);
    fields_.push_back(field);
}

const TilingDef& TilingDef::Nested(const FieldInfo& field) const {
    return *reinterpret_cast<const TilingDef*>(reinterpret_cast<const uint8_t*>(this) + field.member);
}

void TilingDef::SaveToBuffer(void* buffer, size_t capacity) const {
    if (buffer == nullptr || capacity < bytes_) return;
    uint8_t* bytes = static_cast<uint8_t*>(buffer);
    std::memset(bytes, 0, bytes_);
    for (const FieldInfo& field : fields_) {
        if (field.isStruct) {
            Nested(field).SaveToBuffer(bytes + field.offset, field.bytes);
        } else {
            std::memcpy(bytes + field.offset, reinterpret_cast<const uint8_t*>(this) + field.member, field.bytes);
        }
    }
}

void TilingDef::LoadFromBuffer(const void* buffer) {
    const uint8_t* bytes = static_cast<const uint8_t*>(buffer);
    for (const FieldInfo& field : fields_) {
        if (field.isStruct) const_cast<TilingDef&>(Nested(field)).LoadFromBuffer(bytes + field.offset);
        else std::memcpy(reinterpret_cast<uint8_t*>(this) + field.member, bytes + field.offset, field.bytes);
    }
}

}  // namespace optiling
