// State of one host thread: options, reports not yet taken, the last error. And the border where exceptions become statuses.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "sim/core/launch.h"
#include "sim/host/text.h"
#include "sim/opapi/stream.h"

namespace sim::opapi {

struct FinishedLaunch {
    LaunchReport report;
    uint64_t tilingKey = 0;
    std::vector<uint8_t> tilingData;
    uint64_t workspaceBytes = 0;
};

struct Session {
    LaunchOptions launch;
    bool raise = true;  // findings are errors
    std::vector<FinishedLaunch> reports;
    std::string traceEvents;  // JSON objects joined by ",\n"
    double traceMicroseconds = 0;  // modelled time at which launches begin
    std::string error;
};
Session& ThisSession();

// The report's JSON object with "tilingKey", "tilingData" and "workspaceBytes".
std::string ReportJson(const FinishedLaunch& launch);

// Launches, on the SoC of this thread unless the request names one, and keeps the report. With findings, when the session raises,
// the status is kRuntimeError, or kTimedOut for a kernel that did not end, and the message that of the findings.
WorkResult RunAndReport(LaunchRequest request, const std::vector<uint8_t>& tilingData, uint64_t workspaceBytes);

// Calls `body`; an exception becomes its status, or `failure` for functions that return something else, and the thread's error.
template <typename Result, typename Body>
Result Guard(Result failure, Body&& body) {
    try {
        return body();
    } catch (const std::exception& error) {
        ThisSession().error = error.what();
    }
    return failure;
}
template <typename Body>
int32_t GuardStatus(Body&& body) {
    try {
        body();
        return 0;
    } catch (const host::HostError& error) {
        ThisSession().error = error.what();
        return error.status;
    } catch (const std::exception& error) {
        ThisSession().error = error.what();
        return host::kInnerError;
    }
}

// Text for a caller that frees it with SimFree().
char* Hand(const std::string& text);

}  // namespace sim::opapi
