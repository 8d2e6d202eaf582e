// What the worker threads of all streams have to tell: launch reports and traces.
#pragma once

namespace sim::acl {

class Stream;

// Simulator options of the environment for the calling thread.
void BeginWorkerThread();
// Moves what the thread's launches left to the common place.
void CollectReports(const Stream& stream);

}  // namespace sim::acl
