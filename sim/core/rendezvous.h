// Where the blocks of a launch meet: SyncAll, and the permits that limit how many run at once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "sim/core/types.h"

namespace sim {

class Rendezvous {
public:
    enum class Outcome {
        Released,    // all blocks arrived
        Deadlock,    // this block is to report that the others will never arrive
        Abandoned,   // as above, reported by another block or the consequence of a block that failed
    };
    struct Blocked {               // for the report of a deadlock
        uint32_t core;
        Location where;
    };

    Rendezvous(uint32_t blocks, uint32_t permits) : waiting_(blocks), left_(blocks), blocks_(blocks), permits_(permits) {}

    void AcquirePermit();
    void ReleasePermit();
    // A block waits without a permit. `time` is its arrival; all leave at the latest arrival. `everyoneHere` runs once per
    // meeting, before anyone leaves. `stepAside` runs whenever the block's permit has been given away.
    Outcome Meet(uint32_t core, Location where, double* time, const std::function<void()>& everyoneHere,
                 const std::function<void()>& stepAside);
    void Leave(uint32_t core, bool failed);   // the block has ended

    // After Outcome::Deadlock: who waits, and who has left.
    std::vector<Blocked> Waiting() const;
    std::vector<uint32_t> Gone() const;

private:
    void CheckStuck();             // with mutex_ held

    struct Wait { bool active = false; Location where; };
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Wait> waiting_;
    std::vector<bool> left_;
    const uint32_t blocks_;
    uint32_t permits_;
    uint32_t waitingCount_ = 0, leftCount_ = 0;
    uint64_t meeting_ = 0;         // number of the meeting that is being waited for
    double latest_ = 0, released_ = 0;
    bool failed_ = false, stuck_ = false;
    std::vector<Blocked> stuckAt_;
    std::vector<uint32_t> stuckGone_;
};

}  // namespace sim
