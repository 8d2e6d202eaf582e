// Matmul objects whose tiling and calls the test varies: as they stand in the test they are silent, with a value changed they are refused.
#include "matmul_rule.h"

extern "C" __global__ __aicore__ void tiling_of_a_cube_core(GM_ADDR x, GM_ADDR y, int64_t M, int64_t singleCoreM, int64_t baseM,
                                                            int64_t baseN, int64_t baseK, int64_t depthA1, int64_t depthB1, int64_t stepM,
                                                            int64_t stepN, int64_t dbL0A, int64_t dbL0B, int64_t dbL0C,
                                                            int64_t iterateOrder, int64_t isBias) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    TCubeTiling t = Tiling();
    t.M = M, t.singleCoreM = singleCoreM, t.baseM = baseM, t.baseN = baseN, t.baseK = baseK;
    t.depthA1 = depthA1, t.depthB1 = depthB1, t.stepM = stepM, t.stepN = stepN;
    t.dbL0A = dbL0A, t.dbL0B = dbL0B, t.dbL0C = dbL0C, t.iterateOrder = iterateOrder, t.isBias = isBias;
    TPipe pipe;
    OnCube mm;
    mm.Init(&t, &pipe);
    Give(mm, x);
    mm.IterateAll(Gm(y));
    mm.End();
}

extern "C" __global__ __aicore__ void calls_on_a_cube_core(GM_ADDR x, GM_ADDR y, int64_t hasTiling, int64_t hasB, int64_t hasBias,
                                                           int64_t orgKa, int64_t orgN, int64_t singleN, int64_t singleK, int64_t aInL0A,
                                                           int64_t biasInL1, int64_t resultInL1) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling t = Tiling();
    TPipe pipe;
    TBuf<TPosition::A2> l0a;
    TBuf<TPosition::A1> l1;
    pipe.InitBuffer(l0a, kMatrix * sizeof(float));
    pipe.InitBuffer(l1, kMatrix * sizeof(float));
    OnCube mm;
    mm.Init(hasTiling != 0 ? &t : nullptr, &pipe);
    mm.SetOrgShape(kSide, orgN, orgKa, kSide);
    mm.SetSingleShape(kSide, singleN, singleK);
    if (aInL0A != 0) mm.SetTensorA(l0a.Get<float>());
    else mm.SetTensorA(Gm(x));
    if (hasB != 0) mm.SetTensorB(Gm(x)[kMatrix]);
    if (hasBias != 0) mm.SetBias(Gm(x));
    if (biasInL1 != 0) mm.SetBias(l1.Get<float>());
    mm.Iterate();
    if (resultInL1 != 0) mm.GetTensorC(l1.Get<float>());
    else mm.GetTensorC(Gm(y));
    mm.End();
}

// A in L1, where it is NZ.
template <typename A>
void FromL1(GM_ADDR x, GM_ADDR y, bool transposed) {
    const TCubeTiling t = Tiling();
    TPipe pipe;
    TBuf<TPosition::A1> l1;
    pipe.InitBuffer(l1, kMatrix * sizeof(float));
    DataCopy(l1.Get<float>(), Gm(x), Nd2NzParams(1, kSide, kSide, 0, kSide, kSide, 1, 0));
    PipeBarrier<PIPE_ALL>();
    MatmulImpl<A, Plain, Plain> mm;
    mm.Init(&t, &pipe);
    mm.SetTensorA(l1.Get<float>(), transposed);
    mm.SetTensorB(Gm(x)[kMatrix]);
    mm.IterateAll(Gm(y));
    mm.End();
}
extern "C" __global__ __aicore__ void a_in_l1(GM_ADDR x, GM_ADDR y, int64_t nz, int64_t transposed) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    if (nz != 0) FromL1<MatmulType<TPosition::A1, CubeFormat::NZ, float, true>>(x, y, transposed != 0);
    else FromL1<MatmulType<TPosition::A1, CubeFormat::ND, float>>(x, y, false);
}

extern "C" __global__ __aicore__ void result_of_bytes(GM_ADDR x, GM_ADDR y, int64_t scaled) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    using Half = MatmulType<TPosition::GM, CubeFormat::ND, half>;
    const TCubeTiling t = Tiling();
    GlobalTensor<half> in;
    GlobalTensor<int8_t> out;
    in.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x));
    out.SetGlobalBuffer(reinterpret_cast<__gm__ int8_t*>(y));
    TPipe pipe;
    MatmulImpl<Half, Half, MatmulType<TPosition::GM, CubeFormat::ND, int8_t>> mm;
    mm.Init(&t, &pipe);
    if (scaled != 0) mm.SetQuantScalar(0x3f800000);   // 1.0f
    mm.SetTensorA(in);
    mm.SetTensorB(in);
    mm.IterateAll(out);
    mm.End();
}

extern "C" __global__ __aicore__ void result_after_another_object(GM_ADDR x, GM_ADDR y, int64_t interleaved) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    const TCubeTiling t = Tiling();
    TPipe pipe;
    OnCube one, other;
    one.Init(&t, &pipe);
    other.Init(&t, &pipe);
    Give(one, x);
    Give(other, x);
    one.Iterate();
    if (interleaved != 0) other.Iterate();
    one.GetTensorC(Gm(y));
    one.End();
    other.End();
}

// y has the results until they are fetched into UB.
extern "C" __global__ __aicore__ void calls_of_a_vector_core(GM_ADDR x, GM_ADDR y, int64_t hasTiling, int64_t initOnCube, int64_t singleN,
                                                             int64_t singleK, int64_t hasWorkspace, int64_t ahead, int64_t partialSum,
                                                             int64_t fetchToGm, int64_t atomic) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    TCubeTiling t = Tiling();
    t.singleCoreN = t.baseN = singleN;
    t.singleCoreK = singleK;
    TPipe pipe;
    Matmul<Plain, Plain, Plain> mm;
    if (initOnCube != 0) mm.Init(&t);
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    if (hasTiling == 0) mm.Init(nullptr);
    TBuf<> a, c;
    pipe.InitBuffer(a, kMatrix * sizeof(float));
    pipe.InitBuffer(c, kMatrix * sizeof(float));
    Load(a.Get<float>(), x, kMatrix);
    PipeBarrier<PIPE_ALL>();
    mm.SetTensorA(a.Get<float>());
    mm.SetTensorB(Gm(x)[kMatrix]);
    if (hasWorkspace != 0) mm.SetWorkspace(Gm(y));
    if (ahead != 0) mm.Iterate<false>(partialSum != 0);
    else mm.Iterate();
    if (fetchToGm != 0) mm.GetTensorC<false>(Gm(y));
    else mm.GetTensorC<false>(c.Get<float>(), atomic);
    mm.End();
}

extern "C" __global__ __aicore__ void wait_for_all(GM_ADDR x, GM_ADDR y, int64_t announced) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    const TCubeTiling t = Tiling();
    TPipe pipe;
    Matmul<Plain, Plain, Plain> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    Give(mm, x);
    mm.IterateAll<false>(Gm(y), 0, false, announced != 0);
    mm.WaitIterateAll();
    mm.End();
}
