// Source lines that issue instructions, numbered per core, and which line issued a recent instruction.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/core/instruction.h"
#include "sim/core/order.h"

namespace sim {

using SiteIndex = uint32_t;
struct Site {
    const char* instruction;
    Pipe pipe;
    Location where;
};

class Sites {
public:
    SiteIndex Intern(const Instruction& instruction) {
        const Key key{instruction.name, instruction.where.file, instruction.where.line, instruction.pipe};
        const auto [it, isNew] = index_.try_emplace(key, SiteIndex(sites_.size()));
        if (isNew) sites_.push_back({instruction.name, instruction.pipe, instruction.where});
        return it->second;
    }
    const Site& operator[](SiteIndex index) const { return sites_[index]; }

    void Start(uint32_t sequence) { first_ = sequence + 1; }
    void Record(uint32_t sequence, SiteIndex site) {
        const uint32_t at = (sequence - first_) % kHistory;
        if (at == history_.size()) history_.push_back(site);
        else history_[at] = site;
        last_ = sequence;
    }
    // Null when the instruction was issued too long ago.
    const Site* Of(InstructionId id) const {
        const uint32_t sequence = SequenceOf(id);
        if (sequence < first_ || last_ - sequence >= kHistory) return nullptr;
        return &sites_[history_[(sequence - first_) % kHistory]];
    }

private:
    static constexpr uint32_t kHistory = 1 << 22;
    struct Key {
        const char* name;
        const char* file;
        int line;
        Pipe pipe;
        bool operator==(const Key& o) const { return name == o.name && file == o.file && line == o.line && pipe == o.pipe; }
    };
    struct Hash {
        size_t operator()(const Key& key) const {
            return (reinterpret_cast<uintptr_t>(key.name) * 31 + reinterpret_cast<uintptr_t>(key.file)) * 31 +
                   size_t(key.line) * 8 + size_t(key.pipe);
        }
    };
    std::unordered_map<Key, SiteIndex, Hash> index_;
    std::vector<Site> sites_;
    std::vector<SiteIndex> history_;   // ring by sequence
    uint32_t first_ = 1, last_ = 0;
};

}  // namespace sim
