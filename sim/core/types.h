// Vocabulary shared by every part of the simulator. No standard containers here: kernels include this header.
#pragma once

#include <cstdint>

namespace sim {

// Pipes of an AI core (facts: AscendC programming model). S is the in-order scalar unit that issues all the others.
enum class Pipe : uint8_t { S, V, M, MTE1, MTE2, MTE3, FIX };
inline constexpr int kPipes = 7;
const char* PipeName(Pipe pipe);

// A cube core (AIC) or a vector core (AIV).
enum class CoreKind : uint8_t { Cube, Vector };

enum class Memory : uint8_t { GM, UB, L1, L0A, L0B, L0C, BT, FB };
inline constexpr int kMemories = 8;
const char* MemoryName(Memory memory);

enum class Access : uint8_t { Read, Write, ReadWrite };

// Address of a local tensor that nobody allocated: outside every memory.
inline constexpr uint64_t kNowhere = uint64_t(1) << 62;

// Where in the kernel's source an API was called. A trailing defaulted `Location where = Location::Here()` parameter
// of an API function captures its caller.
struct Location {
    const char* file = "";
    int line = 0;
    static constexpr Location Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
        return {file, line};
    }
};

// Bytes an operand touches: for i < count1, for j < count0: [start + i*stride1 + j*stride0, + run).
// `start` is a byte address: an offset in a local memory, a host address in GM.
struct Region {
    uint64_t start = 0;
    uint64_t run = 0;
    uint32_t count0 = 1;
    uint32_t count1 = 1;
    int64_t stride0 = 0;
    int64_t stride1 = 0;

    uint64_t Bytes() const { return run * count0 * count1; }
    template <typename Visit>  // visit(uint64_t begin, uint64_t bytes)
    void ForEachRun(Visit&& visit) const {
        for (uint32_t i = 0; i < count1; ++i)
            for (uint32_t j = 0; j < count0; ++j)
                visit(start + uint64_t(int64_t(i) * stride1 + int64_t(j) * stride0), run);
    }
    // Folds levels that are contiguous into longer runs, so that the common case is one run.
    Region Normalized() const;
};

// The rules a kernel can break. RuleName() gives the id users see and may ignore by name, e.g. "uninitialized-read".
enum class Rule : uint8_t {
    Alignment,           // operand address or length is not a multiple of what the unit needs
    OutOfRange,          // operand reaches outside the tensor (buffer) it came from, or outside the local memory
    GmOutOfBounds,       // GM access outside the tensors given to the launch
    LocalMemoryOverflow, // InitBuffer plan larger than the memory
    UninitializedRead,   // bytes never written are read
    RepeatLimit,         // repeatTime outside 0..255, blockCount, blockLen
    StrideLimit,         // stride does not fit its field
    MaskLimit,           // mask longer than a repeat has lanes, or empty bit mask
    Dtype,               // type or round mode not supported by the instruction on this SoC
    Overlap,             // dst and src partly overlap, or dst of a repeat feeds a later one
    Argument,            // any other illegal argument of an API
    QueueState,          // queue misuse: double free, wrong queue, EnQue without Alloc, DeQue of empty, depth exceeded
    QueueLeak,           // tensor still allocated or enqueued when the kernel ends
    EventFlag,           // SetFlag on a set flag, WaitFlag that can never be met, flag left set, ids exhausted
    Hazard,              // conflicting accesses that nothing orders
    CoreConflict,        // two cores touch the same GM bytes, one writing, with no SyncAll between
    Deadlock,            // SyncAll or cross-core wait that can never be met
    PipeLegality,        // pipe, event or memory not available on this core
    TilingKey,           // no branch of the kernel takes the tiling key
    MemoryFault,         // the kernel's own scalar code touched unmapped memory, or divided by zero
    KernelCrash,         // the kernel threw, called abort() or exit(), or ran out of stack
    Timeout,             // the launch exceeded its limit of time, or of memory for its record
    kCount
};
const char* RuleName(Rule rule);
const char* RuleSummary(Rule rule);  // one sentence: what the device would do

// How long an instruction occupies its pipe is computed by the core from the SoC table; the API names the class only.
enum class Cost : uint8_t {
    Scalar,          // work: scalar operations
    VectorSimple,    // work: 256-byte repeats. Add, Mul, Duplicate, Brcb, Compare, Select ...
    VectorExp,       // work: repeats. Exp, Ln, Sqrt, Div
    VectorMulAdd,    // work: repeats. MulAddDst
    VectorCast,      // work: repeats of the wider type
    VectorCast64,    // work: repeats, one side 64-bit
    VectorWholeReduce,  // work: repeats. WholeReduceSum/Max/Min
    VectorBlockReduce16,// work: repeats. BlockReduce* on 16-bit types
    VectorGather,    // work: elements
    VectorGatherBlock,  // work: elements
    VectorSort,      // work: elements
    VectorFunction,  // work: cycles, already summed by the vector function
    UbCopy,          // work: bytes, UB -> UB on V
    GmToLocal,       // work: bytes, plus latency
    LocalToGm,       // work: bytes, plus latency
    L1ToL0A,         // work: bytes
    L1ToL0B,         // work: bytes
    L1ToTable,       // work: bytes, L1 -> BT or FB
    Mmad,            // work: cycles of the cube array, already summed
    L0cToGm,         // work: bytes, plus latency
    L0cToL1,         // work: bytes
    Sync,            // work: ignored
};

}  // namespace sim
