#include "sim/core/crash_site.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "sim/core/core_state.h"

namespace sim {
namespace {

bool IsSimulator(const std::string& file) {
    return file.find("/sim/ascendc/") != std::string::npos || file.find("/sim/core/") != std::string::npos;
}

// File and line of the innermost inlined function that is the kernel's own, or else of the innermost one.
std::pair<std::string, int> AskForLine(const std::string& library, uint64_t offset) {
    if (library.find('\'') != std::string::npos) return {};
    char address[32];
    std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(offset));
    FILE* answer = popen(("addr2line -i -e '" + library + "' " + address + " 2>/dev/null").c_str(), "r");
    if (answer == nullptr) return {};
    std::pair<std::string, int> found;
    for (char line[4096]; std::fgets(line, sizeof line, answer) != nullptr;) {
        const char* colon = std::strrchr(line, ':');
        if (colon == nullptr || std::atoi(colon + 1) == 0) continue;   // "??:0"
        std::pair<std::string, int> place{std::string(line, size_t(colon - line)), std::atoi(colon + 1)};
        if (found.second == 0 || (IsSimulator(found.first) && !IsSimulator(place.first))) found = std::move(place);
    }
    pclose(answer);
    return found;
}

}  // namespace

Location SourceOfFault(const Fault& fault, const void* kernelCode) {
    using Line = std::pair<std::string, int>;
    static auto* mutex = new std::mutex;
    static auto* known = new std::map<std::pair<std::string, uint64_t>, Line>;
    Dl_info kernel;
    if (dladdr(kernelCode, &kernel) == 0 || kernel.dli_fname == nullptr) return {};
    for (int i = 0; i < fault.frameCount; ++i) {
        // A frame other than the faulting one holds the address behind its call.
        const uint64_t address = fault.frames[i] - (fault.frames[i] == fault.instruction ? 0 : 1);
        Dl_info frame;
        if (dladdr(reinterpret_cast<void*>(address), &frame) == 0 || frame.dli_fbase != kernel.dli_fbase) continue;
        const uint64_t offset = address - uint64_t(reinterpret_cast<uintptr_t>(kernel.dli_fbase));
        std::lock_guard<std::mutex> lock(*mutex);
        const auto [it, isNew] = known->try_emplace({kernel.dli_fname, offset});
        if (isNew) it->second = AskForLine(kernel.dli_fname, offset);
        if (it->second.second != 0) return {InternString(it->second.first.c_str()), it->second.second};
    }
    return {};
}

}  // namespace sim
