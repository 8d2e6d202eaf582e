// The chip's L2 and the bandwidth behind it, as the transfers of a launch meet them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/core/types.h"

namespace sim {

// Lines of 512 bytes in 32-byte sectors, empty when the launch begins. A line that comes in stays until as many bytes as L2 has have
// come in after it. Written sectors stay in L2 and are counted once against HBM, as if written back at once.
class L2 {
public:
    explicit L2(uint64_t capacity) : capacityLines_(capacity / kLine) {}

    // A transfer: Begin, its regions, End. Read and Write return the bytes that HBM has to deliver or to take.
    void Begin() { there_ = 0; }
    uint64_t Read(const Region& region) { return Touch(region, &Line::valid); }
    uint64_t Write(const Region& region) { return Touch(region, &Line::dirty); }
    double There() const { return there_; }         // when all that others bring in, and it reads from L2, has arrived
    void End(double time) { ends_.push_back(time); }

private:
    static constexpr uint64_t kLine = 512, kSector = 32, kPageLines = 2048;
    struct Line {
        uint64_t came = 0;                  // number of the fill that brought it, 0: never
        uint32_t transfer = 0;              // the last that brought some of it
        uint16_t valid = 0, dirty = 0;      // a bit per sector
    };
    using Page = std::array<Line, kPageLines>;
    uint64_t Touch(const Region& region, uint16_t Line::*wanted);
    Line& LineAt(uint64_t number);

    const uint64_t capacityLines_;
    uint64_t fills_ = 0;
    double there_ = 0;
    std::vector<double> ends_;              // of transfers
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
    uint64_t lastNumber_ = UINT64_MAX;
    Page* last_ = nullptr;
};

// Bytes per cycle that all transfers share, first come first served within windows of time.
class Bandwidth {
public:
    explicit Bandwidth(double bytesPerCycle) : bytesPerCycle_(bytesPerCycle) {}   // 0: without bound
    // When `bytes` that move from `start` on, at most at `rate`, have passed.
    double Take(double start, double bytes, double rate);

private:
    static constexpr double kWindow = 256;   // cycles
    const double bytesPerCycle_;
    std::vector<double> left_;               // bytes, by window
};

}  // namespace sim
