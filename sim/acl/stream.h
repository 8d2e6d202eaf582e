// Streams: a queue and a worker thread each, with a modelled clock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "sim/acl/device.h"
#include "sim/acl/handles.h"
#include "sim/opapi/stream.h"

namespace sim::acl {

class Stream;
class Capture;
struct TaskUpdate;

enum class TaskKind { Work, Record, Wait, Reset, Callback, Model };

// One entry of a stream. A captured model runs it again and again, each time against the clock of its own branch.
struct Task {
    std::string name;
    TaskKind kind = TaskKind::Work;
    // Runs the task at modelled time `*clock` and moves it on.
    std::function<WorkResult(double* clock)> run;
    double notBefore = 0;  // modelled time at which the host submitted it
};

class Stream : public std::enable_shared_from_this<Stream> {
public:
    Stream(Device& device, int32_t id, uint32_t priority, uint32_t flags);
    ~Stream();

    // Behind everything that was appended before. Blocks while the queue is as full as a device's can be.
    void Append(Task task);
    // Waits until what was appended so far has run; false after `milliseconds` (negative: never).
    bool Drain(int32_t milliseconds);
    // The first failure since it was asked for last; code 0 when there was none.
    WorkResult TakeFailure();
    bool Idle() const;
    double Clock() const;
    // Ends the worker; with `drop`, work that has not begun is left out. Waits for it, at most `milliseconds` if not negative.
    void Stop(bool drop, int32_t milliseconds = -1);

    Device& device;
    const int32_t id;
    const uint32_t priority, flags;
    void* handle = nullptr;
    std::atomic<uint64_t> failureMode{0};   // 1: what was queued behind a failed task does not run
    std::atomic<uint32_t> overflowSwitch{0};
    std::atomic<bool> limited{false};
    std::atomic<CoreLimits> limits{CoreLimits{}};
    std::atomic<uint64_t> subscribedThread{0};  // that runs aclrtLaunchCallback functions
    std::atomic<uint32_t> customTag{0}, cacheOpInfo{0};

    // Set while the stream is being captured, or collects the new tasks of a task group.
    std::shared_ptr<Capture> capture;       // under CaptureMutex()
    std::shared_ptr<TaskUpdate> update;     // under CaptureMutex()

private:
    void Work();

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> queue_;
    std::atomic<uint64_t> appended_{0}, done_{0};  // written under the mutex
    std::atomic<bool> stopping_{false};
    bool started_ = false, dropping_ = false, finished_ = false;
    double clock_ = 0;
    WorkResult failure_;
    uint64_t skipBefore_ = 0;   // tasks up to this number do not run: one before them failed
};

using Streams = HandleTable<Stream, HandleKind::Stream>;
Streams& TheStreams();

// Null: the default stream of the thread's context.
std::shared_ptr<Stream> GetStream(void* handle);
void DestroyStreamsOf(Device& device);
// Of a context that ends, or whose device is reset.
void DestroyDefaultStream(Context& context);

// Runs, or while the stream is captured records, the task.
void Submit(const std::shared_ptr<Stream>& stream, Task task);

// The process is ending: waits that depend on others give up.
bool IsExiting();

// Throws the failure that the stream has to report.
void ThrowFailure(Stream& stream);

}  // namespace sim::acl
