// The text of one finding: what broke, each access on a line of its own, the shortest way out.
#include <algorithm>
#include <unistd.h>

#include "sim/core/launch.h"
#include "sim/core/text.h"

namespace sim {
namespace {

std::string Padded(std::string text, size_t width) {
    if (text.size() < width) text.resize(width, ' ');
    return text;
}

// Paths below the working directory are shown relative to it.
std::string SourcePlace(const std::string& file, int line) {
    if (file.empty()) return "";
    std::string shown = file;
    char directory[4096];
    if (getcwd(directory, sizeof directory) != nullptr) {
        const std::string prefix = std::string(directory) + "/";
        if (shown.rfind(prefix, 0) == 0) shown.erase(0, prefix.size());
    }
    return shown + ":" + std::to_string(line);
}

struct Line { std::string left, place, instruction; };

std::string LeftOf(const AccessRecord& access) {
    if (access.begin == access.end) return access.what + " " + access.verb;   // a block that waits
    std::string left = Padded(PipeName(access.pipe), 4) + " " + Padded(access.verb, 6) + "  " + access.what;
    if (!access.what.empty()) left += "  ";
    return left + (access.memory == Memory::GM ? "GM " + ByteRange(access.begin, access.end)
                                               : MemoryName(access.memory) + std::string(" ") + HexRange(access.begin, access.end));
}

}  // namespace

std::string LaunchReport::CoreName(uint32_t core) const {
    return core < cores.size() ? cores[core].name : "core " + std::to_string(core);
}

std::string LaunchReport::Describe(const Finding& finding) const {
    const std::string title = std::string(RuleName(finding.rule)) + ": " + finding.message;
    const std::string launchName = op + "  " + soc + "  " + CoreName(finding.core);
    std::vector<Line> lines;
    if (finding.accesses.empty()) {
        std::string instruction = finding.instruction;
        if (!finding.operand.empty()) instruction += " " + finding.operand;
        lines.push_back({PipeName(finding.pipe), SourcePlace(finding.file, finding.line), instruction});
    }
    for (const AccessRecord& access : finding.accesses)
        lines.push_back({LeftOf(access), SourcePlace(access.file, access.line), access.instruction});

    size_t left = 0, place = 0;
    for (const Line& line : lines) {
        left = std::max(left, line.left.size());
        place = std::max(place, line.place.size());
    }
    std::string text = Padded(title, left + 2) + "  " + launchName + "\n";
    for (const Line& line : lines) {
        text += "  " + line.left;
        if (!line.place.empty()) text += std::string(left - line.left.size() + 2, ' ') + line.place;
        if (!line.instruction.empty()) text += std::string(place - line.place.size() + 2, ' ') + line.instruction;
        text += "\n";
    }
    text += "  " + (finding.repair.empty() ? std::string(RuleSummary(finding.rule)) : finding.repair);
    if (finding.times > 1) text += "\n  " + std::to_string(finding.times) + " times in this launch";
    if (finding.cores > 1) text += ", on " + std::to_string(finding.cores) + " cores";
    return text;
}

}  // namespace sim
