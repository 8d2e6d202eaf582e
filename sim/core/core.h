// One simulated AI core: the single choke point through which every instruction goes.
//
//   operand checks -> ordering checks -> timeline -> execution (now, or held back in adversarial mode)
//
// Kernel-side headers (sim/ascendc/include) reach it through Core::Current(); they contain no checks of addresses,
// order or cost of their own.
#pragma once

#include <memory>
#include <string>

#include "sim/core/instruction.h"
#include "sim/core/soc.h"
#include "sim/core/types.h"

namespace sim {

class CoreState;   // shadow memory, clocks, pending instructions; in core_state.h

class Core {
public:
    // The core whose kernel runs on this host thread. Outside a launch: throws std::logic_error.
    static Core& Current();

    const SocSpec& Soc() const;
    uint32_t BlockIdx() const;
    uint32_t BlockNum() const;
    CoreKind Kind() const;
    uint32_t SubBlockIdx() const;       // which AIV core of its AIC
    uint32_t VectorsPerCube() const;
    bool Mixed() const;                 // the launch has cores of both kinds
    // A kernel that has not declared its type becomes one of cube cores when it asks for a memory of theirs.
    bool HasMemory(Memory memory, Location where);
    uint64_t TilingKey() const;
    uint8_t* UserWorkspace() const;     // null when the launch has none
    uint8_t* SystemWorkspace() const;   // 16 MiB for the API's own use; null when the op's workspace leaves no room for them

    // --- memory -------------------------------------------------------------------------------------------------
    uint8_t* Local(Memory memory, uint64_t address) const;       // host pointer to a byte of a local memory
    // Local memory and byte address behind a host pointer (kernels pass __ubuf__ pointers around); false if not local.
    bool Locate(const void* pointer, Memory* memory, uint64_t* address) const;
    uint64_t LocalBytes(Memory memory) const;                    // capacity
    // Called by TPipe for every InitBuffer: `count` buffers side by side in [address, address+bytes), `bytes` counting all of
    // them. The bytes become unwritten. A plan larger than the memory stops the core (LocalMemoryOverflow). Reports name the
    // buffer by the first argument of the InitBuffer call at `where`.
    void RecordBuffer(Memory memory, const char* position, uint64_t address, uint64_t bytes, uint32_t count,
                      Location where);
    void MarkUnwritten(Memory memory, uint64_t address, uint64_t bytes);
    // For vector functions, which load whole registers and may then use only some of the lanes.
    // Sets bit i of the zeroed `bits` where byte address + i was never written; false when there is no such byte.
    bool Unwritten(Memory memory, uint64_t address, uint64_t bytes, uint64_t* bits) const;
    // The slot of the recorded buffer that holds `address`; [0, LocalBytes) when no buffer does.
    void BufferAround(Memory memory, uint64_t address, uint64_t* low, uint64_t* high) const;

    // --- instructions -------------------------------------------------------------------------------------------
    // Checks, times and executes. `body` performs the instruction on host memory; it must capture by value, because in
    // adversarial mode it runs later.
    template <typename Body>
    void Issue(const Instruction& instruction, Body&& body) {
        if (!BeginIssue(instruction)) {  // executes now
            body();
            return;
        }
        Defer(std::unique_ptr<DeferredBody>(
            new DeferredBodyOf<std::decay_t<Body>>(static_cast<Body&&>(body))));
    }
    // True when neither checks nor trace need operands: APIs may then leave Instruction::operands empty.
    bool OperandsNeeded() const { return operandsNeeded_; }
    bool Adversarial() const;   // bodies are held back
    // Executes everything that is ordered before the next instruction of `pipe`. For code that runs inline (vector
    // functions, scalar reads) and so cannot be deferred itself.
    void FlushBefore(Pipe pipe);
    // Stops the core when the launch is over its time limit. For code that runs long without issuing anything.
    void CheckTime(const char* name, Location where);

