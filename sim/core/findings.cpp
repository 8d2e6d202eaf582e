#include "sim/core/findings.h"

#include <algorithm>
#include <string>

namespace sim {
namespace {

bool SameCause(const Finding& a, const Finding& b) {
    if (a.rule != b.rule || a.line != b.line || a.file != b.file || a.instruction != b.instruction || a.operand != b.operand ||
        a.accesses.size() != b.accesses.size())
        return false;
    for (size_t i = 0; i < a.accesses.size(); ++i)
        if (a.accesses[i].line != b.accesses[i].line || a.accesses[i].verb != b.accesses[i].verb) return false;
    return true;
}

}  // namespace

std::vector<Finding> MergeFindings(std::vector<std::vector<Finding>> cores, size_t limit) {
    std::vector<Finding> merged;
    std::vector<uint32_t> lastCore;   // that had merged[i]
    for (auto& findings : cores)
        for (Finding& finding : findings) {
            const auto same = std::find_if(merged.begin(), merged.end(), [&](const Finding& m) { return SameCause(m, finding); });
            if (same != merged.end()) {
                same->times += finding.times;
                uint32_t& last = lastCore[size_t(same - merged.begin())];
                same->cores += finding.core != last;
                last = finding.core;
            } else if (merged.size() < limit || finding.fatal) {
                lastCore.push_back(finding.core);
                merged.push_back(std::move(finding));
            }
        }
    return merged;
}

const char* HazardTitle(bool earlierWrites, bool laterWrites) {
    if (!laterWrites) return "read before write completes";
    return earlierWrites ? "write before write completes" : "write before read completes";
}

std::string RepairOfHazard(Pipe earlier, bool earlierWrites, Pipe later, Memory memory) {
    const std::string from = PipeName(earlier), to = PipeName(later);
    const std::string events = "a " + from + "_" + to + " event pair";
    if (earlier == later) return "PipeBarrier<PIPE_" + from + "> between them";
    if (earlier == Pipe::S) return "a S_" + to + " event pair after the scalar access";
    if (later == Pipe::S) return events + " before the scalar access";
    if (memory != Memory::UB) return events;
    if (earlier == Pipe::MTE2 && later == Pipe::V && earlierWrites)
        return "EnQue after the copy and DeQue before the use, or " + events;
    if (earlier == Pipe::V && later == Pipe::MTE3 && earlierWrites)
        return "EnQue after the last vector instruction and DeQue before the copy, or " + events;
    if (earlier == Pipe::V && later == Pipe::MTE2)
        return "FreeTensor after the last use and AllocTensor before the copy, or " + events;
    if (earlier == Pipe::MTE3 && later == Pipe::V)
        return "FreeTensor after the copy and AllocTensor before the next use, or " + events;
    return events;
}

}  // namespace sim
