#include "sim/acl/reports.h"

#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "acl/acl_base.h"
#include "sim/acl/stream.h"
#include "sim/host/current_soc.h"
#include "sim/host/text.h"
#include "sim/opapi/session.h"

namespace sim::acl {
namespace {

constexpr size_t kKeptReports = 4096;        // when nobody takes them
constexpr size_t kKeptTraceBytes = size_t(256) << 20;

struct StreamLaunch {
    opapi::FinishedLaunch launch;
    int32_t stream;
    int device;
};
struct Collected {
    std::mutex mutex;
    std::deque<StreamLaunch> launches;
    std::string traceEvents;
    bool traceIsCut = false;
};
Collected& TheCollected() {
    static Collected* collected = new Collected;
    return *collected;
}

}  // namespace

void BeginWorkerThread() {
    const Settings& settings = TheSettings();
    host::SetCurrentSoc(*settings.soc);
    opapi::Session& session = opapi::ThisSession();
    session.launch.checks = settings.checks;
    session.launch.trace = settings.trace;
    session.raise = true;
}

void CollectReports(const Stream& stream) {
    opapi::Session& session = opapi::ThisSession();
    if (session.reports.empty()) return;
    Collected& collected = TheCollected();
    std::lock_guard<std::mutex> lock(collected.mutex);
    for (auto& launch : session.reports) collected.launches.push_back({std::move(launch), stream.id, stream.device.id});
    session.reports.clear();
    while (collected.launches.size() > kKeptReports) collected.launches.pop_front();
    const std::string events = std::exchange(session.traceEvents, {});
    if (events.empty()) return;
    if (collected.traceEvents.size() + events.size() < kKeptTraceBytes) {
        collected.traceEvents += (collected.traceEvents.empty() ? "" : ",\n") + events;
    } else if (!std::exchange(collected.traceIsCut, true)) {
        std::fprintf(stderr, "custom_ops: the trace is full at %zu MiB, the launches that follow are not in it\n", kKeptTraceBytes >> 20);
    }
}

}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

// Launch reports of all streams since the last call, oldest first: a JSON array like SimTakeReports, with "stream" and "device".
// The caller frees the text with SimFree.
ACL_FUNC_VISIBILITY char* SimNpuTakeReports() {
    return sim::opapi::Guard<char*>(nullptr, [] {
        std::deque<StreamLaunch> launches;
        {
            std::lock_guard<std::mutex> lock(TheCollected().mutex);
            launches.swap(TheCollected().launches);
        }
        std::string text = "[";
        for (const StreamLaunch& entry : launches) {
            std::string json = sim::opapi::ReportJson(entry.launch);
            json.pop_back();  // the closing brace: two more fields follow
            text += (text.size() > 1 ? ",\n" : "") + json + sim::host::Format(",\"stream\":%d,\"device\":%d}", entry.stream, entry.device);
        }
        return sim::opapi::Hand(text + "]");
    });
}

// Chrome trace events of all streams since the last call (CUSTOM_OPS_NPU_TRACE=1): a JSON array.
ACL_FUNC_VISIBILITY char* SimNpuTakeTrace() {
    return sim::opapi::Guard<char*>(nullptr, [] {
        std::lock_guard<std::mutex> lock(TheCollected().mutex);
        return sim::opapi::Hand("[" + std::exchange(TheCollected().traceEvents, {}) + "]");
    });
}

}  // extern "C"
