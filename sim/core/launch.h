// Running a kernel on a simulated chip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/soc.h"
#include "sim/core/types.h"

namespace sim {

// What a compiled kernel exports: calls the entry with argv[i] as its i-th argument (a GM pointer, or a pointer to a
// scalar / struct passed by value). Built from sim/ascendc/include/kernel_entry.h.
using KernelInvoke = void (*)(void* const* argv);

enum class GmRole : uint8_t { Input, Output, InOut, Workspace, Tiling };
struct GmBuffer {
    std::string name;       // OpDef name, "workspace", "tiling" or "arg3"
    void* data = nullptr;
    uint64_t bytes = 0;
    GmRole role = GmRole::Input;   // Output and Workspace start unwritten
};

struct LaunchOptions {
    bool checks = true;             // operand and ordering checks
    bool trace = false;             // keep every timeline slice
    uint64_t adversarialSeed = 0;   // 0: eager execution
    int hostThreads = 0;            // 0: all of the host's
    double timeoutSeconds = 600;
    uint64_t logBytes = uint64_t(4) << 30;   // of host memory, for what all cores record of their instructions
    uint64_t ignoredRules = 0;      // bit per Rule
    int maxFindings = 16;           // per launch
};

struct LaunchRequest {
    std::string op;                 // "HcPreSinkhorn"
    const SocSpec* soc = nullptr;
    KernelInvoke invoke = nullptr;
    uint32_t blockDim = 1;
    uint64_t tilingKey = 0;
    uint32_t scheduleMode = 0;      // 1: batch, all blocks resident (SyncAll)
    std::vector<GmBuffer> buffers;  // everything the kernel may touch
    std::vector<void*> argv;        // in the order of the entry's parameters
    uint8_t* userWorkspace = nullptr;
    uint8_t* systemWorkspace = nullptr;   // part of a buffer above
    LaunchOptions options;
};

struct AccessRecord {               // one side of a hazard
    Pipe pipe = Pipe::S;
    std::string verb;               // "reads" | "writes"
    std::string what;               // buffer name as the kernel's source calls it, e.g. "xQue_ buffer 0"
    Memory memory = Memory::UB;
    uint64_t begin = 0, end = 0;    // bytes in that memory; GM: offset in the tensor
    std::string instruction;
    std::string file;
    int line = 0;
};

struct Finding {
    Rule rule = Rule::Argument;
    uint32_t core = 0;
    Pipe pipe = Pipe::S;
    std::string instruction, operand;
    std::string message;            // one sentence with the numbers
    std::string repair;             // the shortest way out, may be empty
    std::string file;
    int line = 0;
    std::vector<AccessRecord> accesses;
    bool fatal = false;             // the core stopped there
    uint64_t times = 1;             // instructions, over all cores, that broke the same rule at the same source lines
    uint32_t cores = 1;             // on which that happened
};

struct PipeStats { uint64_t instructions = 0, bytes = 0; double busyCycles = 0; };
struct CoreStats { uint32_t core = 0; std::string name; PipeStats pipes[kPipes]; double endCycles = 0; };
struct BufferRecord { std::string name, position; Memory memory; uint64_t address = 0, bytes = 0; uint32_t count = 0; };
struct Slice { uint32_t core; Pipe pipe; const char* name; double start, cycles; uint64_t bytes; std::string detail; Location where; };

struct LaunchReport {
    std::string op, soc;
    uint32_t blockDim = 0;
    uint64_t launch = 0;            // running number in this process
    double modelledCycles = 0;      // slowest core
    double modelledSeconds = 0;     // launch floor + cycles / clock
    uint64_t hbmBytes = 0;          // modelled: that HBM delivered or took
    uint64_t l2Bytes = 0;           // modelled: moved between cores and L2 without HBM
    std::vector<CoreStats> cores;   // name: "core 3"; of a mixed kernel "AIC 1", "AIV 2"
    std::vector<BufferRecord> buffers;   // memory map of the first block
    uint64_t ubPeakBytes = 0;
    std::vector<Finding> findings;
    std::vector<Slice> slices;

    bool Ok() const { return findings.empty(); }
    // Member names as keys, rules, pipes and memories by name; "pipes" of a core is an object {"V": {"instructions", "bytes",
    // "busyCycles"}, ...} of the pipes that did something; a finding also has "text" = Describe(). Slices are left out.
    std::string ToJson() const;
    // JSON objects joined by ",\n", without the enclosing array; the launch begins at `startMicroseconds` of their time axis.
    std::string ChromeTraceEvents(double startMicroseconds = 0) const;
    // The text of style.md section 7 for one finding.
    std::string Describe(const Finding& finding) const;
    std::string CoreName(uint32_t core) const;
};

// Runs the kernel on all blocks, cores in parallel on host threads. Never throws for a kernel's mistakes: they are
// findings. The result does not depend on the number of host threads.
LaunchReport Launch(const LaunchRequest& request);

}  // namespace sim
