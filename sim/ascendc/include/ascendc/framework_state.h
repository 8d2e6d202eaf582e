// What the kernel-side headers remember per core: the scalar data cache, DMA loop mode, tiling key branches.
#pragma once

#include "ascendc/params.h"
#include "sim/core/core.h"

namespace sim {

// The scalar unit's data cache: 512 lines of 64 bytes, write-back, not coherent with DMA or other cores. It holds no
// data (GM is read and written directly); it knows which lines the device would see differently.
class DataCache {
public:
    void Read(Core& core, uint64_t address, Location where) {
        Line& line = Fetch(address);
        if (!line.stale) return;
        core.Report(Rule::Hazard, "GetValue", "srcGlobal",
                    "the data cache still holds this 64-byte GM line from before a copy wrote it: the scalar unit reads "
                    "the old value; call DataCacheCleanAndInvalid on it after the copy",
                    where);
        line.stale = false;
    }
    void Write(uint64_t address, Location where) {
        Line& line = Fetch(address);
        line.dirty = true;
        line.where = where;
    }
    void Clean(uint64_t address) {
        for (Line& line : lines_)
            if (line.address == address / kLineBytes) line = {};
    }
    void CleanAll() {
        lines_.clear();
        next_ = 0;
    }
    // A DMA is about to read or write `region` of GM.
    void Copy(Core& core, const char* api, const char* operand, Access access, const Region& region, Location where) {
        uint64_t low = UINT64_MAX, high = 0;
        if (!lines_.empty())
            region.ForEachRun([&](uint64_t begin, uint64_t bytes) {
                low = begin < low ? begin : low;
                high = begin + bytes > high ? begin + bytes : high;
            });
        for (Line& line : lines_) {
            const uint64_t address = line.address * kLineBytes;
            if (address >= high || address + kLineBytes <= low || !Touches(region, address)) continue;
            if (line.dirty) {
                core.Report(Rule::Hazard, api, operand,
                            "SetValue at line " + std::to_string(line.where.line) + " left this 64-byte GM line in the data "
                            "cache: " + (access == Access::Read ? "the copy reads GM's old bytes"
                                                                : "its write-back may overwrite what the copy writes") +
                            "; call DataCacheCleanAndInvalid on it before the copy",
                            where);
                line = {};
            } else if (access != Access::Read) {
                line.stale = true;
            }
        }
    }
    // At the end of the kernel nothing writes the cache back.
    void End(Core& core) {
        for (const Line& line : lines_) {
            if (!line.dirty) continue;
            core.Report(Rule::Hazard, "SetValue", "dstGlobal",
                        "the value is still in the core's data cache when the kernel ends: nobody else sees it; call "
                        "DataCacheCleanAndInvalid on the GlobalTensor",
                        line.where);
            return;
        }
    }

private:
    static constexpr uint64_t kLineBytes = 64;
    static constexpr size_t kLines = 512;
    struct Line {
        uint64_t address = 0;  // byte address / 64; 0: no line
        bool dirty = false, stale = false;
        Location where;
    };
    Line& Fetch(uint64_t address) {
        for (Line& line : lines_)
            if (line.address == address / kLineBytes) return line;
        if (lines_.size() < kLines) lines_.emplace_back();
        Line& line = lines_[next_];
        next_ = (next_ + 1) % kLines;
        line = {address / kLineBytes, false, false, {}};
        return line;
    }
    static bool Touches(const Region& region, uint64_t line) {
        bool touches = false;
        region.ForEachRun([&](uint64_t begin, uint64_t bytes) {
            touches |= begin < line + kLineBytes && line < begin + bytes;
        });
        return touches;
    }
    std::vector<Line> lines_;
    size_t next_ = 0;   // the line to fill next; the oldest when all are in use
};

struct FrameworkState {
    DataCache cache;
    AscendC::LoopModeParams loops[2];  // by DataCopyMVType
    Location tilingKeyAsked;  // last TILING_KEY_IS, line 0: none
    bool tilingKeyTaken = false;
    std::shared_ptr<void> cube;  // what high-level cube objects share (matmul/memory.h)
    bool matmulRegistered = false;   // REGIST_MATMUL_OBJ has run

    static FrameworkState& Current() {
        Core& core = Core::Current();
        if (!core.framework) core.framework = std::make_shared<FrameworkState>();
        return *static_cast<FrameworkState*>(core.framework.get());
    }
};

}  // namespace sim
