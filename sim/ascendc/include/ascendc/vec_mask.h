// The vector mask register and its mode, used by calls with isSetMask = false.
#pragma once

#include "ascendc/vec_form.h"

namespace AscendC {

inline void SetMaskNorm() { sim::Core::Current().mask.counter = false; }
inline void SetMaskCount() { sim::Core::Current().mask.counter = true; }
inline void ResetMask() {
    sim::Core& core = sim::Core::Current();
    core.mask.low = core.mask.high = ~0ull;
}

// Normal mode: bits of lanes 64 to 127, then of lanes 0 to 63. Counter mode: the low word is the element count.
template <typename T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(uint64_t maskHigh, uint64_t maskLow) {
    sim::Core& core = sim::Core::Current();
    if constexpr (mode == MaskMode::COUNTER) {
        core.mask.count = maskLow;
    } else {
        core.mask.low = maskLow;
        core.mask.high = maskHigh;
    }
}
// Normal mode: the first `length` lanes. Counter mode: `length` elements.
template <typename T, MaskMode mode = MaskMode::NORMAL>
void SetVectorMask(int64_t length, sim::Location where = sim::Location::Here()) {
    using namespace sim::vec;
    sim::Core& core = sim::Core::Current();
    if constexpr (mode == MaskMode::COUNTER) {
        CheckCount(core, "SetVectorMask", length, where);
        core.mask.count = uint64_t(length);
    } else {
        constexpr int64_t kLanes = kRepeatBytes / (sizeof(T) == 1 ? 2 : sizeof(T));
        if (length < 0 || length > kLanes)
            core.Fail(sim::Rule::MaskLimit, "SetVectorMask", "len",
                      Text("len is %lld, a repeat of this type has %lld lanes", (long long)length, (long long)kLanes), where);
        core.mask.low = PrefixWord(length, 0);
        core.mask.high = PrefixWord(length, 1);
    }
}

}  // namespace AscendC
