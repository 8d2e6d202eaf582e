#include "graph/ascend_string.h"

#include <string_view>

namespace ge {

AscendString::AscendString(const char* text) : text_(text == nullptr ? nullptr : std::make_shared<std::string>(text)) {}
AscendString::AscendString(const char* text, size_t length) : text_(text == nullptr ? nullptr : std::make_shared<std::string>(text, length)) {}

const char* AscendString::GetString() const { return text_ == nullptr ? "" : text_->c_str(); }
size_t AscendString::GetLength() const { return text_ == nullptr ? 0 : text_->size(); }
bool AscendString::operator==(const AscendString& other) const { return std::string_view(GetString()) == other.GetString(); }
bool AscendString::operator!=(const AscendString& other) const { return !(*this == other); }
bool AscendString::operator<(const AscendString& other) const { return std::string_view(GetString()) < other.GetString(); }

}  // namespace ge
