// c = a x b^T, float sums of a and b in float, half or bfloat16; one block of c per cube core.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

#include "matmul_plain_tiling_data.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void matmul_plain(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    REGISTER_TILING_DEFAULT(MatmulPlainTilingData);
    GET_TILING_DATA(data, tiling);
    const TCubeTiling& t = data.cube;
    TPipe pipe;
    Matmul<MatmulType<TPosition::GM, CubeFormat::ND, DTYPE_A>, MatmulType<TPosition::GM, CubeFormat::ND, DTYPE_B, true>,
           MatmulType<TPosition::GM, CubeFormat::ND, float>, MatmulType<TPosition::GM, CubeFormat::ND, float>, CFG_MDL> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &data.cube);
    const uint32_t m0 = GetBlockIdx() % data.mCores * t.singleCoreM, n0 = GetBlockIdx() / data.mCores * t.singleCoreN;
    GlobalTensor<DTYPE_A> gmA;
    GlobalTensor<DTYPE_B> gmB;
    GlobalTensor<float> gmC;
    gmA.SetGlobalBuffer(reinterpret_cast<__gm__ DTYPE_A*>(a));
    gmB.SetGlobalBuffer(reinterpret_cast<__gm__ DTYPE_B*>(b));
    gmC.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(c));
    mm.SetTensorA(gmA[uint64_t(m0) * t.Ka]);
    mm.SetTensorB(gmB[uint64_t(n0) * t.Kb], true);
    mm.SetTail(t.M - m0 < uint32_t(t.singleCoreM) ? t.M - m0 : t.singleCoreM,
               t.N - n0 < uint32_t(t.singleCoreN) ? t.N - n0 : t.singleCoreN);
    mm.IterateAll(gmC[uint64_t(m0) * t.N + n0]);
    mm.End();
}
