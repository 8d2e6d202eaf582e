// c = leaky_relu(a x b + bias); vector cores fetch the base matrices of their block and finish them.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

class MatmulLeakyKernel {
public:
    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, const TCubeTiling& tiling, float slope, TPipe* pipe) {
        t_ = tiling;
        slope_ = slope;
        const uint32_t mCores = (t_.M + t_.singleCoreM - 1) / t_.singleCoreM, index = GetBlockIdx();
        m0_ = index % mCores * t_.singleCoreM, n0_ = index / mCores * t_.singleCoreN;
        any_ = n0_ < uint32_t(t_.N);
        if (!any_) return;
        m_ = Left(t_.M, m0_, t_.singleCoreM), n_ = Left(t_.N, n0_, t_.singleCoreN);
        a_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a), uint64_t(t_.M) * t_.Ka);
        b_.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b), uint64_t(t_.Kb) * t_.N);
        bias_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(bias), t_.N);
        c_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(c), uint64_t(t_.M) * t_.N);
        pipe->InitBuffer(out_, 1, t_.baseM * t_.baseN * sizeof(float));
    }
    __aicore__ inline void Process() {
        if (!any_) return;
        mm.SetOrgShape(t_.M, t_.N, t_.Ka);
        mm.SetTensorA(a_[uint64_t(m0_) * t_.Ka]);
        mm.SetTensorB(b_[n0_]);
        mm.SetBias(bias_[n0_]);
        mm.SetTail(m_, n_, t_.Ka);
        const uint32_t mBlocks = (m_ + t_.baseM - 1) / t_.baseM;
        for (uint32_t at = 0; mm.Iterate<true>(); ++at) Finish(at % mBlocks * t_.baseM, at / mBlocks * t_.baseN);
        mm.End();
    }
    Matmul<MatmulType<TPosition::GM, CubeFormat::ND, half>, MatmulType<TPosition::GM, CubeFormat::ND, half>,
           MatmulType<TPosition::VECIN, CubeFormat::ND, float>, MatmulType<TPosition::GM, CubeFormat::ND, float>> mm;

private:
    static __aicore__ inline uint32_t Left(uint32_t whole, uint32_t start, uint32_t most) {
        return whole - start < most ? whole - start : most;
    }
    __aicore__ inline void Finish(uint32_t m1, uint32_t n1) {
        const uint32_t rows = Left(m_, m1, t_.baseM), columns = Left(n_, n1, t_.baseN), used = (columns + 7) / 8 * 8;
        LocalTensor<float> local = out_.AllocTensor<float>();
        mm.GetTensorC<true>(local, false, true);
        for (uint32_t r = 0; r < rows; ++r) LeakyRelu(local[r * t_.baseN], local[r * t_.baseN], slope_, columns);
        out_.EnQue(local);
        local = out_.DeQue<float>();
        DataCopyPad(c_[uint64_t(m0_ + m1) * t_.N + n0_ + n1], local,
                    DataCopyExtParams(rows, columns * sizeof(float), (t_.baseN - used) / 8, (t_.N - columns) * sizeof(float), 0));
        out_.FreeTensor(local);
    }
    TCubeTiling t_;
    float slope_;
    uint32_t m0_, n0_, m_, n_;
    bool any_;
    GlobalTensor<half> a_, b_;
    GlobalTensor<float> bias_, c_;
    TQue<TPosition::VECOUT, 1> out_;
};

extern "C" __global__ __aicore__ void matmul_leaky(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA(data, tiling);
    TPipe pipe;
    MatmulLeakyKernel op;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.mm, &data.cubeTilingData);
    op.Init(a, b, bias, c, data.cubeTilingData, data.slope, &pipe);
    op.Process();
}
