// Everything behind one sim::Core: memory, shadows, order, timeline, findings. Lives as long as its kernel runs.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "sim/core/core.h"
#include "sim/core/findings.h"
#include "sim/core/gm.h"
#include "sim/core/launch.h"
#include "sim/core/layout.h"
#include "sim/core/local_memory.h"
#include "sim/core/order.h"
#include "sim/core/pending.h"
#include "sim/core/rendezvous.h"
#include "sim/core/sites.h"
#include "sim/core/timeline.h"

namespace sim {

struct CoreResult {                  // what outlives the core
    CoreStats stats;
    std::vector<Finding> findings;
    std::vector<BufferRecord> buffers;
    uint64_t ubPeakBytes = 0;
    std::vector<Slice> slices;       // without their times, which the replay of these steps tells
    std::vector<uint32_t> sliceSteps;
    TimeLog log;
    Sites sites;
    std::vector<EpochLog> epochs;
    ForeignLog learnt;
};

// Blocks that have their cores at the same time.
uint32_t BlocksAtOnce(const SocSpec& soc, const Layout& layout);
uint32_t HostThreads(const LaunchOptions& options);   // that run cores at once

struct LaunchState {                 // shared by the cores of a launch
    const LaunchRequest& request;
    const SocSpec& soc;
    const Declared declared;         // what the kernel is known to declare
    const Layout layout;
    const GmTensors tensors;
    const uint32_t activeBlocks;     // that share the chip's bandwidth
    const std::chrono::steady_clock::time_point deadline;
    Rendezvous rendezvous;
    std::function<void()> stepAside; // another core may start
    std::vector<class CoreState*> cores;   // that run
    std::shared_mutex writtenMutex;
    IntervalMap<bool> written;       // GM bytes that cores have written and told others about
    std::vector<CoreResult> results;
    std::atomic<uint64_t> loggedBytes{0};   // by all cores, in their timelines and slices
    std::atomic<Declared> restartAs{Declared()};   // the kernel turned out to need other cores

    LaunchState(const LaunchRequest& request, Declared declared);
};

class CoreState {
public:
    CoreState(LaunchState& launch, uint32_t index);
    ~CoreState();
    Core& Api() { return core_; }
    // After the kernel has returned: runs what is held back, checks what must not be left behind.
    void KernelReturned();
    void KernelThrew(const char* what);
    void KernelFaulted(const struct Fault& fault);
    CoreResult Result();
    bool Aborted() const { return aborted_; }
    const LaunchRequest& Request() const { return launch_.request; }

private:
    friend class Core;

    struct Touch {                   // of the instruction being issued
        const Operand* operand;
        Region region;               // normalised, not empty
    };
    struct Buffer {
        Memory memory;
        const char* position;
        uint64_t address, bytes;
        uint32_t count;
        Location where;
        uint32_t nth;                // among the buffers of the same source line
        mutable std::string name;    // as the source calls it; looked up at first use
        const std::string& Name() const;
        uint64_t SlotBytes() const { return bytes / count > 0 ? bytes / count : 1; }
    };

