// The object in kernels of both kinds of core: vector cores call it, and work on what comes back.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

using Half = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using HalfUb = MatmulType<TPosition::VECOUT, CubeFormat::ND, half>;
using Float = MatmulType<TPosition::GM, CubeFormat::ND, float>;
using FloatUb = MatmulType<TPosition::VECIN, CubeFormat::ND, float>;

template <typename T>
__aicore__ inline GlobalTensor<T> Gm(GM_ADDR address, uint64_t elements) {
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address), elements);
    return tensor;
}

// The block of C that this vector core computes.
struct Block {
    uint32_t m0, n0, m, n;
    bool any;
    __aicore__ inline explicit Block(const TCubeTiling& t) {
        const uint32_t mCores = (t.M + t.singleCoreM - 1) / t.singleCoreM, index = GetBlockIdx();
        m0 = index % mCores * t.singleCoreM, n0 = index / mCores * t.singleCoreN;
        any = n0 < uint32_t(t.N);
        m = any && t.M - m0 < uint32_t(t.singleCoreM) ? t.M - m0 : t.singleCoreM;
        n = any && t.N - n0 < uint32_t(t.singleCoreN) ? t.N - n0 : t.singleCoreN;
    }
};

template <typename Object>
__aicore__ inline void Describe(Object& mm, const TCubeTiling& t, const Block& block, GM_ADDR a, GM_ADDR b, GM_ADDR bias) {
    mm.SetOrgShape(t.M, t.N, t.Ka);
    mm.SetTensorA(Gm<half>(a, uint64_t(t.M) * t.Ka)[block.m0 * t.Ka]);
    mm.SetTensorB(Gm<half>(b, uint64_t(t.Kb) * t.N)[block.n0]);
    mm.SetBias(Gm<float>(bias, t.N)[block.n0]);
    mm.SetSingleShape(block.m, block.n, t.Ka);
}

// c = leaky_relu(a x b + bias), one base matrix at a time through UB.
template <bool sync>
__aicore__ inline void LeakyProduct(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(TCubeTiling, t, tiling);
    TPipe pipe;
    Matmul<Half, Half, FloatUb, Float> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    const Block block(t);
    if (!block.any) return;
    TQue<TPosition::VECOUT, 1> out;
    pipe.InitBuffer(out, 2, t.baseM * t.baseN * sizeof(float));
    const auto gm = Gm<float>(c, uint64_t(t.M) * t.N);
    Describe(mm, t, block, a, b, bias);
    const uint32_t mBlocks = (block.m + t.baseM - 1) / t.baseM;
    if (!sync) {   // whole base matrices, one after the other
        const uint32_t own = (t.singleCoreM + t.baseM - 1) / t.baseM * t.baseM * ((t.singleCoreN + t.baseN - 1) / t.baseN * t.baseN);
        mm.SetWorkspace(Gm<float>(GetUserWorkspace(workspace), GetBlockNum() * GetTaskRatio() * own)[GetBlockIdx() * own]);
    }
    for (uint32_t at = 0; mm.template Iterate<sync>(); ++at) {
        LocalTensor<float> local = out.AllocTensor<float>();
        mm.template GetTensorC<sync>(local, 0, true);
        const uint32_t m1 = at % mBlocks * t.baseM, n1 = at / mBlocks * t.baseN;
        const uint32_t rows = block.m - m1 < uint32_t(t.baseM) ? block.m - m1 : t.baseM;
        const uint32_t columns = block.n - n1 < uint32_t(t.baseN) ? block.n - n1 : t.baseN;
        for (uint32_t r = 0; r < rows; ++r) LeakyRelu(local[r * t.baseN], local[r * t.baseN], 0.1f, columns);
        out.EnQue(local);
        local = out.DeQue<float>();
        DataCopyPad(gm[uint64_t(block.m0 + m1) * t.N + block.n0 + n1], local,
                    DataCopyExtParams(rows, columns * sizeof(float), (t.baseN * sizeof(float) - (columns * sizeof(float) +
                            31) / 32 * 32) / 32, (t.N - columns) * sizeof(float), 0));
        out.FreeTensor(local);
    }
    mm.End();
}
extern "C" __global__ __aicore__ void leaky_product(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling) {
    LeakyProduct<true>(a, b, bias, c, workspace, tiling);
}
extern "C" __global__ __aicore__ void leaky_product_ahead(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR workspace,
                                                          GM_ADDR tiling) {
    LeakyProduct<false>(a, b, bias, c, workspace, tiling);
}

// c = a x b + bias by IterateAll; waits at once, or after work of its own.
extern "C" __global__ __aicore__ void whole_product(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling,
                                                    bool sync) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    GET_TILING_DATA_WITH_STRUCT(TCubeTiling, t, tiling);
    TPipe pipe;
    Matmul<Half, Half, Float, Float> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    const Block block(t);
    if (!block.any) return;
    Describe(mm, t, block, a, b, bias);
    const auto gm = Gm<float>(c, uint64_t(t.M) * t.N)[uint64_t(block.m0) * t.N + block.n0];
    if (sync) {
        mm.IterateAll(gm);
    } else {
        mm.IterateAll<false>(gm, 0, false, true);
        mm.WaitIterateAll();
    }
    mm.End();
}

// d = (2 a x b) x b2, square matrices on one vector core: 2 a from UB, the product of two objects back through UB.
extern "C" __global__ __aicore__ void chain(GM_ADDR a, GM_ADDR b, GM_ADDR b2, GM_ADDR d, GM_ADDR workspace, GM_ADDR tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    GET_TILING_DATA_WITH_STRUCT(TCubeTiling, t, tiling);
    TPipe pipe;
    Matmul<HalfUb, Half, FloatUb, Float> first;
    Matmul<HalfUb, Half, Float, Float> second;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), first, &t, second, &t);
    const uint32_t n = t.M, count = n * n;
    TQue<TPosition::VECIN, 1> in;
    TQue<TPosition::VECOUT, 1> scaled;
    TBuf<TPosition::VECCALC> wide;
    pipe.InitBuffer(in, 1, count * sizeof(half));
    pipe.InitBuffer(scaled, 1, count * sizeof(half));
    pipe.InitBuffer(wide, count * sizeof(float));
    LocalTensor<half> x = in.AllocTensor<half>();
    DataCopy(x, Gm<half>(a, count), count);
    in.EnQue(x);
    x = in.DeQue<half>();
    LocalTensor<half> twice = scaled.AllocTensor<half>();
    Muls(twice, x, half(2), count);
    scaled.EnQue(twice);
    in.FreeTensor(x);
    twice = scaled.DeQue<half>();
    first.SetTensorA(twice);
    first.SetTensorB(Gm<half>(b, count));
    LocalTensor<float> product = wide.Get<float>();
    first.IterateAll(product);
    scaled.FreeTensor(twice);
    twice = scaled.AllocTensor<half>();
    Cast(twice, product, RoundMode::CAST_RINT, count);
    scaled.EnQue(twice);
    twice = scaled.DeQue<half>();
    second.SetTensorA(twice);
    second.SetTensorB(Gm<half>(b2, count));
    second.IterateAll(Gm<float>(d, count));
    scaled.FreeTensor(twice);
    first.End();
    second.End();
}
