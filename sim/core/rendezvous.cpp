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

// All cores that have not ended wait: nobody is left who could release one.
void Rendezvous::CheckStuck() {
    if (stuck_ || waitingCount_ == 0 || waitingCount_ + leftCount_ < layout_.Count() || DeliverFirst()) return;
    stuck_ = true;
    for (uint32_t core = 0; core < layout_.Count(); ++core) {
        const Wait& wait = waiting_[core];
        if (wait.active) stuckAt_.push_back({core, wait.where, CallOf(wait), ForWhom(core), wait.forMail != nullptr});
        if (left_[core]) stuckGone_.push_back(core);
    }
}

std::string Rendezvous::CallOf(const Wait& wait) const {
    if (wait.forMail != nullptr) return wait.forMail;
    if (wait.flag >= 0) return "CrossCoreWaitFlag(" + std::to_string(wait.flag) + ")";
    return !layout_.Mixed() ? "SyncAll" : wait.flag == FlagOf(Scope::All) ? "SyncAll<false>" : "SyncAll<true>";
}

// Of a meeting: who is not there. Of a flag: the members of a half-gathered set that have not set it; without one, the usual partners,
// an AIC and its AIV cores.
std::string Rendezvous::ForWhom(uint32_t core) const {
    std::vector<uint32_t> missing;
    const Wait& wait = waiting_[core];
    const uint32_t block = layout_.BlockOf(core);
    for (uint32_t other = 0; wait.flag < 0 && wait.forMail == nullptr && other < layout_.Count(); ++other) {
        const bool member = wait.flag == FlagOf(Scope::All) || !layout_.IsCube(other), here = waiting_[other].active;
        if (member && !(here && waiting_[other].flag == wait.flag)) missing.push_back(other);
    }
    for (const auto& [key, gathering] : gatherings_) {
        const auto& [mode, group, flag] = key;
        const bool reaches = mode == 0 ? bool(group) == layout_.IsCube(core) : group == block && (mode == 2) == layout_.IsCube(core);
        if (flag != wait.flag || !reaches) continue;
        const bool begun = std::any_of(gathering.sets.begin(), gathering.sets.end(), [](const auto& s) { return !s.empty(); });
        for (size_t i = 0; begun && i < gathering.members.size(); ++i)
            if (gathering.sets[i].empty()) missing.push_back(gathering.members[i]);
    }
    if (missing.empty() && (wait.flag >= 0 || wait.forMail) && layout_.Mixed()) {
        if (layout_.IsCube(core)) missing = VectorsOf(block);
        else missing.push_back(layout_.CubeOf(block));
    }
    std::string names;
    for (size_t i = 0; i < missing.size() && i < 4; ++i) names += (i ? ", " : "") + layout_.Name(missing[i]);
    return names + (missing.size() > 4 ? ", ..." : "");
}

Rendezvous::Outcome Rendezvous::Block(std::unique_lock<std::mutex>& lock, uint32_t core, const std::function<bool()>& ready,
                                      const std::function<void()>& stepAside) {
    ++waitingCount_;
    CheckStuck();
    ++permits_;
    lock.unlock();
    changed_.notify_all();
    stepAside();
    lock.lock();
    changed_.wait(lock, [&] { return (ready() || stuck_) && permits_ > 0; });
    --permits_;
    if (!stuck_) return Outcome::Released;   // later, cores that leave seem to release those that wait for their mail
    return !failed_ && stuckAt_.front().core == core ? Outcome::Deadlock : Outcome::Abandoned;
}

Rendezvous::Outcome Rendezvous::Meet(uint32_t core, Scope scope, Arrival* arrival, const std::function<void()>& everyoneHere,
                                     const std::function<void()>& stepAside) {
    std::unique_lock<std::mutex> lock(mutex_);
    Meeting& meeting = meetings_[int(scope)];
    meeting.gathered.time = std::max(meeting.gathered.time, arrival->time);
    meeting.gathered.known.Join(arrival->known);
    const uint32_t members = scope == Scope::All ? layout_.Count() : layout_.blocks * layout_.vector;
    if (++meeting.here == members) {
        everyoneHere();
        for (uint32_t other = 0; other < layout_.Count(); ++other) {
            Wait& wait = waiting_[other];
            if (!wait.active || wait.flag != FlagOf(scope)) continue;
            wait.active = false;
            --waitingCount_;
        }
        meeting.here = 0;
        ++meeting.number;
        meeting.released = std::move(meeting.gathered);
        meeting.gathered = Arrival();
        meeting.gathered.time = meeting.released.time;
        *arrival = meeting.released;
        lock.unlock();
        changed_.notify_all();
        return Outcome::Released;
    }
    waiting_[core] = {true, FlagOf(scope), arrival->where};
    const uint64_t number = meeting.number;
    const Outcome outcome = Block(lock, core, [&] { return meeting.number != number; }, stepAside);
    if (outcome == Outcome::Released) *arrival = meeting.released;
    return outcome;
}

