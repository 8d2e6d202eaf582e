// Where the cores of a launch meet: SyncAll, cross-core flags, and the permits that limit how many run at once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/foreign.h"
#include "sim/core/layout.h"
#include "sim/core/time_log.h"
#include "sim/core/types.h"

namespace sim {

class Rendezvous {
public:
    enum class Outcome {
        Released,    // what the core waited for has come
        Deadlock,    // this core is to report that it never will
        Abandoned,   // as above, reported by another core or the consequence of a core that failed
    };
    struct Blocked {               // for the report of a deadlock
        uint32_t core;
        Location where;
        std::string call;          // "SyncAll", in a launch of both kinds "SyncAll<false>"; "CrossCoreWaitFlag(8)"; who reads mail
        std::string forWhom;       // names of the cores it waits for
        bool forMail;
    };
    struct Arrival {               // of a core at a meeting, or of a cross-core flag
        double time = 0;
        Foreign known;             // complete before it
        std::vector<Signal> signals;   // the flags it consists of
        Location where;
    };
    enum class Scope { Vector, All };   // of a meeting: AIV cores only, or all
    struct Mail {                  // from a core of a block to another of the same
        Arrival sent;
        uint32_t from = 0;
        std::shared_ptr<void> content;   // null: whoever could have sent some has ended
    };

    static constexpr int kFlags = 32;   // 16 of the hardware; on an AIC of the 950 one set per vector core
    static constexpr size_t kMostSets = 15;

    Rendezvous(const Layout& layout, uint32_t permits)
        : layout_(layout), waiting_(layout.Count()), left_(layout.Count()), ready_(layout.Count()), permits_(permits) {}

    void AcquirePermit();
    void ReleasePermit();
    // A core waits without a permit. All leave at the latest arrival, knowing what any of them knew. `everyoneHere` runs once
    // per meeting, before anyone leaves. `stepAside` runs whenever the core's permit has been given away.
    Outcome Meet(uint32_t core, Scope scope, Arrival* arrival, const std::function<void()>& everyoneHere,
                 const std::function<void()>& stepAside);
    // CrossCoreSetFlag: modes as on the device. False when nothing keeps a counter from exceeding kMostSets: the core that sets does
    // not know of the wait that makes room.
    bool SetCross(uint32_t core, int mode, int flag, Arrival arrival);
    Outcome WaitCross(uint32_t core, int flag, Location where, Arrival* arrival, const std::function<void()>& stepAside);
    void WaitDone(uint32_t core, int flag, InstructionId event);   // the event by which the core knows what it waited for
    // Mail never waits for its reader. An AIC reads that of all its AIV cores, an AIV core that of its AIC: each time the one sent
    // first in modelled time, which is known when every sender has sent one or ended, or when nobody can go on without it.
    void Post(uint32_t to, Mail mail);
    Outcome Collect(uint32_t core, const char* call, Location where, Mail* mail, const std::function<void()>& stepAside);
    // Sets that nobody waited for, of the flags of one core.
    std::vector<std::pair<int, Location>> FlagsLeftSet(uint32_t core) const;
    void Leave(uint32_t core, bool failed);   // the core's kernel has ended

    // After Outcome::Deadlock: who waits, and who has left.
    std::vector<Blocked> Waiting() const;
    std::vector<uint32_t> Gone() const;

private:
    static int FlagOf(Scope scope) { return -1 - int(scope); }   // what a core that is at a meeting waits for
    static constexpr int kNoFlag = -3;                            // of a core that waits for mail
    struct Wait { bool active = false; int flag = -1; Location where; const char* forMail = nullptr; };
    struct Meeting { uint32_t here = 0; uint64_t number = 0; Arrival gathered, released; };
    struct Inbox { std::deque<Arrival> sets; uint64_t given = 0; std::vector<InstructionId> waits; };   // of a flag of a core
    struct Gathering { std::vector<uint32_t> members; std::vector<std::deque<Arrival>> sets; };   // sets of one flag by its members

    void CheckStuck();             // with mutex_ held, as all below
    std::vector<uint32_t> Senders(uint32_t core) const;
    bool MailDecided(uint32_t core) const;
    void GoOn(uint32_t core);      // its wait is over
    void LetReadersGo();
    bool DeliverFirst();           // false when no mail lies anywhere
    std::string CallOf(const Wait& wait) const;
    std::string ForWhom(uint32_t core) const;
    bool Give(uint32_t core, int flag, const Arrival& arrival);
    std::vector<uint32_t> VectorsOf(uint32_t block) const;
    Outcome Block(std::unique_lock<std::mutex>& lock, uint32_t core, const std::function<bool()>& ready,
                  const std::function<void()>& stepAside);

    const Layout layout_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Wait> waiting_;
    std::vector<bool> left_;
    std::vector<std::map<int, Inbox>> ready_;   // by core and flag: sets that a wait can take
    std::map<std::tuple<int, uint32_t, int>, Gathering> gatherings_;   // by mode, group and flag
    std::map<std::pair<uint32_t, uint32_t>, std::deque<Mail>> mail_;   // by reader and sender
    uint32_t permits_;
    uint32_t waitingCount_ = 0, leftCount_ = 0;
    Meeting meetings_[2];          // by Scope
    bool failed_ = false, stuck_ = false;
    std::vector<Blocked> stuckAt_;
    std::vector<uint32_t> stuckGone_;
};

}  // namespace sim
