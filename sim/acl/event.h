// Events. A record is a point of a stream with its modelled time; who waits for an event waits for the record it had then.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "sim/acl/capture.h"
#include "sim/acl/stream.h"

namespace sim::acl {

// One recording, reached or not.
class Recording {
public:
    explicit Recording(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
    void Reach(double microseconds);
    bool Reached() const;
    bool Wait(int32_t milliseconds) const;  // negative: without limit
    double Microseconds() const;
    const std::shared_ptr<Stream>& OfStream() const { return stream_; }

private:
    const std::shared_ptr<Stream> stream_;
    mutable std::mutex mutex_;
    mutable std::condition_variable reached_;
    bool isReached_ = false;
    double microseconds_ = 0;
};

enum EventFlag : uint32_t {
    kEventSync = 0x01, kEventCaptureProgress = 0x02, kEventTimeLine = 0x08, kEventDeviceOnly = 0x10, kEventExternal = 0x20,
    kEventIpc = 0x40,
};
constexpr uint32_t kEventFlags = kEventSync | kEventCaptureProgress | kEventTimeLine | kEventDeviceOnly | kEventExternal;

struct Event {
    explicit Event(uint32_t given) : flags(given) {}
    const uint32_t flags;

    std::mutex mutex;
    std::condition_variable changed;
    std::shared_ptr<Recording> latest;  // null: not recorded, or reset
    CapturedRecord captured;            // the last record was captured in a model
};

using Events = HandleTable<Event, HandleKind::Event>;
Events& TheEvents();

// Tasks on an event as such, not on one record of it: what an external event does inside a model.
Task SetTask(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream);
Task AwaitTask(const std::shared_ptr<Event>& event);
// Forgets the event's record; with `only`, when it is still that one.
Task ResetTask(const std::shared_ptr<Event>& event, const std::shared_ptr<Recording>& only);

}  // namespace sim::acl
