#include "sim/core/types.h"

namespace sim {
namespace {

struct RuleText {
    const char* name;
    const char* summary;  // what the device would do
};

// In the order of sim::Rule.
constexpr RuleText kRules[] = {
    {"alignment", "The unit drops the low address bits or raises an exception."},
    {"out-of-range", "The instruction touches bytes of another buffer."},
    {"gm-out-of-bounds", "The copy reads or overwrites memory of another tensor, or the device raises an address error."},
    {"local-memory-overflow", "Buffers past the end of the memory wrap or fault; the device does not check InitBuffer."},
    {"uninitialized-read", "The result depends on what an earlier kernel left in the memory."},
    {"repeat-limit", "The count is truncated to its bit field and the instruction does less than was asked."},
    {"stride-limit", "The stride is truncated to its bit field and the instruction walks over other addresses."},
    {"mask-limit", "Lanes outside the register are dropped, or no lane is computed at all."},
    {"dtype", "The instruction does not exist for this type on this chip."},
    {"overlap", "Lanes are read after they were overwritten, in an order the chip does not define."},
    {"argument", "The instruction is not defined for this argument."},
    {"queue-state", "The queue hands out a wrong buffer or waits for ever."},
    {"queue-leak", "The next AllocTensor or the next kernel waits for a buffer or event that never comes back."},
    {"event-flag", "The pipe waits for ever, or a later wait is met too early."},
    {"hazard", "The two accesses run at the same time and the result depends on timing."},
    {"core-conflict", "The result depends on which core comes first."},
    {"deadlock", "The launch never ends."},
    {"pipe-legality", "This core has no such pipe or memory: the instruction is ignored or raises an exception."},
    {"tiling-key", "The kernel does nothing and the outputs keep what was in memory."},
    {"memory-fault", "The scalar unit raises an address error, or computes with garbage."},
    {"kernel-crash", "The device has no exceptions and no process to leave: the core hangs or computes with garbage."},
    {"timeout", "The launch is killed by the watchdog."},
};
static_assert(sizeof kRules / sizeof *kRules == int(Rule::kCount), "one entry per rule");

constexpr const char* kPipeNames[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};
static_assert(sizeof kPipeNames / sizeof *kPipeNames == kPipes, "one name per pipe");
constexpr const char* kMemoryNames[] = {"GM", "UB", "L1", "L0A", "L0B", "L0C", "BT", "FB"};
static_assert(sizeof kMemoryNames / sizeof *kMemoryNames == kMemories, "one name per memory");

}  // namespace

const char* PipeName(Pipe pipe) { return kPipeNames[int(pipe)]; }
const char* MemoryName(Memory memory) { return kMemoryNames[int(memory)]; }
const char* RuleName(Rule rule) { return kRules[int(rule)].name; }
const char* RuleSummary(Rule rule) { return kRules[int(rule)].summary; }

Region Region::Normalized() const {
    Region folded = *this;
    if (Bytes() == 0) return Region{start, 0, 1, 1, 0, 0};
    if (folded.count0 > 1 && folded.stride0 == int64_t(folded.run)) {
        folded.run *= folded.count0;
        folded.count0 = 1;
    }
    if (folded.count0 == 1) {  // the outer level takes the place of the inner one
        folded.count0 = folded.count1;
        folded.stride0 = folded.stride1;
        folded.count1 = 1;
        if (folded.count0 > 1 && folded.stride0 == int64_t(folded.run)) {
            folded.run *= folded.count0;
            folded.count0 = 1;
        }
    } else if (folded.count1 > 1 && folded.stride1 == int64_t(folded.count0) * folded.stride0) {
        // Both levels walk with one stride. count0 * count1 fits: local memories have less than 2^20 bytes and a DMA at most
        // 4095 blocks of 65535 elements.
        folded.count0 *= folded.count1;
        folded.count1 = 1;
    }
    if (folded.count0 == 1) folded.stride0 = 0;
    if (folded.count1 == 1) folded.stride1 = 0;
    return folded;
}

}  // namespace sim