    // --- issue.cpp
    bool Issue(const Instruction& instruction);
    void AddSlice(const Instruction& instruction, uint64_t bytes);
    void CheckLimits();              // of time, and of memory for what is recorded
    void Reach(const char* name, Location where) {         // the kernel calls an API that the device would execute
        constexpr uint64_t kCheckEvery = 1024;             // calls; reading the clock costs as much as issuing one
        lastName_ = name;
        lastWhere_ = where;
        findings_.NextInstruction();
        if (++reached_ % kCheckEvery == 0) CheckLimits();
    }
    // --- operand_checks.cpp
    void CheckOperands(const Instruction& instruction);
    void CheckLocal(const Instruction& instruction, const Operand& operand, const Region& region, uint64_t begin,
                    uint64_t end);
    void CheckGm(const Instruction& instruction, const Operand& operand, uint64_t begin, uint64_t end);
    void CheckWritten(const Instruction& instruction, const Operand& operand, const Region& region);
    // --- order_checks.cpp
    void CheckOrder(const Instruction& instruction, const Clock& view);
    void CheckOrderInGm(const Instruction& instruction, const Touch& access, const Clock& view);
    void CheckOrderInLocal(const Instruction& instruction, const Touch& access, const Clock& view);
    void ReportHazard(const Instruction& instruction, const Touch& access, InstructionId earlier, bool earlierWrites,
                      uint64_t begin, uint64_t end);
    void RecordAccesses(InstructionId id, SiteIndex site, const Clock& view);
    // --- flags.cpp
    struct Flag {
        bool set = false;
        Clock clock;
        double time = 0;
        Location where;
    };
    static uint32_t EventOf(Pipe source, Pipe destination, int id) {
        return uint32_t((int(source) * kPipes + int(destination)) * kEvents + id);
    }
    Flag& FlagOf(Pipe source, Pipe destination, int id) { return flags_[EventOf(source, destination, id)]; }
    void CheckEvent(const char* api, Pipe source, Pipe destination, int id, Location where);
    void ReportFlagsLeftSet();
    // --- cross_core.cpp
    void Meet(Location where, bool soft, bool withCubes);
    void CheckMeeting(Location where, bool soft);
    Rendezvous::Arrival Arrive(Pipe pipe, Location where);
    InstructionId Learn(Pipe pipe, const char* name, Location where, const Foreign& news);
    [[noreturn]] void ReportDeadlock(const char* api, Location where);
    // --- mail.cpp
    void Send(uint32_t to, std::shared_ptr<void> message, Pipe pipe, Location where);
    // --- core_kind.cpp
    bool OnCube() const { return launch_.layout.IsCube(index_); }
    bool HasPipe(Pipe pipe) const;
    bool HasMemory(Memory memory) const;
    const char* Kind() const { return OnCube() ? "a cube core" : "a vector core"; }
    void Declare(KernelType type, bool ofKey, Location where);
    void Deduce(Location where);
    void CheckCoreKind(const Instruction& instruction);
    // --- buffers.cpp
    void RecordBuffer(Memory memory, const char* position, uint64_t address, uint64_t bytes, uint32_t count, Location where);
    const Buffer* BufferAt(Memory memory, uint64_t address) const;
    void BufferAround(Memory memory, uint64_t address, uint64_t* low, uint64_t* high) const;
    std::string BufferName(Memory memory, uint64_t address) const;     // "xQue_ buffer 0", or "" outside all buffers
    // Name of what lies at an address and the place in it: buffer of a local memory, tensor of GM.
    std::string Place(Memory memory, uint64_t begin, uint64_t end) const;
    // --- core_state.cpp
    Finding MakeFinding(Rule rule, Pipe pipe, const char* instruction, const char* operand, std::string message,
                        Location where) const;
    static Pipe PipeOfRule(Rule rule);                                 // of findings that an API helper reports
    [[noreturn]] void Abort(Finding finding);
    [[noreturn]] void AbortSilently();
    // A check of the core itself: fatal unless the user ignores the rule.
    void Violation(Rule rule, const Instruction& instruction, const Operand& operand, std::string message);

    LaunchState& launch_;
    const LaunchOptions& options_;
    const uint32_t index_;           // of the core in the launch
    std::unique_ptr<LocalMemory> memory_;
    Core core_;
    const bool fast_;                // neither checks nor trace nor adversarial order: only time is kept
    const bool adversarial_;
    bool aborted_ = false;
    Declared task_;                  // by this core's run of the kernel
    uint64_t reached_ = 0;           // API calls so far
    const char* lastName_ = "";      // API called last
    Location lastWhere_;
    Timeline timeline_;
    Order order_;
    Sites sites_;
    GmCore gm_;
    ForeignLog learnt_;
    Pending pending_;
    Findings findings_;
    Clock heldBefore_;               // of the instruction whose body Defer() will get
    InstructionId heldId_ = 0;
    std::vector<Touch> accesses_;
    std::array<Flag, size_t(kPipes * kPipes * kEvents)> flags_{};
    std::vector<Buffer> buffers_;
    std::vector<Slice> slices_;
    std::vector<uint32_t> sliceSteps_;
    uint64_t loggedBytes_ = 0;       // of launch_.loggedBytes
};

// Process-wide copy of a string that may live in a kernel library.
const char* InternString(const char* text);
// First argument of the nth InitBuffer call on a source line ("xQue_"); "" when the source cannot be read.
std::string BufferNameInSource(const Location& where, uint32_t nth);

}  // namespace sim
