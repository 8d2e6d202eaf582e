#include "sim/core/rendezvous.h"

#include <algorithm>

namespace sim {

void Rendezvous::AcquirePermit() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return permits_ > 0; });
    --permits_;
}

void Rendezvous::ReleasePermit() {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        ++permits_;
    }
    changed_.notify_all();
}

// All blocks that have not ended wait, and one has ended: nobody can complete the meeting.
void Rendezvous::CheckStuck() {
    if (stuck_ || waitingCount_ == 0 || leftCount_ == 0 || waitingCount_ + leftCount_ < blocks_) return;
    stuck_ = true;
    for (uint32_t core = 0; core < blocks_; ++core) {
        if (waiting_[core].active) stuckAt_.push_back({core, waiting_[core].where});
        if (left_[core]) stuckGone_.push_back(core);
    }
}

Rendezvous::Outcome Rendezvous::Meet(uint32_t core, Location where, double* time, const std::function<void()>& everyoneHere,
                                     const std::function<void()>& stepAside) {
    std::unique_lock<std::mutex> lock(mutex_);
    latest_ = std::max(latest_, *time);
    waiting_[core] = {true, where};
    if (++waitingCount_ == blocks_) {
        everyoneHere();
        for (Wait& wait : waiting_) wait.active = false;
        waitingCount_ = 0;
        ++meeting_;
        *time = released_ = latest_;
        lock.unlock();
        changed_.notify_all();
        return Outcome::Released;
    }
    CheckStuck();
    const uint64_t meeting = meeting_;
    ++permits_;
    lock.unlock();
    changed_.notify_all();
    stepAside();
    lock.lock();
    changed_.wait(lock, [&] { return (meeting_ != meeting || stuck_) && permits_ > 0; });
    --permits_;
    if (meeting_ != meeting) {
        *time = released_;
        return Outcome::Released;
    }
    return !failed_ && stuckAt_.front().core == core ? Outcome::Deadlock : Outcome::Abandoned;
}

void Rendezvous::Leave(uint32_t core, bool failed) {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        left_[core] = true;
        ++leftCount_;
        if (!stuck_) failed_ = failed_ || failed;   // blocks that leave because they were stuck are no cause
        CheckStuck();
    }
    changed_.notify_all();
}

std::vector<Rendezvous::Blocked> Rendezvous::Waiting() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return stuckAt_;
}

std::vector<uint32_t> Rendezvous::Gone() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return stuckGone_;
}

}  // namespace sim
