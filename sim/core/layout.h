// Who runs a launch: `blocks` blocks, each of `cube` AIC and `vector` AIV cores, numbered block by block, AIC first.
#pragma once

#include <cstdint>
#include <string>

#include "sim/core/types.h"

namespace sim {

struct Layout {
    uint32_t blocks = 1, cube = 0, vector = 1;

    uint32_t PerBlock() const { return cube + vector; }
    uint32_t Count() const { return blocks * PerBlock(); }
    bool Mixed() const { return cube > 0 && vector > 0; }
    uint32_t BlockOf(uint32_t core) const { return core / PerBlock(); }
    bool IsCube(uint32_t core) const { return core % PerBlock() < cube; }
    uint32_t SubBlockOf(uint32_t core) const { return IsCube(core) ? 0 : core % PerBlock() - cube; }
    uint32_t CubeOf(uint32_t block) const { return block * PerBlock(); }
    uint32_t VectorOf(uint32_t block, uint32_t subBlock) const { return block * PerBlock() + cube + subBlock; }
    // GetBlockIdx: blocks count AIC cores on an AIC, AIV cores on an AIV (facts 3.1).
    uint32_t BlockIdx(uint32_t core) const {
        return IsCube(core) ? BlockOf(core) : BlockOf(core) * vector + SubBlockOf(core);
    }
    std::string Name(uint32_t core) const {
        return (IsCube(core) ? "AIC " : cube > 0 ? "AIV " : "core ") + std::to_string(BlockIdx(core));
    }
};

// Kernel types by the codes of the device's KernelMetaType.
enum class KernelType : int { Undeclared = -1, AivOnly, AicOnly, MixAiv10, MixAic10, MixAic11, MixAic12 };

struct Declared {
    KernelType type = KernelType::Undeclared;
    bool ofKey = false;   // by KERNEL_TASK_TYPE of the launch's tiling key, not by KERNEL_TASK_TYPE_DEFAULT
};

inline Layout LayoutOf(KernelType type, uint32_t blocks) {
    switch (type) {
        case KernelType::AicOnly:
        case KernelType::MixAic10: return {blocks, 1, 0};
        case KernelType::MixAic11: return {blocks, 1, 1};
        case KernelType::MixAic12: return {blocks, 1, 2};
        default: return {blocks, 0, 1};
    }
}

}  // namespace sim
