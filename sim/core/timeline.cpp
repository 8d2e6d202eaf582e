#include "sim/core/timeline.h"

namespace sim {
namespace {
constexpr uint32_t kRepeatBytes = 256;
constexpr uint32_t kGatherBytes = 4;    // of one 32-bit element
}  // namespace

CostTable::CostTable(const SocSpec& soc, uint32_t activeBlocks) {
    const double hbmShare = soc.hbmBytesPerSecond / double(soc.clockHz) / std::max(1u, activeBlocks);
    const auto perWork = [&](Cost cost, double cycles, uint32_t bytes) {
        rates_[int(cost)].cycles = cycles;
        rates_[int(cost)].bytes = bytes;
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
    perWork(Cost::GmToLocal, 1 / std::min(soc.gmReadBytesPerCycle, hbmShare), 1);
    perWork(Cost::LocalToGm, 1 / std::min(soc.gmWriteBytesPerCycle, hbmShare), 1);
    perWork(Cost::L1ToL0A, 1 / soc.l1ToL0aBytesPerCycle, 1);
    perWork(Cost::L1ToL0B, 1 / soc.l1ToL0bBytesPerCycle, 1);
    perWork(Cost::L1ToTable, 1 / soc.l1ToTableBytesPerCycle, 1);
    perWork(Cost::Mmad, 1, 0);
    perWork(Cost::L0cToGm, 1 / std::min(soc.l0cToGmBytesPerCycle, hbmShare), 1);
    perWork(Cost::L0cToL1, 1 / soc.l0cToL1BytesPerCycle, 1);
    for (const Cost cost : {Cost::GmToLocal, Cost::LocalToGm, Cost::L0cToGm}) {
        rates_[int(cost)].ofGm = true;
        rates_[int(cost)].latency = soc.gmLatencyCycles;
        rates_[int(cost)].atLeast = soc.gmLatencyCycles / kTransfersInFlight;
    }
}

Step& Timeline::OpenRun(Pipe pipe) {
    if (oneStepEach_ || log_.steps.empty() || log_.steps.back().kind != Step::Kind::Run || log_.steps.back().pipe != pipe)
        log_.steps.push_back({Step::Kind::Run, pipe});
    return log_.steps.back();
}

void Timeline::Run(Pipe pipe, double cycles, double startUp) {
    if (oneStepEach_ && startUp > 0) {   // no part of the instruction's own time
        log_.steps.push_back({Step::Kind::Run, pipe, pipe, 0, startUp, soc_.issueCycles + startUp});
        clocks_.Occupy(pipe, 0, startUp, soc_.issueCycles + startUp);
        startUp = 0;
    }
    Step& run = OpenRun(pipe);
    ++run.index;
    run.sum += startUp + cycles;
    run.lead = std::max(run.lead, run.index * soc_.issueCycles) + startUp + cycles;
    clocks_.Occupy(pipe, clocks_.Start(pipe) + startUp + cycles, 0);
}

uint64_t Timeline::Issue(const Instruction& instruction) {
    const Pipe pipe = instruction.pipe;
    const CostRate& rate = costs_[instruction.cost];
    PipeStats& stats = stats_[int(pipe)];
    const uint64_t bytes = instruction.work * rate.bytes;
    ++stats.instructions;
    stats.bytes += bytes;
    const double cycles = std::max(double(instruction.work) * rate.cycles, rate.atLeast);
    if (!rate.ofGm) {
        const bool starts = pipe == Pipe::V && vectorDrained_;
        if (starts) vectorDrained_ = false;
        stats.busyCycles += cycles;
        Run(pipe, cycles, starts ? soc_.vectorStartCycles : 0);
        return bytes;
    }
    gmBytes_ += bytes;
    Transfer transfer{instruction.cost, bytes, uint32_t(log_.regions.size()), 0};
    for (const Operand& operand : instruction.operands) {
        if (operand.memory != Memory::GM) continue;
        log_.regions.push_back(operand.region.Normalized());
        for (const Region& region : operand.more) log_.regions.push_back(region.Normalized());
    }
    transfer.regions = uint32_t(log_.regions.size()) - transfer.firstRegion;
    log_.steps.push_back({Step::Kind::Transfer, pipe, pipe, uint32_t(log_.transfers.size())});
    log_.transfers.push_back(transfer);
    clocks_.Occupy(pipe, clocks_.Start(pipe) + cycles, rate.latency);
    return bytes;
}

// Results of V, M and MTE1 are there when the pipe is free: the barrier is one more thing to issue.
void Timeline::Barrier(Pipe pipe) {
    if (pipe == Pipe::V || pipe == Pipe::M || pipe == Pipe::MTE1) ++OpenRun(pipe).index;
    else log_.steps.push_back({Step::Kind::Barrier, pipe});
    clocks_.Barrier(pipe);
    Drained(pipe);
}

}  // namespace sim
