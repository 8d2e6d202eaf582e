// One record per instruction: what every API call builds and hands to the core, which alone checks, times and executes.
#pragma once

#include <vector>

#include "sim/core/types.h"

namespace sim {

// One tensor argument of an instruction.
struct Operand {
    const char* name = "";        // the API's own parameter name: "dst", "src0", "srcLocal" ...
    Access access = Access::Read;
    Memory memory = Memory::UB;
    uint16_t alignment = 32;      // bytes; required of the start address of each region
    uint64_t low = 0;             // extent of the tensor the operand came from, [low, high) in byte addresses.
    uint64_t high = 0;            // GM: `low` is any address inside the tensor (the base given to SetGlobalBuffer), high = 0
                                  // unless SetGlobalBuffer was given a size; the core looks the registered tensor up by `low`.
    Region region;                // the bytes touched; the only region in almost all cases
    std::vector<Region> more;     // further regions of irregular masks
    bool mayBeUnwritten = false;  // read for bytes that are only moved on: the API hands their state on with MarkUnwritten
};

struct Instruction {
    const char* name = "";        // API name as the kernel wrote it
    Pipe pipe = Pipe::V;
    Cost cost = Cost::VectorSimple;
    uint64_t work = 0;            // unit given by `cost`
    Location where;
    std::vector<Operand> operands;   // Add{dst, src0, src1}
    const char* note = nullptr;      // extra text for the trace
    bool selfOrdered = true;         // false: not ordered after earlier ones of its pipe even where the pipe is in order
};

// Type-erased body of an instruction that adversarial execution holds back. Captures must be by value.
struct DeferredBody {
    virtual ~DeferredBody() = default;
    virtual void Run() = 0;
};
template <typename Body>
struct DeferredBodyOf final : DeferredBody {
    explicit DeferredBodyOf(Body body) : body_(static_cast<Body&&>(body)) {}
    void Run() override { body_(); }
    Body body_;
};

}  // namespace sim
