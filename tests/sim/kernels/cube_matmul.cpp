// c [m, n] = a [m, k] x b on one cube core, one block: GM -> L1 (NZ) -> L0A, L0B -> Mmad -> Fixpipe. b is [n, k] or, for 16-bit
// types, [k, n].
#include "kernel_operator.h"

using namespace AscendC;

template <typename In, typename Acc, typename Out, QuantMode_t quant>
class Product {
public:
    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k) {
        m_ = m, n_ = n, k_ = k;
        rows_ = (m + 15) / 16 * 16, columns_ = (n + 15) / 16 * 16, depth_ = (k + kC0 - 1) / kC0 * kC0;
        a_.SetGlobalBuffer((__gm__ In*)a);
        b_.SetGlobalBuffer((__gm__ In*)b);
        c_.SetGlobalBuffer((__gm__ Out*)c);
        bias_.SetGlobalBuffer((__gm__ Acc*)bias);
        pipe_.InitBuffer(aL1_, 1, rows_ * depth_ * sizeof(In));
        pipe_.InitBuffer(bL1_, 1, columns_ * ((k + 15) / 16 * 16 + kC0) * sizeof(In));
        pipe_.InitBuffer(biasL1_, 1, columns_ * sizeof(Acc));
        pipe_.InitBuffer(aL0_, 1, rows_ * depth_ * sizeof(In));
        pipe_.InitBuffer(bL0_, 1, columns_ * ((k + 15) / 16 * 16 + kC0) * sizeof(In));
        pipe_.InitBuffer(table_, 1, columns_ * sizeof(Acc));
        pipe_.InitBuffer(cL0_, 1, rows_ * columns_ * sizeof(Acc));
    }
    __aicore__ inline void Process(bool transposed, bool withBias) {
        CopyIn(transposed, withBias);
        Split(transposed, withBias);
        Compute(withBias);
        CopyOut();
    }

