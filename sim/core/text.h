// Small pieces of text shared by reports.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

namespace sim {

inline std::string Hex(uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%04" PRIX64, value);
    return text;
}
inline std::string Decimal(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}
inline std::string HexRange(uint64_t begin, uint64_t end) { return "[" + Hex(begin) + ", " + Hex(end) + ")"; }
inline std::string ByteRange(uint64_t begin, uint64_t end) {
    return "bytes [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

}  // namespace sim
