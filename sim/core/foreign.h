// What a core knows of others: for each of them the instructions known to be complete, learnt from cross-core flags and SyncAll.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/core/order.h"

namespace sim {

class Foreign {
public:
    void Join(uint32_t core, const Clock& clock) {
        const auto at = std::lower_bound(known_.begin(), known_.end(), core, [](const auto& k, uint32_t c) { return k.first < c; });
        if (at != known_.end() && at->first == core) at->second.Join(clock);
        else known_.insert(at, {core, clock});
    }
    void Join(const Foreign& other) {
        for (const auto& [core, clock] : other.known_) Join(core, clock);
    }
    const Clock* Of(uint32_t core) const {
        const auto at = std::lower_bound(known_.begin(), known_.end(), core, [](const auto& k, uint32_t c) { return k.first < c; });
        return at != known_.end() && at->first == core ? &at->second : nullptr;
    }
    bool Knows(uint32_t core, InstructionId id) const {
        const Clock* clock = Of(core);
        return clock != nullptr && clock->Knows(id);
    }

private:
    std::vector<std::pair<uint32_t, Clock>> known_;   // by core
};

// All that one core has learnt, by the event that taught it: each entry includes the earlier ones.
class ForeignLog {
public:
    // Known to an instruction whose clock holds `event` (Clock::Event()).
    const Foreign& At(InstructionId event) const {
        static const Foreign nothing;
        const auto after = std::upper_bound(events_.begin(), events_.end(), event);
        return after == events_.begin() ? nothing : known_[size_t(after - events_.begin()) - 1];
    }
    void Learn(InstructionId event, const Foreign& news) {
        Foreign all = known_.empty() ? Foreign() : known_.back();
        all.Join(news);
        events_.push_back(event);
        known_.push_back(std::move(all));
    }

private:
    std::vector<InstructionId> events_;
    std::vector<Foreign> known_;
};

}  // namespace sim
