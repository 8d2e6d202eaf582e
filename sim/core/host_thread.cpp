#include "sim/core/host_thread.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "sim/core/await.h"

namespace sim {
namespace {

constexpr size_t kMostIdle = 64;                       // enough for every core of a launch that uses SyncAll
constexpr std::chrono::microseconds kAwake(20);        // the next launch of a stream that has more comes within that

struct Idle {                                          // on the stack of the thread that waits
    std::function<bool()> work;
    std::atomic<bool> called{false};
    std::condition_variable changed;
};

struct Pool {
    std::mutex mutex;
    std::vector<Idle*> idle;                           // the one that has worked last is the last
};

std::atomic<unsigned> atWork{0};

// Never destroyed: its threads wait until the process ends. A forked process has none of them.
Pool* pool = nullptr;
void MakePool() {
    atWork = 0;
    pool = new Pool;
    pool->idle.reserve(kMostIdle);
}
Pool& ThePool() {
    static const bool made = [] {
        MakePool();
        return pthread_atfork(nullptr, nullptr, MakePool) == 0;
    }();
    (void)made;
    return *pool;
}

bool Run(const std::function<bool()>& work) {
    ++atWork;
    const bool again = work();
    --atWork;
    return again;
}

void Live(std::function<bool()> work) {
    Pool& mine = ThePool();
    Idle self;
    while (Run(work)) {
        work = nullptr;
        std::unique_lock<std::mutex> lock(mine.mutex);
        if (mine.idle.size() == kMostIdle) return;
        mine.idle.push_back(&self);
        const auto called = [&] { return self.called.load(); };
        AwaitAwake(lock, called, kAwake);
        self.changed.wait(lock, called);
        self.called = false;
        work = std::move(self.work);
    }
}

}  // namespace

void RunOnHostThread(std::function<bool()> work) {
    Pool& all = ThePool();
    {
        std::lock_guard<std::mutex> lock(all.mutex);
        if (!all.idle.empty()) {
            Idle& next = *all.idle.back();
            all.idle.pop_back();
            next.work = std::move(work);
            next.called = true;
            next.changed.notify_one();
            return;
        }
    }
    std::thread(Live, std::move(work)).detach();
}

unsigned HostThreadsAtWork() { return atWork; }

unsigned Processors() {
    static const unsigned processors = std::max(1u, std::thread::hardware_concurrency());   // reads a file each time
    return processors;
}

}  // namespace sim
