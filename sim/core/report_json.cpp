// LaunchReport as JSON and as Chrome trace events.
#include "sim/core/json.h"
#include "sim/core/launch.h"

namespace sim {
namespace {

void WriteCore(JsonWriter& json, const CoreStats& core) {
    json.BeginObject().Field("core", core.core).Field("name", core.name).Key("pipes").BeginObject();
    for (int p = 0; p < kPipes; ++p) {
        const PipeStats& stats = core.pipes[p];
        if (stats.instructions == 0) continue;
        json.Key(PipeName(Pipe(p))).BeginObject();
        json.Field("instructions", stats.instructions).Field("bytes", stats.bytes).Field("busyCycles", stats.busyCycles).EndObject();
    }
    json.EndObject().Field("endCycles", core.endCycles).EndObject();
}

void WriteBuffer(JsonWriter& json, const BufferRecord& buffer) {
    json.BeginObject().Field("name", buffer.name).Field("position", buffer.position).Field("memory", MemoryName(buffer.memory));
    json.Field("address", buffer.address).Field("bytes", buffer.bytes).Field("count", buffer.count).EndObject();
}

void WriteAccess(JsonWriter& json, const AccessRecord& access) {
    json.BeginObject().Field("pipe", PipeName(access.pipe)).Field("verb", access.verb).Field("what", access.what);
    json.Field("memory", MemoryName(access.memory)).Field("begin", access.begin).Field("end", access.end);
    json.Field("instruction", access.instruction).Field("file", access.file).Field("line", access.line).EndObject();
}

void WriteFinding(JsonWriter& json, const Finding& finding, const std::string& text) {
    json.BeginObject().Field("rule", RuleName(finding.rule)).Field("core", finding.core).Field("pipe", PipeName(finding.pipe));
    json.Field("instruction", finding.instruction).Field("operand", finding.operand).Field("message", finding.message);
    json.Field("repair", finding.repair).Field("file", finding.file).Field("line", finding.line);
    json.Key("accesses").BeginArray();
    for (const AccessRecord& access : finding.accesses) WriteAccess(json, access);
    json.EndArray().Field("fatal", finding.fatal).Field("times", finding.times).Field("cores", finding.cores);
    json.Field("text", text).EndObject();
}

}  // namespace

std::string LaunchReport::ToJson() const {
    JsonWriter json;
    json.BeginObject().Field("op", op).Field("soc", soc).Field("blockDim", blockDim).Field("launch", launch);
    json.Field("modelledCycles", modelledCycles).Field("modelledSeconds", modelledSeconds);
    json.Field("hbmBytes", hbmBytes).Field("l2Bytes", l2Bytes);
    json.Key("cores").BeginArray();
    for (const CoreStats& core : cores) WriteCore(json, core);
    json.EndArray().Key("buffers").BeginArray();
    for (const BufferRecord& buffer : buffers) WriteBuffer(json, buffer);
    json.EndArray().Field("ubPeakBytes", ubPeakBytes).Key("findings").BeginArray();
    for (const Finding& finding : findings) WriteFinding(json, finding, Describe(finding));
    json.EndArray().EndObject();
    return json.Take();
}

// Process = core, thread = pipe. Launches get process ids of their own; with the same start they lie on top of each other.
std::string LaunchReport::ChromeTraceEvents(double startMicroseconds) const {
    constexpr uint64_t kMostCores = 1000;   // cores of a launch, so that process ids of launches do not meet
    const SocSpec* spec = FindSoc(soc.c_str());
    const double microsecondsPerCycle = spec == nullptr ? 1e-3 : 1e6 / double(spec->clockHz);
    std::string events;
    const auto add = [&](JsonWriter& event) { events += (events.empty() ? "" : ",\n") + event.Take(); };
    const auto name = [&](const char* what, uint32_t core, int pipe, const std::string& text) {
        JsonWriter event;
        event.BeginObject().Field("ph", "M").Field("name", what).Field("pid", launch * kMostCores + core).Field("tid", pipe);
        event.Key("args").BeginObject().Field("name", text).EndObject().EndObject();
        add(event);
    };
    for (const CoreStats& core : cores) {
        name("process_name", core.core, 0,
             op + " launch " + std::to_string(launch) + " " + core.name + " (" + soc + ", modelled)");
        for (int p = 0; p < kPipes; ++p)
            if (core.pipes[p].instructions > 0) name("thread_name", core.core, p, PipeName(Pipe(p)));
    }
    for (const Slice& slice : slices) {
        JsonWriter event;
        event.BeginObject().Field("ph", "X").Field("name", slice.name).Field("cat", "modelled");
        event.Field("pid", launch * kMostCores + slice.core).Field("tid", int(slice.pipe));
        event.Field("ts", startMicroseconds + slice.start * microsecondsPerCycle).Field("dur", slice.cycles * microsecondsPerCycle);
        event.Key("args").BeginObject().Field("cycles", slice.cycles).Field("bytes", slice.bytes);
        if (!slice.detail.empty()) event.Field("operands", slice.detail);
        event.Field("source", std::string(slice.where.file) + ":" + std::to_string(slice.where.line)).EndObject().EndObject();
        add(event);
    }
    return events;
}

}  // namespace sim
