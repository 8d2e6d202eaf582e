// What describes a matrix product to the high-level object: operand types, configuration.
#pragma once

#include "ascendc/cube_fixpipe.h"
#include "kernel_tiling/kernel_tiling.h"

namespace AscendC {

enum class CubeFormat : uint8_t { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };
enum class LayoutMode : uint8_t { NONE = 0, BSNGD, SBNGD, BNGS1S2, NORMAL };
enum class IterateOrder : uint8_t { ORDER_M = 0, ORDER_N, UNDEF };

// position: GM; VECOUT (UB of the vector core that calls); A1, B1 or TSCM (L1, on the cube core).
// isTrans: the matrix may be given transposed, as [k, m] or [n, k].
template <TPosition position, CubeFormat matrixFormat, typename TYPE, bool isTrans = false, LayoutMode layoutMode = LayoutMode::NONE,
          bool ibShare = false>
struct MatmulType {
    static constexpr TPosition pos = position;
    static constexpr CubeFormat format = matrixFormat;
    using T = TYPE;
    static constexpr bool isTransposable = isTrans;
    static constexpr LayoutMode layout = layoutMode;
    static constexpr bool ibshare = ibShare;
};

struct MatmulConfig {
    bool doNorm = false;              // one base matrix per copy GM -> L1
    bool doMultiDataLoad = false;     // stepM x stepKa and stepN x stepKb base matrices per copy
    bool doIBShareNorm = false;       // vector cores of a block share B: the values and the modelled time are those of doNorm
    bool intrinsicsCheck = false;     // rows in GM of 65536 elements and more
    bool isNBatch = false;
    bool enVecND2NZ = false;          // layout change by the vector core instead of the copy
    bool enUnitFlag = false;
    IterateOrder iterateOrder = IterateOrder::UNDEF;   // else the tiling's
};

constexpr MatmulConfig GetNormalConfig(bool intrinsicsLimit = false, bool batchLoop = false, bool isVecND2NZ = false) {
    MatmulConfig config;
    config.doNorm = true;
    config.intrinsicsCheck = intrinsicsLimit;
    config.isNBatch = batchLoop;
    config.enVecND2NZ = isVecND2NZ;
    return config;
}
constexpr MatmulConfig GetMDLConfig(bool intrinsicsLimit = false, bool batchLoop = false, uint32_t mte2Preload = 0,
                                    bool isVecND2NZ = false) {
    MatmulConfig config;
    config.doMultiDataLoad = true;
    config.intrinsicsCheck = intrinsicsLimit;
    config.isNBatch = batchLoop;
    config.enVecND2NZ = isVecND2NZ;
    (void)mte2Preload;   // copies are ahead of the products as far as the buffers allow
    return config;
}
constexpr MatmulConfig GetIBShareNormConfig(bool intrinsicsLimit = false) {
    MatmulConfig config = GetNormalConfig(intrinsicsLimit);
    config.doIBShareNorm = true;
    return config;
}
inline constexpr MatmulConfig CFG_NORM = GetNormalConfig();
inline constexpr MatmulConfig CFG_MDL = GetMDLConfig();
inline constexpr MatmulConfig CFG_IBSHARE_NORM = GetIBShareNormConfig();
inline constexpr MatmulConfig MM_CFG_INTRINSICS_CHECK = GetNormalConfig(true);

}  // namespace AscendC

namespace sim::matmul {

using AscendC::CubeFormat;
using AscendC::GlobalTensor;
using AscendC::LocalTensor;
using AscendC::MatmulConfig;
using AscendC::tiling::TCubeTiling;
using AscendC::TPosition;
using cube::CeilDiv;
using cube::kFractal;
using cube::kRow;
using cube::kRows;

constexpr int64_t AlignUp(int64_t value, int64_t unit) { return CeilDiv(value, unit) * unit; }
template <typename T> inline constexpr int64_t kC0 = kRow / int64_t(sizeof(T));
// What Mmad adds up in.
template <typename T> using Sum = std::conditional_t<std::is_same_v<T, int8_t>, int32_t, float>;

[[noreturn]] inline void Refuse(Rule rule, const char* call, const char* argument, const std::string& message, Location where) {
    Core::Current().Fail(rule, call, argument, message, where);
}

}  // namespace sim::matmul
