#include "sim/acl/reports.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "acl/acl_base.h"
#include "sim/acl/stream.h"
#include "sim/core/json.h"
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
// A row of the trace: a stream, or, of a model that it executes, what was captured on another one.
struct Row {
    int device;
    int32_t stream;
    int branch = 0;
    bool operator<(const Row& other) const {
        return std::tie(device, stream, branch) < std::tie(other.device, other.stream, other.branch);
    }
};
constexpr int32_t kNoStream = -1;  // copies that the host waits for
struct Collected {
    std::mutex mutex;
    std::deque<StreamLaunch> launches;
    uint64_t lost = 0;
    std::string traceEvents;
    bool traceIsCut = false;
    std::set<Row> namedRows;
    std::map<int, double> copiedUntil;  // by device: end of the last copy that the host waited for, on a row of their own
};
Collected& TheCollected() {
    static Collected* collected = new Collected;
    return *collected;
}
thread_local const Stream* working = nullptr;

// Processes of launches have numbers from 1000 on (LaunchReport::ChromeTraceEvents); 0 is the idle process to who draws traces.
constexpr int kMostBranches = 1000;
int Process(const Row& row) { return row.device + 1; }
int Thread(const Row& row) { return (row.stream + 1) * kMostBranches + row.branch + 1; }

void Name(const Row& row, const char* what, const std::string& text, std::string* events) {
    JsonWriter event;
    event.BeginObject().Field("ph", "M").Field("name", what).Field("pid", Process(row)).Field("tid", Thread(row));
    event.Key("args").BeginObject().Field("name", text).EndObject().EndObject();
    *events += event.Take() + ",\n";
}

std::string RowName(const Row& row) {
    if (row.stream == kNoStream) return "copies that the host waits for";
    const std::string stream = "stream " + std::to_string(row.stream);
    return row.branch == 0 ? stream : stream + ", branch " + std::to_string(row.branch) + " of graphs";
}

// What was done, as a slice of its row.
std::string Slice(const std::string& name, const Row& row, double start, double microseconds, int status, uint64_t launch) {
    JsonWriter event;
    event.BeginObject().Field("ph", "X").Field("name", name).Field("cat", "modelled");
    event.Field("pid", Process(row)).Field("tid", Thread(row)).Field("ts", start).Field("dur", microseconds);
    event.Key("args").BeginObject();
    if (launch != 0) event.Field("launch", launch);
    if (status != 0) event.Field("error", status);
    return event.EndObject().EndObject().Take();
}

// Under the mutex.
void AddToTrace(Collected& collected, const Row& row, std::string events) {
    if (collected.namedRows.insert(row).second) {
        std::string names;
        Name(row, "process_name", "npu:" + std::to_string(row.device) + " (modelled)", &names);
        Name(row, "thread_name", RowName(row), &names);
        events = names + events;
    }
    if (collected.traceEvents.size() + events.size() < kKeptTraceBytes) {
        collected.traceEvents += (collected.traceEvents.empty() ? "" : ",\n") + events;
    } else if (!std::exchange(collected.traceIsCut, true)) {
        std::fprintf(stderr, "custom_ops: the trace is full at %zu MiB, the launches that follow are not in it\n", kKeptTraceBytes >> 20);
    }
}

void CollectReports(const Stream& stream, std::vector<opapi::FinishedLaunch>* reports) {
    if (reports->empty()) return;
    Collected& collected = TheCollected();
    std::lock_guard<std::mutex> lock(collected.mutex);
    for (auto& launch : *reports) collected.launches.push_back({std::move(launch), stream.id, stream.device.id});
    reports->clear();
    for (; collected.launches.size() > kKeptReports; ++collected.lost) collected.launches.pop_front();
}

WorkResult RunInRow(const Task& task, const Stream& stream, int branch, double* clock) {
    opapi::Session& session = opapi::ThisSession();
    if (!session.launch.trace) {
        const WorkResult result = task.run(clock);
        CollectReports(stream, &session.reports);
        return result;
    }
    const Row row{stream.device.id, stream.id, branch};
    const double start = *clock;
    session.traceMicroseconds = start + 1e6 * TheSettings().soc->launchSeconds;
    const WorkResult result = task.run(clock);
    const uint64_t launch = session.reports.empty() ? 0 : session.reports.back().report.launch;
    CollectReports(stream, &session.reports);
    std::string events = Slice(task.name, row, start, *clock - start, result.status, launch);
    if (!session.traceEvents.empty()) events += ",\n" + std::exchange(session.traceEvents, {});
    std::lock_guard<std::mutex> lock(TheCollected().mutex);
    AddToTrace(TheCollected(), row, std::move(events));
    return result;
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

WorkResult RunAndCollect(const Task& task, const Stream& stream, double* clock) {
    working = &stream;
    return RunInRow(task, stream, 0, clock);
}

WorkResult RunStep(const Task& task, int branch, double* clock) { return RunInRow(task, *working, branch, clock); }

void TraceCopy(const Device& device, const char* name, double microseconds) {
    if (!TheSettings().trace) return;
    Collected& collected = TheCollected();
    std::lock_guard<std::mutex> lock(collected.mutex);
    double& until = collected.copiedUntil[device.id];
    const double start = std::max(until, device.HostMicroseconds());
    until = start + microseconds;
    const Row row{device.id, kNoStream};
    AddToTrace(collected, row, Slice(name, row, start, microseconds, 0, 0));
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

// How many reports were let go since the last call: 4096 are kept when nobody takes them.
ACL_FUNC_VISIBILITY uint64_t SimNpuTakeLost() {
    std::lock_guard<std::mutex> lock(TheCollected().mutex);
    return std::exchange(TheCollected().lost, 0);
}

// Chrome trace events of all streams since the last call (CUSTOM_OPS_NPU_TRACE=1): a JSON array.
ACL_FUNC_VISIBILITY char* SimNpuTakeTrace() {
    return sim::opapi::Guard<char*>(nullptr, [] {
        std::lock_guard<std::mutex> lock(TheCollected().mutex);
        return sim::opapi::Hand("[" + std::exchange(TheCollected().traceEvents, {}) + "]");
    });
}

}  // extern "C"
