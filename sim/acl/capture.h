// Model capture: a capturing stream records tasks instead of running them.
#pragma once

#include <memory>
#include <string>

#include "sim/acl/stream.h"

namespace sim::acl {

class Capture;
struct Event;

// Where in a capture an event was recorded.
struct CapturedRecord {
    std::shared_ptr<Capture> capture;  // null: not in a capture
    int record = 0;                    // number in the model
};

bool IsCaptured(const Stream& stream);
// Takes the task when the stream is captured, or collects the new tasks of a group; false when it should run.
bool RecordTask(const std::shared_ptr<Stream>& stream, Task* task);
// The same for events, which tie streams to a capture. A stream outside waiting for a captured record joins the capture.
bool RecordInCapture(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event);
bool WaitInCapture(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event);

// "stream 3 is captured and cannot be <what>"; the capture is lost.
void RefuseWhenCaptured(const Stream& stream, const char* what);
// For calls that take effect at once and so cannot be recorded, where the modes of capture and thread forbid them.
void RefuseUnsafeCall(const char* what);
// For an asynchronous copy that has to wait because its host memory is pageable.
void RefuseBlockingCopy(const Stream& stream);
// The stream goes away: so do a capture it belongs to and a group update it collects.
void AbandonCapture(Stream& stream);
void LoseCapture(Capture& capture, const std::string& reason);

}  // namespace sim::acl
