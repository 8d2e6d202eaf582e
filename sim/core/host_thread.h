// Threads of the host that outlive the launch they were started for: to start one takes longer than a short kernel.
#pragma once

#include <functional>

namespace sim {

// Runs `work`, which throws nothing, on a thread that does nothing else meanwhile. Work returns false when its thread must not be used
// again. Throws std::system_error or std::bad_alloc when the host has no thread left.
void RunOnHostThread(std::function<bool()> work);

// How many run such work at this moment.
unsigned HostThreadsAtWork();

// Of the host, at least 1.
unsigned Processors();

}  // namespace sim
