// The SoC table. Numbers live in sim/core/soc_table.json (each with its source); a build step turns it into C++.
#pragma once

#include <cstdint>

namespace sim {

struct SocSpec {
    const char* name;        // SKU, e.g. "Ascend910B3"
    const char* family;      // "ascend910b", "ascend910_93" or "ascend950": the name OpDefs and users write
    int npuArch;             // 2201 (membase) or 3510 (regbase): value of __NPU_ARCH__
    uint32_t cubeCores;      // AIC
    uint32_t vectorCores;    // AIV
    uint64_t clockHz;
    uint64_t ubBytes;        // usable by TPipe, also what GetCoreMemSize(UB) answers
    uint64_t l1Bytes, l0aBytes, l0bBytes, l0cBytes, btBytes, fbBytes;
    uint64_t l2Bytes, hbmBytes;
    double hbmBytesPerSecond;        // whole chip
    double gmReadBytesPerCycle;      // one core
    double gmWriteBytesPerCycle;     // one core
    double gmLatencyCycles;          // first byte of a DMA
    double l2BytesPerSecond;         // whole chip, all cores together; 0: not stated, without bound
    double l2CubeReadBytesPerCycle, l2VectorReadBytesPerCycle;   // one core, bytes that L2 holds
    double ubCopyBytesPerCycle;
    double launchSeconds;            // fixed cost of a kernel launch
    double issueCycles;              // scalar cycles to issue one instruction
    double vectorStartCycles;        // start-up of a vector instruction that follows a barrier
    double syncCycles;               // SetFlag/WaitFlag pair seen by the waiting pipe
    double syncAllCycles;
    // cycles per unit of work, by Cost
    double scalarCycles, vectorSimple, vectorExp, vectorMulAdd, vectorCast, vectorCast64, vectorWholeReduce,
        vectorBlockReduce16, vectorGather, vectorGatherBlock, vectorSort;
    double cubeFloatK;               // depth of one step of the cube array on float operands
    double cubeStartCycles;          // of Mmad
    double l1ToL0aBytesPerCycle, l1ToL0bBytesPerCycle, l1ToTableBytesPerCycle;   // table: BT and FB
    double l0cToGmBytesPerCycle, l0cToL1BytesPerCycle;
    double crossFlagCycles;          // CrossCoreSetFlag until the waiting core sees it
    bool vectorPipeOrdered;  // V after V on the same UB bytes is ordered by hardware (3510)
};

// All SKUs. `count` receives how many.
const SocSpec* SocTable(int* count);
// By SKU or family name, case-insensitive ("ascend910b" means Ascend910B3); nullptr when unknown.
const SocSpec* FindSoc(const char* name);

}  // namespace sim
