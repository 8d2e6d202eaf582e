// One product c [m, n] = a [m, k] x b [k, n] per entry on one cube core, each by another way into or out of L0. All sizes are multiples
// of the blocks they are cut into.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kSide = 16;

template <typename T>
__aicore__ inline GlobalTensor<T> Gm(GM_ADDR address) {
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer((__gm__ T*)address);
    return tensor;
}
template <HardEvent event>
__aicore__ inline void Order() {
    SetFlag<event>(EVENT_ID0);
    WaitFlag<event>(EVENT_ID0);
}
__aicore__ inline Nd2NzParams Whole(uint32_t rows, uint32_t columns) { return {1, rows, columns, 0, columns, rows, 1, 0}; }

// The buffers of a product and the usual ways through them; `In` operands, `Acc` in L0C.
template <typename In, typename Acc>
class Cube {
public:
    static constexpr uint32_t kC0 = 32 / sizeof(In);
    __aicore__ inline Cube(uint32_t m, uint32_t n, uint32_t k) : m_(m), n_(n), k_(k) {
        pipe_.InitBuffer(a1_, 2 * m * k * sizeof(In));
        pipe_.InitBuffer(b1_, n * k * sizeof(In));
        pipe_.InitBuffer(a2_, (m < kSide ? kSide : m) * k * sizeof(In));
        pipe_.InitBuffer(b2_, n * k * sizeof(In));
        pipe_.InitBuffer(c_, (m < kSide ? kSide : m) * n * sizeof(Acc));
        a1 = a1_.template Get<In>(), b1 = b1_.template Get<In>(), a2 = a2_.template Get<In>(), b2 = b2_.template Get<In>();
        c = c_.template Get<Acc>();
    }
    __aicore__ inline void CopyIn(GM_ADDR a, GM_ADDR b) {
        DataCopy(a1, Gm<In>(a), Whole(m_, k_));
        DataCopy(b1, Gm<In>(b), Whole(k_, n_));
        Order<HardEvent::MTE2_MTE1>();
    }
    __aicore__ inline void LoadA() {
        const uint32_t mBlocks = m_ / kSide, kBlocks = k_ / kC0;
#if __NPU_ARCH__ == 3510
        LoadData(a2, a1, LoadData2DParams(0, mBlocks * kBlocks, 1, 0, 0, false, 0));
#else
        for (uint32_t i = 0; i < mBlocks; ++i)
            LoadData(a2[i * kBlocks * kSide * kC0], a1[i * kSide * kC0], LoadData2DParams(0, kBlocks, mBlocks, 0, 0, false, 0));
#endif
    }
    // 16-bit b [k, n]: each fractal transposed.
    __aicore__ inline void LoadB() {
        for (uint32_t i = 0; i < k_ / kSide; ++i)
            LoadData(b2[i * n_ * kSide], b1[i * kSide * kSide], LoadData2DParams(0, n_ / kSide, k_ / kSide, 0, 0, true, 0));
    }
    __aicore__ inline void Multiply(uint32_t unitFlag = 0) {
        Order<HardEvent::MTE1_M>();
        MmadParams params;
        params.m = m_, params.n = n_, params.k = k_, params.unitFlag = unitFlag;
        Mmad(c, a2, b2, params);
    }
    __aicore__ inline FixpipeParamsV220 Out(QuantMode_t quant = NoQuant, float scale = 1, bool relu = false) {
        FixpipeParamsV220 params(n_, m_, m_, n_, relu);
        params.quantPre = quant;
        uint32_t bits = 0;
        *reinterpret_cast<float*>(&bits) = scale;
        params.deqScalar = bits;
        return params;
    }
    LocalTensor<In> a1, b1, a2, b2;
    LocalTensor<Acc> c;

private:
    TPipe pipe_;
    TBuf<TPosition::A1> a1_;
    TBuf<TPosition::B1> b1_;
    TBuf<TPosition::A2> a2_;
    TBuf<TPosition::B2> b2_;
    TBuf<TPosition::CO1> c_;
    const uint32_t m_, n_, k_;
};

// b as squares of 32 x 32 bytes, transposed on the way to L0B.
extern "C" __global__ __aicore__ void transposed_int8(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    constexpr uint32_t kSquare = 32;
    Cube<int8_t, int32_t> cube(m, n, k);
    cube.CopyIn(a, b);
    cube.LoadA();
    for (uint32_t i = 0; i < k / kSquare; ++i)
        LoadDataWithTranspose(cube.b2[i * n * kSquare], cube.b1, LoadData2dTransposeParams(i, n / kSquare, k / kSquare, 1, 0));
    cube.Multiply();
    Order<HardEvent::M_FIX>();
    Fixpipe(Gm<int32_t>(c), cube.c, cube.Out());
}

// b in slabs of 16 rows, so that the two fractals of a 16 x 16 square of floats lie side by side.
extern "C" __global__ __aicore__ void transposed_float(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Cube<float, float> cube(m, n, k);
    DataCopy(cube.a1, Gm<float>(a), Whole(m, k));
    for (uint32_t i = 0; i < k / kSide; ++i) DataCopy(cube.b1[i * kSide * n], Gm<float>(b)[i * kSide * n], Whole(kSide, n));
    Order<HardEvent::MTE2_MTE1>();
    cube.LoadA();
    for (uint32_t i = 0; i < k / kSide; ++i)
        LoadDataWithTranspose(cube.b2[i * kSide * n], cube.b1[i * kSide * n], LoadData2dTransposeParams(0, n / kSide, 1, 0, n / kSide - 1));
    cube.Multiply();
    Order<HardEvent::M_FIX>();
    Fixpipe(Gm<float>(c), cube.c, cube.Out());
}

