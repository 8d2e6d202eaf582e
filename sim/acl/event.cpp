#include "sim/acl/event.h"

#include <algorithm>

#include "acl/acl_base.h"

namespace sim::acl {

void Recording::Reach(double microseconds) {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        isReached_ = true;
        microseconds_ = microseconds;
    }
    reached_.notify_all();
}

bool Recording::Reached() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return isReached_;
}

bool Recording::Wait(int32_t milliseconds) const {
    std::unique_lock<std::mutex> lock(mutex_);
    if (milliseconds >= 0) return reached_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return isReached_; });
    reached_.wait(lock, [&] { return isReached_; });
    return true;
}

double Recording::Microseconds() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return microseconds_;
}

Events& TheEvents() {
    static Events* events = new Events;
    return *events;
}

Task SetTask(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream) {
    return {"event record", TaskKind::Record, [event, stream](double* clock) {
        auto recording = std::make_shared<Recording>(stream);
        recording->Reach(*clock);
        {
            std::lock_guard<std::mutex> lock(event->mutex);
            event->latest = std::move(recording);
        }
        event->changed.notify_all();
        return WorkResult();
    }};
}

Task AwaitTask(const std::shared_ptr<Event>& event) {
    return {"event wait", TaskKind::Wait, [event](double* clock) {
        std::unique_lock<std::mutex> lock(event->mutex);
        const auto isSet = [&] { return event->latest != nullptr && event->latest->Reached(); };
        // The record may never come; at the end of the process nobody waits for it any more.
        while (!isSet() && !IsExiting()) event->changed.wait_for(lock, std::chrono::milliseconds(50));
        if (isSet()) *clock = std::max(*clock, event->latest->Microseconds());
        return WorkResult();
    }};
}

Task ResetTask(const std::shared_ptr<Event>& event, const std::shared_ptr<Recording>& only) {
    return {"event reset", TaskKind::Reset, [event, only](double*) {
        std::lock_guard<std::mutex> lock(event->mutex);
        if (only == nullptr || event->latest == only) event->latest = nullptr;
        return WorkResult();
    }};
}

