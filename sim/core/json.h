// Writes JSON text: report, op descriptions, traces. Commas are placed by the writer.
//
//   JsonWriter json;
//   json.BeginObject().Key("op").Value("HcPost").Key("pipes").BeginArray().Value(1).Value(2).EndArray().EndObject();
//   std::string text = json.Take();
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace sim {

class JsonWriter {
public:
    JsonWriter& BeginObject() { return Open('{'); }
    JsonWriter& EndObject() { return Close('}'); }
    JsonWriter& BeginArray() { return Open('['); }
    JsonWriter& EndArray() { return Close(']'); }

    JsonWriter& Key(std::string_view name) {
        Separate();
        Quote(name);
        text_ += ':';
        first_ = true;  // the value follows its key without a comma
        return *this;
    }

    JsonWriter& Value(std::string_view value) {
        Separate();
        Quote(value);
        return *this;
    }
    JsonWriter& Value(const char* value) { return value == nullptr ? Null() : Value(std::string_view(value)); }
    JsonWriter& Value(const std::string& value) { return Value(std::string_view(value)); }
    JsonWriter& Value(bool value) { return Raw(value ? "true" : "false"); }
    // JSON has no Infinity and NaN: they become strings, as Python's float() reads them.
    JsonWriter& Value(double value) {
        if (std::isnan(value)) return Value("nan");
        if (std::isinf(value)) return Value(value > 0 ? "inf" : "-inf");
        char digits[32];
        std::snprintf(digits, sizeof digits, "%.17g", value);
        double shorter = 0;
        char few[32];
        std::snprintf(few, sizeof few, "%.9g", value);
        return Raw(std::sscanf(few, "%lf", &shorter) == 1 && shorter == value ? few : digits);
    }
    template <typename T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
    JsonWriter& Value(T value) { return Raw(std::to_string(value)); }
    JsonWriter& Null() { return Raw("null"); }
    // Text that is JSON already.
    JsonWriter& Raw(std::string_view json) {
        Separate();
        text_ += json;
        return *this;
    }
    template <typename T>
    JsonWriter& Field(std::string_view name, const T& value) { return Key(name).Value(value); }

    std::string Take() { return std::exchange(text_, {}); }

private:
    JsonWriter& Open(char bracket) {
        Separate();
        text_ += bracket;
        first_ = true;
        return *this;
    }
    JsonWriter& Close(char bracket) {
        text_ += bracket;
        first_ = false;
        return *this;
    }
    void Separate() {
        if (!first_) text_ += ',';
        first_ = false;
    }
    void Quote(std::string_view value) {
        text_ += '"';
        for (const char c : value) {
            switch (c) {
                case '"': text_ += "\\\""; break;
                case '\\': text_ += "\\\\"; break;
                case '\n': text_ += "\\n"; break;
                case '\t': text_ += "\\t"; break;
                case '\r': text_ += "\\r"; break;
                default:
                    if (static_cast<unsigned char>(c) < 0x20) {
                        char escape[8];
                        std::snprintf(escape, sizeof escape, "\\u%04x", c);
                        text_ += escape;
                    } else {
                        text_ += c;
                    }
            }
        }
        text_ += '"';
    }

    std::string text_;
    bool first_ = true;
};

}  // namespace sim
