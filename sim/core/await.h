// Waiting for another thread of the simulator.
#pragma once

#include <chrono>
#include <mutex>
#include <thread>

namespace sim {

// Waking a thread whose processor sleeps takes tens of microseconds, on virtual machines more: what comes soon is awaited awake,
// without the lock. `reached` reads atomics. Returns with the lock, at the latest after `limit`.
template <typename Reached>
void AwaitAwake(std::unique_lock<std::mutex>& lock, const Reached& reached,
                std::chrono::microseconds limit = std::chrono::microseconds(100)) {
    if (reached()) return;
    lock.unlock();
    for (const auto end = std::chrono::steady_clock::now() + limit; !reached() && std::chrono::steady_clock::now() < end;)
        std::this_thread::yield();
    lock.lock();
}

}  // namespace sim
