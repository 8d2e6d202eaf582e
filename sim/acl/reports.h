// What the worker threads of all streams have to tell: launch reports and traces.
#pragma once

#include "sim/opapi/stream.h"

namespace sim::acl {

class Stream;
struct Device;
struct Task;

// Simulator options of the environment for the calling thread.
void BeginWorkerThread();
// Runs the task on the worker thread of its stream, at modelled time `*clock`, and moves what its launches left to the common place.
WorkResult RunAndCollect(const Task& task, const Stream& stream, double* clock);
// The same for a step of a model that the thread is running.
WorkResult RunStep(const Task& task, int branch, double* clock);
// A copy that the host has waited for, for the trace.
void TraceCopy(const Device& device, const char* name, double microseconds);

}  // namespace sim::acl