private:
    static constexpr uint32_t kC0 = 32 / sizeof(In);
    static __aicore__ inline Nd2NzParams Whole(uint32_t rows, uint32_t columns) {
        return {1, rows, columns, 0, columns, (rows + 15) / 16 * 16, 1, 0};
    }
    __aicore__ inline void CopyIn(bool transposed, bool withBias) {
        LocalTensor<In> a = aL1_.template AllocTensor<In>(), b = bL1_.template AllocTensor<In>();
        DataCopy(a, a_, Whole(m_, k_));
        DataCopy(b, b_, transposed ? Whole(k_, n_) : Whole(n_, k_));
        aL1_.EnQue(a);
        bL1_.EnQue(b);
        if (!withBias) return;
        LocalTensor<Acc> bias = biasL1_.template AllocTensor<Acc>();
        DataCopy(bias, bias_, columns_);
        biasL1_.EnQue(bias);
    }
    __aicore__ inline void Split(bool transposed, bool withBias) {
        LocalTensor<In> a1 = aL1_.template DeQue<In>(), b1 = bL1_.template DeQue<In>();
        LocalTensor<In> a2 = aL0_.template AllocTensor<In>(), b2 = bL0_.template AllocTensor<In>();
        const uint32_t mBlocks = rows_ / 16, nBlocks = columns_ / 16, kBlocks = depth_ / kC0;
#if __NPU_ARCH__ == 3510
        LoadData(a2, a1, LoadData2DParams(0, mBlocks * kBlocks, 1, 0, 0, false, 0));     // NZ as in L1
#else
        for (uint32_t i = 0; i < mBlocks; ++i)                                            // NZ -> ZZ
            LoadData(a2[i * kBlocks * 16 * kC0], a1[i * 16 * kC0], LoadData2DParams(0, kBlocks, mBlocks, 0, 0, false, 0));
#endif
        if (!transposed) LoadData(b2, b1, LoadData2DParams(0, nBlocks * kBlocks, 1, 0, 0, false, 0));   // NZ of [n, k] is ZN of [k, n]
        else for (uint32_t i = 0; i < kBlocks; ++i)
            LoadData(b2[i * nBlocks * 16 * kC0], b1[i * 16 * kC0], LoadData2DParams(0, nBlocks, kBlocks, 0, 0, true, 0));
        if (withBias) {
            LocalTensor<Acc> bias = biasL1_.template DeQue<Acc>(), table = table_.template AllocTensor<Acc>();
            DataCopy(table, bias, columns_);
            table_.EnQue(table);
            biasL1_.FreeTensor(bias);
        }
        aL0_.EnQue(a2);
        bL0_.EnQue(b2);
        aL1_.FreeTensor(a1);
        bL1_.FreeTensor(b1);
    }
    __aicore__ inline void Compute(bool withBias) {
        LocalTensor<In> a = aL0_.template DeQue<In>(), b = bL0_.template DeQue<In>();
        LocalTensor<Acc> c = cL0_.template AllocTensor<Acc>();
        MmadParams params;
        params.m = m_, params.n = n_, params.k = k_;
        if (withBias) {
            LocalTensor<Acc> table = table_.template DeQue<Acc>();
            Mmad(c, a, b, table, params);
            table_.FreeTensor(table);
        } else {
            Mmad(c, a, b, params);
        }
        cL0_.EnQue(c);
        aL0_.FreeTensor(a);
        bL0_.FreeTensor(b);
    }
    __aicore__ inline void CopyOut() {
        LocalTensor<Acc> c = cL0_.template DeQue<Acc>();
        FixpipeParamsV220 params;
        params.nSize = n_, params.mSize = m_, params.srcStride = rows_, params.dstStride = n_, params.quantPre = quant;
        Fixpipe<Out, Acc, CFG_ROW_MAJOR>(c_, c, params);
        cL0_.FreeTensor(c);
    }

    TPipe pipe_;
    TQue<TPosition::A1, 1> aL1_;
    TQue<TPosition::B1, 1> bL1_;
    TQue<TPosition::C1, 1> biasL1_;
    TQue<TPosition::A2, 1> aL0_;
    TQue<TPosition::B2, 1> bL0_;
    TQue<TPosition::C2, 1> table_;
    TQue<TPosition::CO1, 1> cL0_;
    GlobalTensor<In> a_, b_;
    GlobalTensor<Acc> bias_;
    GlobalTensor<Out> c_;
    uint32_t m_, n_, k_, rows_, columns_, depth_;
};

template <typename In, typename Acc, typename Out, QuantMode_t quant>
__aicore__ inline void Run(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k, bool transposed,
                           bool withBias, bool hf32) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    SetHF32Mode(hf32);
    Product<In, Acc, Out, quant> product;
    product.Init(a, b, bias, c, m, n, k);
    product.Process(transposed, withBias);
}
extern "C" __global__ __aicore__ void half_to_float(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k,
                                                bool transposed, bool withBias, bool hf32) {
    Run<half, float, float, NoQuant>(a, b, bias, c, m, n, k, transposed, withBias, hf32);
}
extern "C" __global__ __aicore__ void half_to_half(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k,
                                                bool transposed, bool withBias, bool hf32) {
    Run<half, float, half, F322F16>(a, b, bias, c, m, n, k, transposed, withBias, hf32);
}
extern "C" __global__ __aicore__ void bfloat16_to_bfloat16(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, uint32_t m, uint32_t n,
                                                uint32_t k, bool transposed, bool withBias, bool hf32) {
    Run<bfloat16_t, float, bfloat16_t, F322BF16>(a, b, bias, c, m, n, k, transposed, withBias, hf32);
}
extern "C" __global__ __aicore__ void float_to_float(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k,
                                                bool transposed, bool withBias, bool hf32) {
    Run<float, float, float, NoQuant>(a, b, bias, c, m, n, k, transposed, withBias, hf32);
}
extern "C" __global__ __aicore__ void int8_to_int32(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k,
                                                bool transposed, bool withBias, bool hf32) {
    Run<int8_t, int32_t, int32_t, NoQuant>(a, b, bias, c, m, n, k, transposed, withBias, hf32);
}