    // --- order --------------------------------------------------------------------------------------------------
    void SetFlag(Pipe source, Pipe destination, int id, Location where);
    void WaitFlag(Pipe source, Pipe destination, int id, Location where);
    bool FlagIsSet(Pipe source, Pipe destination, int id) const;
    void PipeBarrier(Pipe pipe, Location where);
    void PipeBarrierAll(Location where);
    // Work of two pipes that the unit flags of Mmad and Fixpipe order: what `source` has done so far is ready for `destination`.
    void UnitFlag(Pipe source, Pipe destination);
    // All vector cores of the launch, or all cores; deadlock is reported, not waited for. The soft form counts in GM and needs
    // no scheduler.
    void SyncAll(Location where, bool soft = false, bool withCubes = false);
    // Flags between cores (facts 2.4). A set speaks for what `pipe` has done; a wait holds `pipe` back, S the whole core.
    void CrossCoreSetFlag(int mode, Pipe pipe, int flag, Location where);
    void CrossCoreWaitFlag(Pipe pipe, int flag, Location where);
    // Messages between an AIC and the AIV cores of its block (high-level objects, as the device passes them through the workspace):
    // one says what `pipe` has done. Receive returns null when nobody is left who could send; `call` is its name in reports.
    void SendToCube(std::shared_ptr<void> message, Pipe pipe, Location where);
    void SendToVector(uint32_t subBlock, std::shared_ptr<void> message, Pipe pipe, Location where);
    std::shared_ptr<void> Receive(const char* call, uint32_t* subBlock, Location where);

    // --- errors -------------------------------------------------------------------------------------------------
    // Stops this core: throws KernelAbort, which the launcher turns into a report. `instruction` and `operand` may be "".
    [[noreturn]] void Fail(Rule rule, const char* instruction, const char* operand, const std::string& message,
                           Location where);
    // Records and goes on (used for findings that leave the numbers defined). Ignored rules are dropped.
    void Report(Rule rule, const char* instruction, const char* operand, const std::string& message, Location where);

    // --- per-launch kernel state kept here so that it dies with the core ------------------------------------------
    // Code of KernelMetaType, of all tiling keys or of the launch's. A launch that has begun with other cores starts again.
    void SetTaskType(int type, bool ofKey, Location where);
    // The kernel needs an AIC with its AIV cores: false when it has declared otherwise.
    bool NeedsBothKinds(Location where);
    struct VectorMask { uint64_t low = ~0ull, high = ~0ull; bool counter = false; uint64_t count = 0; };
    VectorMask mask;                    // SetVectorMask / SetMaskCount / SetMaskNorm
    void* tpipe = nullptr;              // the live AscendC::TPipe
    float accumulator = 0;              // GetAccVal
    uint64_t compareMask[2] = {0, 0};   // CMPMASK register
    float deqScale = 1;                 // SetDeqScale
    float extreme = 0;                  // GetReduceMaxMinCount: value and its index
    uint32_t extremeIndex = 0;
    int atomicMode = 0;                 // SetAtomicAdd ...: 0 none, 1 add, 2 max, 3 min
    int atomicType = 0;                 // DT_* code
    bool hf32 = false, hf32Truncates = false;   // SetHF32Mode, SetHF32TransMode
    std::shared_ptr<void> framework;    // state of the kernel-side headers (data cache, tiling key, DMA loops)

    explicit Core(CoreState& state);
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

private:
    bool BeginIssue(const Instruction& instruction);  // returns true when the body has to be deferred
    void Defer(std::unique_ptr<DeferredBody> body);
    CoreState& state_;
    bool operandsNeeded_ = true;
    friend class CoreState;
};

// exit() and its kind inside a kernel, called at `caller`: ends the kernel and not the process.
[[noreturn]] void KernelExit(const char* function, int status, const void* caller);

// Thrown by Core::Fail and unwinds the kernel function. Never caught by kernel-side headers.
struct KernelAbort {};

}  // namespace sim
