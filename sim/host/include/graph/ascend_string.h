// String that crosses the border of two C++ libraries, which may hold different kinds of std::string. Laid out as CANN's, because
// torchair's libraries get these members from here too.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace ge {

class AscendString {
public:
    AscendString() = default;
    AscendString(const char* text);
    AscendString(const char* text, size_t length);
    const char* GetString() const;
    size_t GetLength() const;
    bool operator==(const AscendString& other) const;
    bool operator!=(const AscendString& other) const;
    bool operator<(const AscendString& other) const;

private:
    std::shared_ptr<std::string> text_;
};

}  // namespace ge
