#include "sim/core/timeline.h"

namespace sim {
namespace {
// Transfers a DMA engine keeps in flight: short ones are bound by latency / kInFlight. Estimate: double buffering hides it.
constexpr double kInFlight = 2;
constexpr uint32_t kRepeatBytes = 256;
constexpr uint32_t kGatherBytes = 4;    // of one 32-bit element
}  // namespace

Timeline::Timeline(const SocSpec& soc, uint32_t activeCores)
    : soc_(soc), hbmBytesPerCycle_(soc.hbmBytesPerSecond / double(soc.clockHz) / std::max(1u, activeCores)) {
    const auto perWork = [&](Cost cost, double cycles, uint32_t bytes) {
        rate_[int(cost)].cycles = cycles;
        rate_[int(cost)].bytes = bytes;
    };
    perWork(Cost::Scalar, soc.scalarCycles, 0);
    perWork(Cost::VectorSimple, soc.vectorSimple, kRepeatBytes);
    perWork(Cost::VectorExp, soc.vectorExp, kRepeatBytes);
    perWork(Cost::VectorMulAdd, soc.vectorMulAdd, kRepeatBytes);
    perWork(Cost::VectorCast, soc.vectorCast, kRepeatBytes);
    perWork(Cost::VectorCast64, soc.vectorCast64, kRepeatBytes);
    perWork(Cost::VectorWholeReduce, soc.vectorWholeReduce, kRepeatBytes);
    perWork(Cost::VectorBlockReduce16, soc.vectorBlockReduce16, kRepeatBytes);
    perWork(Cost::VectorGather, soc.vectorGather, kGatherBytes);
    perWork(Cost::VectorGatherBlock, soc.vectorGatherBlock, kGatherBytes);
    perWork(Cost::VectorSort, soc.vectorSort, kGatherBytes);
    perWork(Cost::VectorFunction, 1, 0);
    perWork(Cost::UbCopy, 1 / soc.ubCopyBytesPerCycle, 1);
    perWork(Cost::GmToLocal, 1 / std::min(soc.gmReadBytesPerCycle, hbmBytesPerCycle_), 1);
    perWork(Cost::LocalToGm, 1 / std::min(soc.gmWriteBytesPerCycle, hbmBytesPerCycle_), 1);
    for (const Cost cost : {Cost::GmToLocal, Cost::LocalToGm}) {
        rate_[int(cost)].latency = soc.gmLatencyCycles;
        rate_[int(cost)].atLeast = soc.gmLatencyCycles / kInFlight;
    }
}

double Timeline::End() const {
    double end = 0;
    for (int p = 0; p < kPipes; ++p) end = std::max({end, time_[p], done_[p]});
    return end;
}

double Timeline::FinishedAt() const {
    const double bytes = double(stats_[int(Pipe::MTE2)].bytes + stats_[int(Pipe::MTE3)].bytes);
    return std::max(End(), bytes / hbmBytesPerCycle_);
}

}  // namespace sim
