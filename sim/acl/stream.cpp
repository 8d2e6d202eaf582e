#include "sim/acl/stream.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "acl/acl_base.h"
#include "sim/acl/capture.h"
#include "sim/acl/reports.h"
#include "sim/core/await.h"

namespace sim::acl {
namespace {

constexpr size_t kQueueDepth = 1024;  // tasks a device's stream takes before the host waits
thread_local const Stream* working = nullptr;

std::atomic<int32_t> nextStreamId{0};
std::atomic<bool> exiting{false};

// Nothing may leave the worker thread: an exception is the work's failure.
WorkResult RunTask(const Task& task, double* clock, const Stream& stream) {
    try {
        return RunAndCollect(task, stream, clock);
    } catch (const std::exception& error) {
        return {kInternalError, error.what(), 0};
    }
}

// The last chance to let work finish: what it needs (operators, the C++ library) is torn down after this.
void StopAtExit() {
    exiting = true;
    // A callback that needs the interpreter, which is gone by now, would never end.
    constexpr int32_t kPatience = 10'000;
    if (IsForkedProcess()) return;
    for (const auto& stream : TheStreams().All()) stream->Stop(true, kPatience);
}

}  // namespace

Stream::Stream(Device& of, int32_t number, uint32_t level, uint32_t given) : device(of), id(number), priority(level), flags(given) {}

Stream::~Stream() = default;

void Stream::Append(Task task) {
    task.notBefore = device.HostMicroseconds();
    std::unique_lock<std::mutex> lock(mutex_);
    if (stopping_) Refuse(kInvalidHandle, "stream %d was destroyed", id);
    if (working == nullptr) changed_.wait(lock, [&] { return queue_.size() < kQueueDepth || stopping_; });
    queue_.push_back(std::move(task));
    ++appended_;
    if (!started_) {
        started_ = true;
        static const bool registered = std::atexit(StopAtExit) == 0;
        (void)registered;
        std::thread([self = shared_from_this()] { self->Work(); }).detach();
    }
    changed_.notify_all();
}

void Stream::Work() {
    working = this;
    BeginWorkerThread();
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        AwaitAwake(lock, [&] { return done_ != appended_ || stopping_; });
        changed_.wait(lock, [&] { return !queue_.empty() || stopping_; });
        if (queue_.empty()) break;
        {
            Task task = std::move(queue_.front());
            queue_.pop_front();
            const bool skipped = task.kind == TaskKind::Work && (dropping_ || done_ < skipBefore_);
            if (!skipped) {
                double clock = std::max(clock_, task.notBefore);
                lock.unlock();
                const WorkResult result = RunTask(task, &clock, *this);
                task = Task();  // what it owns goes before anybody is told that it is done
                lock.lock();
                clock_ = clock;
                if (result.status != 0) {
                    if (failure_.status == 0) failure_ = result;
                    if (failureMode == 1) skipBefore_ = appended_;
                }
            }
        }
        ++done_;
        changed_.notify_all();
    }
    finished_ = true;
    changed_.notify_all();
}

bool Stream::Drain(int32_t milliseconds) {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t until = appended_;
    const auto reached = [&] { return done_ >= until; };
    if (working == this) return reached();  // a callback of this stream: waiting would never end
    if (milliseconds != 0) AwaitAwake(lock, reached);
    if (milliseconds < 0) changed_.wait(lock, reached);
    else if (!changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), reached)) return false;
    device.HostWaited(clock_);
    return true;
}

WorkResult Stream::TakeFailure() {
    std::lock_guard<std::mutex> lock(mutex_);
    skipBefore_ = 0;
    return std::exchange(failure_, WorkResult());
}

bool Stream::Idle() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return done_ == appended_;
}

double Stream::Clock() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return clock_;
}

void Stream::Stop(bool drop, int32_t milliseconds) {
    std::unique_lock<std::mutex> lock(mutex_);
    stopping_ = true;
    dropping_ = dropping_ || drop;
    changed_.notify_all();
    if (!started_ || working == this) return;
    const auto finished = [&] { return finished_; };
    if (milliseconds < 0) changed_.wait(lock, finished);
    else changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), finished);
    const WorkResult unseen = std::exchange(failure_, WorkResult());
    if (unseen.status != 0)
        std::fprintf(stderr, "custom_ops: stream %d of npu:%d ends with error %d, which nobody synchronised for:\n%s\n", id, device.id,
                     unseen.status, unseen.message.c_str());
}

bool IsExiting() { return exiting; }

Streams& TheStreams() {
    static Streams* streams = new Streams;
    return *streams;
}

static std::shared_ptr<Stream> NewStream(Device& device, uint32_t priority, uint32_t flags) {
    auto stream = std::make_shared<Stream>(device, nextStreamId++, priority, flags);
    stream->handle = TheStreams().Add(stream);
    return stream;
}

std::shared_ptr<Stream> GetStream(void* handle) {
    if (handle != nullptr) return TheStreams().Get(handle);
    const auto context = CurrentContext();
    std::lock_guard<std::mutex> lock(context->mutex);
    if (context->defaultStream == nullptr) context->defaultStream = NewStream(*context->device, 0, 0);
    return context->defaultStream;
}

