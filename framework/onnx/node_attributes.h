// Attributes of an ONNX node as ATC hands them to a parser plugin: the text {"attribute": [{"name": ..., "type": ..., "i" | "s" | "floats":
// ...}, ...]}, types by their numbers in AttributeProto. A value of 0 or "" is left out; numbers may stand as text.
#pragma once

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace custom_ops::onnx {

struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class NodeAttributes {
public:
    // Refusal: the text is not of that form, or has an attribute twice.
    explicit NodeAttributes(const std::string& text) {
        const Json document = Json::parse(text, nullptr, false);
        const Json none = Json::array();
        const Json& entries = document.is_object() ? document.value("attribute", none) : document;
        if (!entries.is_array()) throw Refusal("its attributes are not the JSON text that was expected");
        for (const Json& entry : entries) {
            const bool named = entry.is_object() && entry.contains("name") && entry["name"].is_string();
            if (!named || !entry.contains("type") || !entry["type"].is_number_integer())
                throw Refusal("an attribute has no name or no type: " + entry.dump(-1, ' ', true, Json::error_handler_t::replace));
            const std::string name = entry["name"];
            if (!entries_.emplace(name, entry).second) throw Refusal("attribute " + name + " is there twice");
        }
    }

    void RequireNoneBut(std::initializer_list<const char*> known) const {
        std::string names;
        for (const char* name : known) names += (names.empty() ? "" : ", ") + std::string(name);
        for (const auto& entry : entries_) {
            bool found = false;
            for (const char* name : known) found = found || entry.first == name;
            if (!found) throw Refusal("attribute " + entry.first + " is not known; there are " + names);
        }
    }

    bool Has(const char* name) const { return entries_.count(name) != 0; }

    std::string Text(const char* name) const {
        const Json& entry = Find(name, kString, "a string");
        if (!entry.contains("s")) return "";
        return entry["s"].is_string() ? entry["s"].get<std::string>() : Wrong<std::string>(name, "a string");
    }

    int64_t Int(const char* name) const {
        const Json& entry = Find(name, kInt, "an integer");
        if (!entry.contains("i")) return 0;
        const Json& value = entry["i"];
        if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return Wrong<int64_t>(name, "an integer");
        if (value.is_number_integer()) return value.get<int64_t>();
        const std::string text = value.is_string() ? value.get<std::string>() : "";
        char* end = nullptr;
        errno = 0;
        const int64_t parsed = std::strtoll(text.c_str(), &end, 10);
        return text.empty() || *end != '\0' || errno != 0 ? Wrong<int64_t>(name, "an integer") : parsed;
    }

    int64_t Positive(const char* name) const {
        const int64_t value = Int(name);
        if (value < 1 || value > INT32_MAX)
            throw Refusal("attribute " + std::string(name) + " must be 1 to 2^31 - 1, got " + std::to_string(value));
        return value;
    }

    bool Flag(const char* name, bool otherwise) const {
        if (!Has(name)) return otherwise;
        const int64_t value = Int(name);
        if (value != 0 && value != 1) throw Refusal("attribute " + std::string(name) + " must be 0 or 1, got " + std::to_string(value));
        return value == 1;
    }

    // Finite ones.
    std::vector<float> Floats(const char* name, size_t count) const {
        const Json& entry = Find(name, kFloats, "a list of floats");
        const Json& values = entry.contains("floats") ? entry["floats"] : Json::array();
        if (!values.is_array()) Wrong<int>(name, "a list of floats");
        if (values.size() != count)
            throw Refusal("attribute " + std::string(name) + " must have " + std::to_string(count) + " values, got " +
                          std::to_string(values.size()));
        std::vector<float> floats;
        for (const Json& value : values) {
            const std::string text = value.is_string() ? value.get<std::string>() : value.is_number() ? value.dump() : "";
            char* end = nullptr;
            floats.push_back(std::strtof(text.c_str(), &end));
            if (text.empty() || *end != '\0' || !std::isfinite(floats.back())) Wrong<int>(name, "a list of finite floats");
        }
        return floats;
    }

private:
    using Json = nlohmann::json;
    static constexpr int64_t kInt = 2, kString = 3, kFloats = 6;  // AttributeProto.AttributeType

    template <typename T>
    static T Wrong(const char* name, const char* expected) { throw Refusal("attribute " + std::string(name) + " must be " + expected); }

    const Json& Find(const char* name, int64_t type, const char* expected) const {
        const auto found = entries_.find(name);
        if (found == entries_.end()) throw Refusal("attribute " + std::string(name) + " is missing");
        if (found->second["type"] != type) Wrong<int>(name, expected);
        return found->second;
    }

    std::map<std::string, Json> entries_;
};

}  // namespace custom_ops::onnx