std::vector<uint32_t> Rendezvous::VectorsOf(uint32_t block) const {
    std::vector<uint32_t> cores;
    for (uint32_t sub = 0; sub < layout_.vector; ++sub) cores.push_back(layout_.VectorOf(block, sub));
    return cores;
}

bool Rendezvous::Give(uint32_t core, int flag, const Arrival& arrival) {
    Inbox& inbox = ready_[core][flag];
    inbox.sets.push_back(arrival);
    Wait& wait = waiting_[core];
    if (wait.active && wait.flag == flag) {
        wait.active = false;
        --waitingCount_;
    }
    if (++inbox.given <= kMostSets) return true;
    const size_t room = inbox.given - kMostSets - 1;   // this wait has to be over
    return room < inbox.waits.size() && arrival.known.Knows(core, inbox.waits[room]);
}

// Who has to set, and whom that releases (facts 2.4):
//   0: all cores of one kind; 1: the AIV cores of a block; 2: AIC <-> all its AIV cores; 4: AIC <-> one of them.
bool Rendezvous::SetCross(uint32_t core, int mode, int flag, Arrival arrival) {
    const uint32_t block = layout_.BlockOf(core);
    const bool cube = layout_.IsCube(core);
    std::vector<uint32_t> members{core}, targets;
    uint32_t group = block;
    constexpr int kPerVector = 16;
    if (mode == 0) {
        group = cube;
        members.clear();
        for (uint32_t other = 0; other < layout_.Count(); ++other)
            if (layout_.IsCube(other) == cube) members.push_back(other);
        targets = members;
    } else if (mode == 1) {
        targets = members = VectorsOf(block);
    } else if (mode == 4) {
        const auto sub = cube ? uint32_t(flag / kPerVector) : layout_.SubBlockOf(core);
        targets = {cube ? layout_.VectorOf(block, sub) : layout_.CubeOf(block)};
        flag = cube ? flag % kPerVector : flag + int(sub) * kPerVector;
    } else if (cube) {
        targets = VectorsOf(block);
    } else {
        members = VectorsOf(block);
        targets = {layout_.CubeOf(block)};
    }
    bool fits = true;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (members.size() == 1) {
            for (const uint32_t target : targets) fits = Give(target, flag, arrival) && fits;
        } else {
            Gathering& gathering = gatherings_[{mode, group, flag}];
            if (gathering.members.empty()) {
                gathering.members = members;
                gathering.sets.resize(members.size());
            }
            const size_t mine = size_t(std::find(members.begin(), members.end(), core) - members.begin());
            gathering.sets[mine].push_back(std::move(arrival));
            const auto arrived = [](const auto& sets) { return !sets.empty(); };
            if (std::all_of(gathering.sets.begin(), gathering.sets.end(), arrived)) {
                Arrival all = gathering.sets[mine].front();
                all.signals.clear();
                for (auto& sets : gathering.sets) {
                    all.time = std::max(all.time, sets.front().time);
                    all.signals.insert(all.signals.end(), sets.front().signals.begin(), sets.front().signals.end());
                    all.known.Join(sets.front().known);
                    sets.pop_front();
                }
                for (const uint32_t target : targets) fits = Give(target, flag, all) && fits;
            }
        }
    }
    changed_.notify_all();
    return fits;
}

Rendezvous::Outcome Rendezvous::WaitCross(uint32_t core, int flag, Location where, Arrival* arrival,
                                          const std::function<void()>& stepAside) {
    std::unique_lock<std::mutex> lock(mutex_);
    auto& sets = ready_[core][flag].sets;
    if (sets.empty()) {
        waiting_[core] = {true, flag, where};
        const Outcome outcome = Block(lock, core, [&] { return !sets.empty(); }, stepAside);
        if (outcome != Outcome::Released) return outcome;
    }
    *arrival = std::move(sets.front());
    sets.pop_front();
    return Outcome::Released;
}

void Rendezvous::WaitDone(uint32_t core, int flag, InstructionId event) {
    std::lock_guard<std::mutex> lock(mutex_);
    ready_[core][flag].waits.push_back(event);
}

std::vector<std::pair<int, Location>> Rendezvous::FlagsLeftSet(uint32_t core) const {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::pair<int, Location>> left;
    for (const auto& [flag, inbox] : ready_[core])
        if (!inbox.sets.empty()) left.push_back({flag, inbox.sets.front().where});
    return left;
}

void Rendezvous::Leave(uint32_t core, bool failed) {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        left_[core] = true;
        ++leftCount_;
        if (!stuck_) failed_ = failed_ || failed;   // cores that leave because they were stuck are no cause
        LetReadersGo();
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
