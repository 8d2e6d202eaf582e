// Waiting for another thread of the simulator.
#pragma once

#include <chrono>
#include <mutex>
#include <thread>

#include "sim/core/host_thread.h"

namespace sim {

// Waking a thread whose processor sleeps takes tens of microseconds, on virtual machines more: what comes soon is awaited awake,
// without the lock, and so is what comes within `limit` while a processor has no core to simulate. `reached` reads atomics.
// Returns with the lock.
template <typename Reached>
void AwaitAwake(std::unique_lock<std::mutex>& lock, const Reached& reached,
                std::chrono::microseconds limit = std::chrono::milliseconds(2)) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::microseconds kSoon(100);
    if (reached()) return;
    lock.unlock();
    const auto begin = Clock::now();
    for (auto now = begin; !reached() && now < begin + limit; now = Clock::now()) {
        if (now >= begin + kSoon && HostThreadsAtWork() >= Processors()) break;
        std::this_thread::yield();
    }
    lock.lock();
}

}  // namespace sim