// c = relu(half(a b)) b', b' = b: the first product goes through L1 as the left operand of the second; n = k.
extern "C" __global__ __aicore__ void chained_through_l1(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Cube<half, float> cube(m, n, k);
    cube.CopyIn(a, b);
    cube.LoadA();
    cube.LoadB();
    cube.Multiply();
    Order<HardEvent::M_FIX>();
    FixpipeParamsV220 params = cube.Out(F322F16, 1, true);
    params.dstStride = m;   // blocks of 32 bytes: a column of fractals
    Fixpipe<half, float, CFG_NZ>(cube.a1, cube.c, params);
    Order<HardEvent::FIX_MTE1>();
    Order<HardEvent::M_MTE1>();
    cube.LoadA();
    Order<HardEvent::FIX_M>();
    cube.Multiply();
    Order<HardEvent::M_FIX>();
    Fixpipe(Gm<float>(c), cube.c, cube.Out());
}

template <typename In, typename Acc, typename To, QuantMode_t quant>
__aicore__ inline void Quantised(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k, float scale) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Cube<In, Acc> cube(m, n, k);
    DataCopy(cube.a1, Gm<In>(a), Whole(m, k));
    DataCopy(cube.b1, Gm<In>(b), Whole(n, k));   // b is [n, k]
    Order<HardEvent::MTE2_MTE1>();
    cube.LoadA();
    LoadData(cube.b2, cube.b1, LoadData2DParams(0, n / kSide * k / Cube<In, Acc>::kC0, 1, 0, 0, false, 0));
    cube.Multiply();
    Order<HardEvent::M_FIX>();
    Fixpipe<To, Acc, CFG_ROW_MAJOR>(Gm<To>(c), cube.c, cube.Out(quant, scale));
}
extern "C" __global__ __aicore__ void int32_to_half(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k, float scale) {
    Quantised<int8_t, int32_t, half, DEQF16>(a, b, c, m, n, k, scale);
}
extern "C" __global__ __aicore__ void int32_to_int8(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k, float scale) {
    Quantised<int8_t, int32_t, int8_t, REQ8>(a, b, c, m, n, k, scale);
}
extern "C" __global__ __aicore__ void float_to_int8(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k, float scale) {
    Quantised<half, float, int8_t, QF322B8_PRE>(a, b, c, m, n, k, scale);
}

// Nothing but unit flags orders M and FIX; c = 2 a b by two products into one matrix.
extern "C" __global__ __aicore__ void unit_flags(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Cube<half, float> cube(m, n, k);
    cube.CopyIn(a, b);
    cube.LoadA();
    cube.LoadB();
    cube.Multiply(2);
    PipeBarrier<PIPE_M>();
    MmadParams params;
    params.m = m, params.n = n, params.k = k, params.unitFlag = 3, params.cmatrixInitVal = false;
    Mmad(cube.c, cube.a2, cube.b2, params);
    FixpipeParamsV220 out = cube.Out();
    out.unitFlag = 3;
    Fixpipe(Gm<float>(c), cube.c, out);
}

// m = 1: the row of a lies in L0A as it is, 256 halves to a fractal.
extern "C" __global__ __aicore__ void vector_times_matrix(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Cube<half, float> cube(1, n, k);
    DataCopy(cube.a1, Gm<half>(a), k);
    DataCopy(cube.b1, Gm<half>(b), Whole(k, n));
    Order<HardEvent::MTE2_MTE1>();
    LoadData(cube.a2, cube.a1, LoadData2DParams(0, k / 256, 1, 0, 0, false, 0));
    cube.LoadB();
    cube.Multiply();
    Order<HardEvent::M_FIX>();
    FixpipeParamsV220 params = cube.Out();
    params.srcStride = kSide;
    Fixpipe(Gm<float>(c), cube.c, params);
}

#if __NPU_ARCH__ == 3510
// Rectangles of fractals (LoadData2DParamsV2), b transposed by them; c row major, column major and in NZ by FixpipeParamsC310.
template <const FixpipeConfig& config>
__aicore__ inline void Rectangles(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k, uint32_t dstStride) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Cube<half, float> cube(m, n, k);
    cube.CopyIn(a, b);
    for (uint32_t i = 0; i < k / kSide; ++i)   // column by column of fractals
        LoadData(cube.a2[i * m * kSide], cube.a1, LoadData2DParamsV2(0, i, m / kSide, 1, m / kSide, m / kSide, false, 0));
    LoadData(cube.b2, cube.b1, LoadData2DParamsV2(0, 0, k / kSide, n / kSide, k / kSide, n / kSide, true, 0));
    cube.Multiply();
    Order<HardEvent::M_FIX>();
    FixpipeParamsC310<config.format> params;
    params.nSize = n, params.mSize = m, params.srcStride = m, params.dstStride = dstStride;
    Fixpipe<float, float, config>(Gm<float>(c), cube.c, params);
}
extern "C" __global__ __aicore__ void rectangles(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k) {
    Rectangles<CFG_ROW_MAJOR>(a, b, c, m, n, k, n);
}
extern "C" __global__ __aicore__ void rectangles_column_major(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k) {
    Rectangles<CFG_COLUMN_MAJOR>(a, b, c, m, n, k, m);
}
extern "C" __global__ __aicore__ void rectangles_nz(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t m, uint32_t n, uint32_t k) {
    Rectangles<CFG_NZ>(a, b, c, m, n, k, m * kSide);
}
#endif
