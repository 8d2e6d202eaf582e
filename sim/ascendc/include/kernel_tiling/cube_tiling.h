// TCubeTiling: how a matrix product is cut, the same struct on both sides. op_host/ fills it in (tiling/tiling_api.h), the kernel reads it.
#pragma once


#include <cstdint>

namespace AscendC {
namespace tiling {

// Fields in the order of the device's struct. Sizes are in elements.
struct TCubeTiling {
    int32_t usedCoreNum;
    int32_t M;
    int32_t N;
    int32_t Ka;               // k as A has it, Kb as B has it
    int32_t Kb;
    int32_t singleCoreM;      // what one core computes
    int32_t singleCoreN;
    int32_t singleCoreK;
    int32_t baseM;            // what one Mmad computes: baseM x baseK from L0A, baseK x baseN from L0B, baseM x baseN in L0C
    int32_t baseN;
    int32_t baseK;
    int32_t depthA1;          // base matrices of A that L1 holds, of B depthB1
    int32_t depthB1;
    int32_t stepM;            // base matrices that one copy GM -> L1 brings, along m, n and k
    int32_t stepN;
    int32_t isBias;
    int32_t transLength;      // bytes of UB for layout changes by vector cores
    int32_t iterateOrder;     // 0: m first, 1: n first
    int32_t shareMode;
    int32_t shareL1Size;      // bytes that objects of one kernel share
    int32_t shareL0CSize;
    int32_t shareUbSize;
    int32_t batchM;
    int32_t batchN;
    int32_t singleBatchM;
    int32_t singleBatchN;
    int32_t stepKa;
    int32_t stepKb;
    int32_t depthAL1CacheUB;
    int32_t depthBL1CacheUB;
    int32_t dbL0A;            // 2: two buffers
    int32_t dbL0B;
    int32_t dbL0C;
    int32_t ALayoutInfoB;     // batch layouts
    int32_t ALayoutInfoS;
    int32_t ALayoutInfoN;
    int32_t ALayoutInfoG;
    int32_t ALayoutInfoD;
    int32_t BLayoutInfoB;
    int32_t BLayoutInfoS;
    int32_t BLayoutInfoN;
    int32_t BLayoutInfoG;
    int32_t BLayoutInfoD;
    int32_t CLayoutInfoB;
    int32_t CLayoutInfoS1;
    int32_t CLayoutInfoN;
    int32_t CLayoutInfoG;
    int32_t CLayoutInfoS2;
    int32_t BatchNum;
};

}  // namespace tiling
}  // namespace AscendC
