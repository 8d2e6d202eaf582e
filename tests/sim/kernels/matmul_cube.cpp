// c = a x b (+ bias) by the high-level object on cube cores alone, the blocks of C spread over the cores by the tiling's singleCoreM and
// singleCoreN as public kernels do it. Types, formats and transposition come from the command line.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

#ifndef CONFIG
#define CONFIG CFG_NORM
#endif

using AType = MatmulType<TPosition::GM, CubeFormat::A_FORMAT, A_TYPE, A_TRANS>;
using BType = MatmulType<TPosition::GM, CubeFormat::B_FORMAT, B_TYPE, B_TRANS>;
using CType = MatmulType<TPosition::GM, CubeFormat::C_FORMAT, C_TYPE>;
using BiasType = MatmulType<TPosition::GM, CubeFormat::ND, BIAS_TYPE>;

struct Options {
    uint32_t withBias, hf32, stepwise, sequential, atomic;
    float scale;
    uint32_t sizeA, sizeB, sizeC;   // elements
};

template <typename T>
__aicore__ inline GlobalTensor<T> Whole(GM_ADDR address, uint64_t elements) {
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address), elements);
    return tensor;
}

extern "C" __global__ __aicore__ void product(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR tiling, Options options) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TCubeTiling, t, tiling);
    TPipe pipe;
    Matmul<AType, BType, CType, BiasType, CONFIG> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    const uint32_t mCores = (t.M + t.singleCoreM - 1) / t.singleCoreM, block = GetBlockIdx();
    const uint32_t m0 = block % mCores * t.singleCoreM, n0 = block / mCores * t.singleCoreN;
    if (n0 >= uint32_t(t.N)) return;
    const uint32_t m = t.M - m0 < uint32_t(t.singleCoreM) ? t.M - m0 : t.singleCoreM;
    const uint32_t n = t.N - n0 < uint32_t(t.singleCoreN) ? t.N - n0 : t.singleCoreN;
    // Where rows m0.. of A and columns n0.. of B and C begin. NZ: [columns / C0][rows to 16][C0].
    constexpr uint32_t kC0 = 32 / sizeof(A_TYPE), kWidthC = sizeof(C_TYPE) == 1 ? 32 : 16;
    const uint32_t k16 = (t.Ka + 15) / 16 * 16, m16 = (t.M + 15) / 16 * 16;
    const bool nzA = AType::format == CubeFormat::NZ, nzB = BType::format == CubeFormat::NZ, nzC = CType::format == CubeFormat::NZ;
    const uint64_t atA = nzA ? (A_TRANS ? m0 * k16 : m0 * kC0) : (A_TRANS ? m0 : uint64_t(m0) * t.Ka);
    const uint64_t atB = nzB ? (B_TRANS ? n0 * kC0 : n0 * k16) : (B_TRANS ? uint64_t(n0) * t.Kb : n0);
    const uint64_t atC = nzC ? n0 / kWidthC * m16 * kWidthC + m0 * kWidthC : uint64_t(m0) * t.N + n0;
    const auto gmA = Whole<A_TYPE>(a, options.sizeA), gmB = Whole<B_TYPE>(b, options.sizeB);
    const auto gmC = Whole<C_TYPE>(c, options.sizeC);
    mm.SetOrgShape(t.M, t.N, t.Ka);
    mm.SetTensorA(gmA[atA], A_TRANS);
    mm.SetTensorB(gmB[atB], B_TRANS);
    mm.SetTail(m, n, t.Ka);
    mm.SetHF32(options.hf32 != 0);
    uint32_t scaleBits;
    memcpy(&scaleBits, &options.scale, sizeof scaleBits);
    if (options.scale != 0) mm.SetQuantScalar(scaleBits);
    if (options.withBias != 0) mm.SetBias(Whole<BIAS_TYPE>(bias, t.N)[n0]);
    else mm.ClearBias();
    if (options.stepwise != 0) {
        uint32_t at = 0;
        while (mm.Iterate()) {
            const uint64_t place = options.sequential != 0 ? uint64_t(at++) * t.baseM * t.baseN : atC;
            mm.GetTensorC(gmC[place], options.atomic, options.sequential != 0);
        }
    } else {
        mm.IterateAll(gmC[atC], options.atomic);
    }
    mm.End();
}