namespace {

std::shared_ptr<Recording> LatestOutsideCapture(Event& event, const char* what) {
    std::shared_ptr<Capture> capture;
    {
        std::lock_guard<std::mutex> lock(event.mutex);
        capture = event.captured.capture;
        if (capture == nullptr) return event.latest;
    }
    const std::string reason = std::string("the event was recorded in a capture and cannot be ") + what;
    LoseCapture(*capture, reason);
    Refuse(kEventCaptured, "%s", reason.c_str());
}

int Create(const char* function, void** event, uint32_t flags) {
    return Call(function, [&] {
        CurrentContext();
        if (flags & kEventIpc) Refuse(kFeatureNotSupported, "events of other processes (ACL_EVENT_IPC) are not modelled");
        if (flags & ~kEventFlags) Refuse(kInvalidParameter, "flag 0x%x has unknown bits, known are 0x%x", flags, kEventFlags);
        NotNull(event, "event") = TheEvents().Add(std::make_shared<Event>(flags));
    });
}

void Record(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream) {
    if (event->flags & kEventExternal) return Submit(stream, SetTask(event, stream));
    if (RecordInCapture(stream, event)) return;
    auto recording = std::make_shared<Recording>(stream);
    {
        std::lock_guard<std::mutex> lock(event->mutex);
        event->latest = recording;
        event->captured = {};
    }
    Submit(stream, {"event record", TaskKind::Record, [recording](double* clock) {
                        recording->Reach(*clock);
                        return WorkResult();
                    }});
}

void Wait(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream) {
    if (event->flags & kEventExternal) {
        if (IsCaptured(*stream)) return Submit(stream, AwaitTask(event));
    } else if (WaitInCapture(stream, event)) {
        return;
    }
    std::shared_ptr<Recording> recording;
    {
        std::lock_guard<std::mutex> lock(event->mutex);
        recording = event->latest;
    }
    if (recording == nullptr) return;  // never recorded: nothing to wait for
    Submit(stream, {"event wait", TaskKind::Wait, [recording](double* clock) {
                        recording->Wait(-1);
                        *clock = std::max(*clock, recording->Microseconds());
                        return WorkResult();
                    }});
}

void Reset(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream) {
    if (event->flags & kEventExternal) return Submit(stream, ResetTask(event, nullptr));
    std::shared_ptr<Recording> latest;
    {
        std::lock_guard<std::mutex> lock(event->mutex);
        event->captured = {};
        latest = event->latest;
    }
    if (!IsCaptured(*stream) && latest != nullptr) Submit(stream, ResetTask(event, latest));
}

int Synchronize(const char* function, void* handle, int32_t milliseconds) {
    return Call(function, [&] {
        const auto recording = LatestOutsideCapture(*TheEvents().Get(handle), "synchronised");
        if (recording == nullptr) return;
        if (!recording->Wait(milliseconds)) Refuse(kEventSyncTimeout, "the event was not reached within %d ms", milliseconds);
        recording->OfStream()->device.HostWaited(recording->Microseconds());
        ThrowFailure(*recording->OfStream());
    });
}

// The record of an event that has been reached, for its time.
double TimeOf(void* handle, const char* which) {
    Event& event = *TheEvents().Get(handle);
    if (!(event.flags & kEventTimeLine))
        Refuse(kEventTimestampInvalid, "the %s event was created without ACL_EVENT_TIME_LINE and keeps no time", which);
    const auto recording = LatestOutsideCapture(event, "asked for its time");
    if (recording == nullptr || !recording->Reached())
        Refuse(kEventTimestampInvalid, "the %s event %s", which, recording == nullptr ? "was not recorded" : "is not reached yet");
    return recording->Microseconds();
}

}  // namespace
}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY int aclrtCreateEvent(void** event) { return Create("aclrtCreateEvent", event, kEventSync | kEventTimeLine); }
ACL_FUNC_VISIBILITY int aclrtCreateEventWithFlag(void** event, uint32_t flags) {
    return Create("aclrtCreateEventWithFlag", event, flags);
}
ACL_FUNC_VISIBILITY int aclrtCreateEventExWithFlag(void** event, uint32_t flags) {
    return Create("aclrtCreateEventExWithFlag", event, flags);
}
ACL_FUNC_VISIBILITY int aclrtDestroyEvent(void* event) {
    return Call("aclrtDestroyEvent", [&] { TheEvents().Remove(event); });
}
ACL_FUNC_VISIBILITY int aclrtRecordEvent(void* event, void* stream) {
    return Call("aclrtRecordEvent", [&] { Record(TheEvents().Get(event), GetStream(stream)); });
}
ACL_FUNC_VISIBILITY int aclrtStreamWaitEvent(void* stream, void* event) {
    return Call("aclrtStreamWaitEvent", [&] { Wait(TheEvents().Get(event), GetStream(stream)); });
}
ACL_FUNC_VISIBILITY int aclrtResetEvent(void* event, void* stream) {
    return Call("aclrtResetEvent", [&] { Reset(TheEvents().Get(event), GetStream(stream)); });
}
ACL_FUNC_VISIBILITY int aclrtSynchronizeEvent(void* event) { return Synchronize("aclrtSynchronizeEvent", event, -1); }
ACL_FUNC_VISIBILITY int aclrtSynchronizeEventWithTimeout(void* event, int32_t milliseconds) {
    return Synchronize("aclrtSynchronizeEventWithTimeout", event, milliseconds);
}
ACL_FUNC_VISIBILITY int aclrtQueryEventStatus(void* event, int* status) {
    return Call("aclrtQueryEventStatus", [&] {
        const auto recording = LatestOutsideCapture(*TheEvents().Get(event), "queried");
        const bool reached = recording != nullptr && recording->Reached();
        NotNull(status, "status") = reached ? 1 : 0;  // complete, not ready
        if (reached) recording->OfStream()->device.HostWaited(recording->Microseconds());
    });
}
// Whether streams that wait for the event may go on.
ACL_FUNC_VISIBILITY int aclrtQueryEventWaitStatus(void* event, int* status) {
    return Call("aclrtQueryEventWaitStatus", [&] {
        const auto recording = LatestOutsideCapture(*TheEvents().Get(event), "queried");
        NotNull(status, "status") = recording == nullptr || recording->Reached() ? 0 : 1;
    });
}
ACL_FUNC_VISIBILITY int aclrtEventElapsedTime(float* milliseconds, void* start, void* end) {
    return Call("aclrtEventElapsedTime", [&] {
        const double from = TimeOf(start, "start"), to = TimeOf(end, "end");
        if (to < from) Refuse(kEventTimestampReversal, "the end event was reached %g us before the start event", from - to);
        NotNull(milliseconds, "ms") = static_cast<float>((to - from) / 1000);
    });
}
// Modelled microseconds since the process started.
ACL_FUNC_VISIBILITY int aclrtEventGetTimestamp(void* event, uint64_t* microseconds) {
    return Call("aclrtEventGetTimestamp",
                [&] { NotNull(microseconds, "timestamp") = static_cast<uint64_t>(TimeOf(event, "given")); });
}

}  // extern "C"
