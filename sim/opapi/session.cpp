#include "sim/opapi/session.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "acl/acl.h"
#include "sim/host/current_soc.h"
#include "sim/host/memory_size.h"
#include "sim/opapi/c_api.h"

namespace sim::opapi {
namespace {

constexpr size_t kKeptReports = 1024;  // of a thread that never takes them

// CUSTOM_OPS_SIM_LOG_MEMORY: as "8GB", host memory that a launch may record its instructions in.
uint64_t LogBytes() {
    const char* text = std::getenv("CUSTOM_OPS_SIM_LOG_MEMORY");
    if (text == nullptr || *text == '\0') return LaunchOptions().logBytes;
    size_t bytes = 0;
    if (!host::ParseMemorySize(text, &bytes))
        host::Refuse(host::kInvalidParameter, "CUSTOM_OPS_SIM_LOG_MEMORY must be a size like 4GB, it is '%s'", text);
    return bytes;
}

std::string FindingsText(const LaunchReport& report) {
    std::string text = report.Describe(report.findings.front());
    if (report.findings.size() > 1) text += host::Format("\nand %zu more", report.findings.size() - 1);
    return text;
}

}  // namespace

Session& ThisSession() {
    thread_local Session session;
    return session;
}

std::string ReportJson(const FinishedLaunch& launch) {
    std::string hex;
    for (const uint8_t byte : launch.tilingData) hex += host::Format("%02x", byte);
    std::string json = launch.report.ToJson();
    json.pop_back();  // the closing brace: more fields follow
    return json + host::Format(",\"tilingKey\":%llu,\"workspaceBytes\":%llu,\"tilingData\":\"",
                               static_cast<unsigned long long>(launch.tilingKey),
                               static_cast<unsigned long long>(launch.workspaceBytes)) + hex + "\"}";
}

char* Hand(const std::string& text) {
    char* copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
}

WorkResult RunAndReport(LaunchRequest request, const std::vector<uint8_t>& tilingData, uint64_t workspaceBytes) {
    Session& session = ThisSession();
    if (request.soc == nullptr) request.soc = &host::CurrentSoc();
    request.options = session.launch;
    request.options.logBytes = LogBytes();
    LaunchReport report = Launch(request);
    if (session.launch.trace) {
        const std::string events = report.ChromeTraceEvents(session.traceMicroseconds);
        session.traceEvents += (session.traceEvents.empty() || events.empty() ? "" : ",\n") + events;
        report.slices.clear();  // hundreds of bytes per instruction
    }
    WorkResult result;
    result.microseconds = report.modelledSeconds * 1e6;
    if (session.raise && !report.Ok()) {
        result.status = report.findings.front().rule == Rule::Timeout ? host::kTimedOut : host::kRuntimeError;
        result.message = FindingsText(report);
    }
    if (session.reports.size() == kKeptReports) session.reports.erase(session.reports.begin());
    session.reports.push_back({std::move(report), request.tilingKey, tilingData, workspaceBytes});
    return result;
}

}  // namespace sim::opapi

using sim::opapi::ThisSession;

const char* aclGetRecentErrMsg() {
    thread_local std::string given;
    given = std::exchange(ThisSession().error, {});
    return given.empty() ? nullptr : given.c_str();
}

int SimSetOptions(const SimOptions* options) {
    return sim::opapi::GuardStatus([&] {
        if (options == nullptr) sim::host::Refuse(sim::host::kNullPointer, "SimSetOptions: options is null");
        if (options->soc != nullptr) {
            const sim::SocSpec* soc = sim::FindSoc(options->soc);
            if (soc == nullptr) sim::host::Refuse(sim::host::kInvalidParameter, "%s", sim::host::UnknownSoc(options->soc).c_str());
            sim::host::SetCurrentSoc(*soc);
        }
        sim::LaunchOptions launch;
        launch.checks = options->checks != 0;
        launch.trace = options->trace != 0;
        launch.adversarialSeed = options->adversarialSeed;
        launch.hostThreads = options->hostThreads;
        if (options->timeoutSeconds > 0) launch.timeoutSeconds = options->timeoutSeconds;
        launch.ignoredRules = options->ignoredRules;
        ThisSession().launch = launch;
        ThisSession().raise = options->raise != 0;
    });
}

char* SimTakeReports() {
    return sim::opapi::Guard<char*>(nullptr, [] {
        std::string text = "[";
        for (const auto& launch : ThisSession().reports) text += (text.size() > 1 ? ",\n" : "") + sim::opapi::ReportJson(launch);
        ThisSession().reports.clear();
        return sim::opapi::Hand(text + "]");
    });
}

char* SimTakeTrace() {
    return sim::opapi::Guard<char*>(
        nullptr, [] { return sim::opapi::Hand("[" + std::exchange(ThisSession().traceEvents, {}) + "]"); });
}

uint64_t SimMemorySize(const char* text) {
    size_t bytes = 0;
    return text != nullptr && sim::host::ParseMemorySize(text, &bytes) ? bytes : 0;
}
void SimFree(char* text) { std::free(text); }
