// Findings of one core: the same source lines breaking the same rule are one finding with a count.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/core/launch.h"

namespace sim {

class Findings {
public:
    Findings(uint64_t ignoredRules, size_t limit) : ignored_(ignoredRules), limit_(limit) {}

    bool Ignored(Rule rule) const { return ignored_ >> int(rule) & 1; }
    // What is added from here on belongs to another instruction: one that breaks a rule in several operands or bytes counts once.
    void NextInstruction() { ++instruction_; }
    // `other` is the earlier access of a hazard. `make` builds the finding when it is a new one.
    template <typename Make>
    void Add(Rule rule, const Location& where, const Location& other, const char* detail, Make&& make) {
        if (Ignored(rule)) return;
        const Key key{rule, where.file, where.line, other.file, other.line, detail};
        const auto [it, isNew] = index_.try_emplace(key, Known{list_.size(), instruction_});
        Known& known = it->second;
        if (!isNew) {
            if (known.at < list_.size() && known.instruction != instruction_) ++list_[known.at].times;
            known.instruction = instruction_;
            return;
        }
        if (list_.size() < limit_) list_.push_back(make());
        else known.at = SIZE_MAX;
    }
    // Stops the core, so it is kept whatever the limits.
    void AddFatal(Finding finding) { list_.push_back(std::move(finding)); }
    std::vector<Finding> Take() { return std::move(list_); }

private:
    // Strings are literals of the kernel or of the simulator: the pointers identify them.
    using Key = std::tuple<Rule, const char*, int, const char*, int, const char*>;
    const uint64_t ignored_;
    const size_t limit_;
    struct Known { size_t at; uint64_t instruction; };   // in list_; the last that broke the rule
    std::map<Key, Known> index_;
    uint64_t instruction_ = 0;
    std::vector<Finding> list_;
};

// Findings of all cores in core order, equal ones merged, at most `limit`.
std::vector<Finding> MergeFindings(std::vector<std::vector<Finding>> cores, size_t limit);

// The shortest repair of a missing edge between two pipes, for an access that the earlier one conflicts with.
std::string RepairOfHazard(Pipe earlier, bool earlierWrites, Pipe later, Memory memory);
// "read before write completes" and so on.
const char* HazardTitle(bool earlierWrites, bool laterWrites);

}  // namespace sim
