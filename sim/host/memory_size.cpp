#include "sim/host/memory_size.h"

#include <strings.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace sim::host {

bool ParseMemorySize(const char* text, size_t* bytes) {
    constexpr double kMost = double(uint64_t(1) << 44);
    const std::string number(text, std::strspn(text, "0123456789."));  // strtod takes hexadecimal, infinity and exponents too
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (*end != '\0' || !(value > 0)) return false;
    const char* unit = text + number.size();
    while (*unit == ' ') ++unit;
    static const struct { const char* name; int shift; } kUnits[] = {
        {"", 0}, {"B", 0}, {"K", 10}, {"KB", 10}, {"KiB", 10}, {"M", 20}, {"MB", 20}, {"MiB", 20}, {"G", 30}, {"GB", 30}, {"GiB", 30},
        {"T", 40}, {"TB", 40}, {"TiB", 40}};
    for (const auto& known : kUnits)
        if (strcasecmp(unit, known.name) == 0) {
            const double size = value * double(uint64_t(1) << known.shift);
            if (size > kMost) return false;
            *bytes = static_cast<size_t>(size);
            return true;
        }
    return false;
}

}  // namespace sim::host