static void EndStream(const std::shared_ptr<Stream>& stream, bool force) {
    TheStreams().Remove(stream->handle);
    AbandonCapture(*stream);
    stream->Stop(force);
}

void DestroyStreamsOf(Device& device) {
    for (const auto& stream : TheStreams().All())
        if (&stream->device == &device) EndStream(stream, false);
}

void DestroyDefaultStream(Context& context) {
    std::shared_ptr<Stream> stream;
    {
        std::lock_guard<std::mutex> lock(context.mutex);
        stream = std::exchange(context.defaultStream, nullptr);
    }
    if (stream != nullptr && TheStreams().Find(stream->handle) != nullptr) EndStream(stream, false);
}

void Submit(const std::shared_ptr<Stream>& stream, Task task) {
    if (!RecordTask(stream, &task)) stream->Append(std::move(task));
}

void ThrowFailure(Stream& stream) {
    const WorkResult failure = stream.TakeFailure();
    if (failure.status != 0) throw AclFailure(failure.status, failure.message);
}

}  // namespace sim::acl

using namespace sim::acl;

namespace {

int Synchronize(const char* function, void* handle, int32_t milliseconds) {
    return Call(function, [&] {
        const auto stream = GetStream(handle);
        RefuseWhenCaptured(*stream, "synchronised");
        if (!stream->Drain(milliseconds))
            Refuse(kStreamSyncTimeout, "stream %d did not finish within %d ms", stream->id, milliseconds);
        ThrowFailure(*stream);
    });
}

int SynchronizeAll(const char* function, int32_t milliseconds) {
    return Call(function, [&] {
        const Device& device = CurrentDevice();
        const auto streams = TheStreams().All();
        for (const auto& stream : streams)
            if (&stream->device == &device) RefuseWhenCaptured(*stream, "synchronised with its device");
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
        for (const auto& stream : streams) {
            if (&stream->device != &device) continue;
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
            if (!stream->Drain(milliseconds < 0 ? -1 : std::max<int32_t>(0, static_cast<int32_t>(left.count()))))
                Refuse(kStreamSyncTimeout, "device %d did not finish within %d ms", device.id, milliseconds);
        }
        for (const auto& stream : streams)
            if (&stream->device == &device) ThrowFailure(*stream);
    });
}

int Create(const char* function, void** handle, uint32_t priority, uint32_t flags) {
    return Call(function, [&] { NotNull(handle, "stream") = NewStream(CurrentDevice(), priority, flags)->handle; });
}

int Destroy(const char* function, void* handle, bool force) {
    return Call(function, [&] {
        NotNull(static_cast<char*>(handle), "stream");
        const auto stream = TheStreams().Get(handle);
        RefuseWhenCaptured(*stream, "destroyed");
        EndStream(stream, force);
    });
}

}  // namespace

extern "C" {

ACL_FUNC_VISIBILITY int aclrtCreateStream(void** stream) { return Create("aclrtCreateStream", stream, 0, 0); }
ACL_FUNC_VISIBILITY int aclrtCreateStreamWithConfig(void** stream, uint32_t priority, uint32_t flags) {
    return Create("aclrtCreateStreamWithConfig", stream, priority, flags);
}
ACL_FUNC_VISIBILITY int aclrtDestroyStream(void* stream) { return Destroy("aclrtDestroyStream", stream, false); }
ACL_FUNC_VISIBILITY int aclrtDestroyStreamForce(void* stream) { return Destroy("aclrtDestroyStreamForce", stream, true); }

ACL_FUNC_VISIBILITY int aclrtSynchronizeStream(void* stream) { return Synchronize("aclrtSynchronizeStream", stream, -1); }
ACL_FUNC_VISIBILITY int aclrtSynchronizeStreamWithTimeout(void* stream, int32_t milliseconds) {
    return Synchronize("aclrtSynchronizeStreamWithTimeout", stream, milliseconds);
}
ACL_FUNC_VISIBILITY int aclrtSynchronizeDevice() { return SynchronizeAll("aclrtSynchronizeDevice", -1); }
ACL_FUNC_VISIBILITY int aclrtSynchronizeDeviceWithTimeout(int32_t milliseconds) {
    return SynchronizeAll("aclrtSynchronizeDeviceWithTimeout", milliseconds);
}

ACL_FUNC_VISIBILITY int aclrtStreamQuery(void* handle, int* status) {
    return Call("aclrtStreamQuery", [&] {
        const auto stream = GetStream(handle);
        RefuseWhenCaptured(*stream, "queried");
        const bool idle = stream->Idle();
        NotNull(status, "status") = idle ? 0 : 1;  // complete, not ready
        if (idle) stream->device.HostWaited(stream->Clock());
    });
}
ACL_FUNC_VISIBILITY int aclrtStreamGetId(void* stream, int32_t* id) {
    return Call("aclrtStreamGetId", [&] { NotNull(id, "streamId") = GetStream(stream)->id; });
}

}  // extern "C"
