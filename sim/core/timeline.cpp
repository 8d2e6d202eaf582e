#include "sim/core/timeline.h"

namespace sim {
namespace {
// Transfers a DMA engine keeps in flight: short ones are bound by latency / kInFlight. Estimate: double buffering hides it.
constexpr double kInFlight = 2;
constexpr uint32_t kRepeatBytes = 256;
constexpr uint32_t kGatherBytes = 4;    // of one 32-bit element
}  // namespace

Timeline::Timeline(const SocSpec& soc, uint32_t activeBlocks)
    : soc_(soc), hbmBytesPerCycle_(soc.hbmBytesPerSecond / double(soc.clockHz) / std::max(1u, activeBlocks)) {
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
    perWork(Cost::L1ToL0A, 1 / soc.l1ToL0aBytesPerCycle, 1);
    perWork(Cost::L1ToL0B, 1 / soc.l1ToL0bBytesPerCycle, 1);
    perWork(Cost::L1ToTable, 1 / soc.l1ToTableBytesPerCycle, 1);
    perWork(Cost::Mmad, 1, 0);
    perWork(Cost::L0cToGm, 1 / std::min(soc.l0cToGmBytesPerCycle, hbmBytesPerCycle_), 1);
    perWork(Cost::L0cToL1, 1 / soc.l0cToL1BytesPerCycle, 1);
    for (const Cost cost : {Cost::GmToLocal, Cost::LocalToGm, Cost::L0cToGm}) {
        rate_[int(cost)].ofGm = true;
        rate_[int(cost)].latency = soc.gmLatencyCycles;
        rate_[int(cost)].atLeast = soc.gmLatencyCycles / kInFlight;
    }
}

double Timeline::End() const {
    double end = 0;
    for (int p = 0; p < kPipes; ++p) end = std::max({end, time_[p], done_[p]});
    return end;
}

}  // namespace sim
