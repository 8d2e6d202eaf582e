// y [T, 16] = x [T, K] * f [16, K] transposed, x bfloat16, f float split into three bfloat16 terms whose sum it is: no product loses a
// bit. Key 1: vector cores alone, K split over them. Keys 2 and 3: the vector cores split f, each cube core multiplies blocks of 32 rows
// and its two vector cores add the three terms of one block while it works on the next. Key 3: mode 4 and waits of one pipe (950).
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kMix = 16, kTerms = 3, kColumns = kMix * kTerms, kRows = 32, kHalf = kRows / 2, kSlots = 2, kLanes = 64;
constexpr uint16_t kReady = 1, kFree = 2, kOfSecond = 16;   // an AIC names its second AIV by 16 more

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

struct Arguments {
    GM_ADDR x;
    GM_ADDR f;
    GM_ADDR y;
    GM_ADDR workspace;
    uint32_t tokens, depth;
    __aicore__ inline uint32_t Blocks() const { return tokens / kRows; }
    __aicore__ inline GM_ADDR Terms() const { return workspace; }                                            // [48, K] bfloat16
    __aicore__ inline GM_ADDR Products() const { return workspace + kColumns * depth * sizeof(bfloat16_t); }   // [AIC, 2, 32, 48]
};

// Partial sums of 64 columns per core, then of a token over all cores in their order.
class Decode {
public:
    __aicore__ inline void Run(const Arguments& a) {
        pipe_.InitBuffer(x_, a.tokens * kLanes * sizeof(bfloat16_t));
        pipe_.InitBuffer(wide_, a.tokens * kLanes * sizeof(float));
        pipe_.InitBuffer(f_, kMix * kLanes * sizeof(float));
        pipe_.InitBuffer(product_, kMix * kLanes * sizeof(float));
        pipe_.InitBuffer(sums_, a.tokens * kMix * sizeof(float));
        pipe_.InitBuffer(total_, kMix * sizeof(float));
        Partials(a);
        SyncAll();
        for (uint32_t t = GetBlockIdx(); t < a.tokens; t += GetBlockNum()) AddUp(a, t);
    }

private:
    __aicore__ inline void Partials(const Arguments& a) {
        const uint32_t first = GetBlockIdx() * kLanes, rest = a.depth - kLanes;
        LocalTensor<bfloat16_t> x = x_.Get<bfloat16_t>();
        LocalTensor<float> wide = wide_.Get<float>(), f = f_.Get<float>(), product = product_.Get<float>(), sums = sums_.Get<float>();
        DataCopy(x, Gm<bfloat16_t>(a.x)[first], DataCopyParams(a.tokens, kLanes / 16, rest / 16, 0));
        DataCopy(f, Gm<float>(a.f)[first], DataCopyParams(kMix, kLanes / 8, rest / 8, 0));
        Order<HardEvent::MTE2_V>();
        Cast(wide, x, RoundMode::CAST_NONE, a.tokens * kLanes);
        PipeBarrier<PIPE_V>();
        for (uint32_t t = 0; t < a.tokens; ++t) {
            Mul(product, f, wide[t * kLanes], kLanes, kMix, {1, 1, 1, 8, 8, 0});
            PipeBarrier<PIPE_V>();
            WholeReduceSum(sums[t * kMix], product, kLanes, kMix, 1, 1, 8);
            PipeBarrier<PIPE_V>();
        }
        Order<HardEvent::V_MTE3>();
        DataCopy(Gm<float>(a.workspace)[GetBlockIdx() * a.tokens * kMix], sums, a.tokens * kMix);
    }
    __aicore__ inline void AddUp(const Arguments& a, uint32_t t) {
        LocalTensor<float> parts = sums_.Get<float>(), total = total_.Get<float>();
        Order<HardEvent::MTE3_V>();
        Duplicate(total, 0.0f, kMix);
        for (uint32_t core = 0; core < GetBlockNum(); ++core) {
            Order<HardEvent::V_MTE2>();
            DataCopy(parts, Gm<float>(a.workspace)[(core * a.tokens + t) * kMix], kMix);
            Order<HardEvent::MTE2_V>();
            PipeBarrier<PIPE_V>();
            Add(total, total, parts, kMix);
        }
        Order<HardEvent::V_MTE3>();
        DataCopy(Gm<float>(a.y)[t * kMix], total, kMix);
    }
    TPipe pipe_;
    TBuf<> x_, wide_, f_, product_, sums_, total_;
};

// f = hi + mid + lo: 8 + 8 + 8 bits of mantissa.
class Splitter {
public:
    __aicore__ inline void Run(const Arguments& a, TPipe& pipe) {
        pipe.InitBuffer(rest_, a.depth * sizeof(float));
        pipe.InitBuffer(wide_, a.depth * sizeof(float));
        pipe.InitBuffer(term_, kTerms * a.depth * sizeof(bfloat16_t));
        LocalTensor<float> rest = rest_.Get<float>(), wide = wide_.Get<float>();
        LocalTensor<bfloat16_t> term = term_.Get<bfloat16_t>();
        for (uint32_t row = GetBlockIdx(); row < kMix; row += 2 * GetBlockNum()) {
            DataCopy(rest, Gm<float>(a.f)[row * a.depth], a.depth);
            Order<HardEvent::MTE2_V>();
            Order<HardEvent::MTE3_V>();
            for (uint32_t i = 0; i < kTerms; ++i) {
                PipeBarrier<PIPE_V>();
                Cast(term[i * a.depth], rest, RoundMode::CAST_RINT, a.depth);
                PipeBarrier<PIPE_V>();
                Cast(wide, term[i * a.depth], RoundMode::CAST_NONE, a.depth);
                PipeBarrier<PIPE_V>();
                Sub(rest, rest, wide, a.depth);
            }
            Order<HardEvent::V_MTE3>();
            Order<HardEvent::V_MTE2>();
            for (uint32_t i = 0; i < kTerms; ++i)
                DataCopy(Gm<bfloat16_t>(a.Terms())[(i * kMix + row) * a.depth], term[i * a.depth], a.depth);
        }
    }

private:
    TBuf<> rest_, wide_, term_;
};

class Multiplier {
public:
    template <bool onePipe>
    __aicore__ inline void Run(const Arguments& a, TPipe& pipe) {
        const uint32_t row = a.depth * sizeof(bfloat16_t);
        pipe.InitBuffer(fL1_, 1, kColumns * row);
        pipe.InitBuffer(fL0_, 1, kColumns * row);
        pipe.InitBuffer(xL1_, 2, kRows * row);
        pipe.InitBuffer(xL0_, 1, kRows * row);
        pipe.InitBuffer(cL0_, 2, kRows * kColumns * sizeof(float));
        SyncAll<false>();
        LoadTerms(a);
        LocalTensor<bfloat16_t> f = fL0_.DeQue<bfloat16_t>();
        uint32_t done = 0;
        for (uint32_t block = GetBlockIdx(); block < a.Blocks(); block += GetBlockNum(), ++done) {
            Load(a, block);
            Multiply(a, f);
            if (done >= kSlots) WaitFree<onePipe>();
            CopyOut<onePipe>(a, done % kSlots);
        }
        for (uint32_t i = done < kSlots ? done : kSlots; i > 0; --i) WaitFree<onePipe>();
        fL0_.FreeTensor(f);
    }

private:
    __aicore__ inline void LoadTerms(const Arguments& a) {
        LocalTensor<bfloat16_t> l1 = fL1_.AllocTensor<bfloat16_t>(), l0 = fL0_.AllocTensor<bfloat16_t>();
        DataCopy(l1, Gm<bfloat16_t>(a.Terms()), Nd2NzParams(1, kColumns, a.depth, 0, a.depth, kColumns, 1, 0));
        fL1_.EnQue(l1);
        l1 = fL1_.DeQue<bfloat16_t>();
        LoadData(l0, l1, LoadData2DParams(0, kColumns / 16 * a.depth / 16, 1, 0, 0, false, 0));   // NZ of [n, k] is ZN of [k, n]
        fL0_.EnQue(l0);
        fL1_.FreeTensor(l1);
    }
    __aicore__ inline void Load(const Arguments& a, uint32_t block) {
        LocalTensor<bfloat16_t> l1 = xL1_.AllocTensor<bfloat16_t>(), l0 = xL0_.AllocTensor<bfloat16_t>();
        DataCopy(l1, Gm<bfloat16_t>(a.x)[block * kRows * a.depth], Nd2NzParams(1, kRows, a.depth, 0, a.depth, kRows, 1, 0));
        xL1_.EnQue(l1);
        l1 = xL1_.DeQue<bfloat16_t>();
        const uint32_t kBlocks = a.depth / 16, mBlocks = kRows / 16;
#if __NPU_ARCH__ == 3510
        LoadData(l0, l1, LoadData2DParams(0, mBlocks * kBlocks, 1, 0, 0, false, 0));
#else
        for (uint32_t i = 0; i < mBlocks; ++i)   // NZ -> ZZ
            LoadData(l0[i * kBlocks * 256], l1[i * 256], LoadData2DParams(0, kBlocks, mBlocks, 0, 0, false, 0));
#endif
        xL0_.EnQue(l0);
        xL1_.FreeTensor(l1);
    }
    __aicore__ inline void Multiply(const Arguments& a, const LocalTensor<bfloat16_t>& f) {
        LocalTensor<bfloat16_t> x = xL0_.DeQue<bfloat16_t>();
        LocalTensor<float> c = cL0_.AllocTensor<float>();
        MmadParams params;
        params.m = kRows, params.n = kColumns, params.k = a.depth;
        Mmad(c, x, f, params);
        cL0_.EnQue(c);
        xL0_.FreeTensor(x);
    }
    template <bool onePipe>
    __aicore__ inline void WaitFree() {
        if constexpr (onePipe) {
            CrossCoreWaitFlag<4, PIPE_FIX>(kFree);
            CrossCoreWaitFlag<4, PIPE_FIX>(kFree + kOfSecond);
        } else {
            CrossCoreWaitFlag(kFree);
        }
    }
    template <bool onePipe>
    __aicore__ inline void CopyOut(const Arguments& a, uint32_t slot) {
        LocalTensor<float> c = cL0_.DeQue<float>();
        FixpipeParamsV220 params(kColumns, kRows, kRows, kColumns, false);
        Fixpipe(Gm<float>(a.Products())[(GetBlockIdx() * kSlots + slot) * kRows * kColumns], c, params);
        cL0_.FreeTensor(c);
        if constexpr (onePipe) {
            CrossCoreSetFlag<4, PIPE_FIX>(kReady);
            CrossCoreSetFlag<4, PIPE_FIX>(kReady + kOfSecond);
        } else {
            CrossCoreSetFlag<2, PIPE_FIX>(kReady);
        }
    }
    TQue<TPosition::A1, 1> xL1_;
    TQue<TPosition::B1, 1> fL1_;
    TQue<TPosition::A2, 1> xL0_;
    TQue<TPosition::B2, 1> fL0_;
    TQue<TPosition::CO1, 1> cL0_;
};

class Adder {
public:
    template <bool onePipe>
    __aicore__ inline void Run(const Arguments& a, TPipe& pipe) {
        splitter_.Run(a, pipe);
        pipe.InitBuffer(in_, 2, kHalf * kColumns * sizeof(float));
        pipe.InitBuffer(out_, 2, kHalf * kMix * sizeof(float));
        SyncAll<false>();
        const uint32_t cube = GetBlockIdx() / 2;
        uint32_t done = 0;
        for (uint32_t block = cube; block < a.Blocks(); block += GetBlockNum(), ++done) {
            CopyIn<onePipe>(a, cube * kSlots + done % kSlots);
            AddTerms();
            LocalTensor<float> y = out_.DeQue<float>();
            DataCopy(Gm<float>(a.y)[(block * kRows + GetSubBlockIdx() * kHalf) * kMix], y, kHalf * kMix);
            out_.FreeTensor(y);
        }
    }

private:
    template <bool onePipe>
    __aicore__ inline void CopyIn(const Arguments& a, uint32_t slot) {
        LocalTensor<float> in = in_.AllocTensor<float>();
        if constexpr (onePipe) CrossCoreWaitFlag<4, PIPE_MTE2>(kReady);
        else CrossCoreWaitFlag(kReady);
        DataCopy(in, Gm<float>(a.Products())[(slot * kRows + GetSubBlockIdx() * kHalf) * kColumns], kHalf * kColumns);
        if constexpr (onePipe) CrossCoreSetFlag<4, PIPE_MTE2>(kFree);
        else CrossCoreSetFlag<2, PIPE_MTE2>(kFree);
        in_.EnQue(in);
    }
    __aicore__ inline void AddTerms() {
        LocalTensor<float> in = in_.DeQue<float>(), out = out_.AllocTensor<float>();
        Add(out, in[2 * kMix], in[kMix], kMix, kHalf, {1, 1, 1, kMix / 8, kColumns / 8, kColumns / 8});   // smallest terms first
        PipeBarrier<PIPE_V>();
        Add(out, out, in, kMix, kHalf, {1, 1, 1, kMix / 8, kMix / 8, kColumns / 8});
        out_.EnQue(out);
        in_.FreeTensor(in);
    }
    Splitter splitter_;
    TQue<TPosition::VECIN, 1> in_;
    TQue<TPosition::VECOUT, 1> out_;
};

template <bool onePipe>
__aicore__ inline void Prefill(const Arguments& a) {
    TPipe pipe;
    if ASCEND_IS_AIC {
        Multiplier multiplier;
        multiplier.Run<onePipe>(a, pipe);
    } else {
        Adder adder;
        adder.Run<onePipe>(a, pipe);
    }
}

extern "C" __global__ __aicore__ void projection(GM_ADDR x, GM_ADDR f, GM_ADDR y, GM_ADDR workspace, uint32_t tokens, uint32_t depth) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    KERNEL_TASK_TYPE(1, KERNEL_TYPE_MIX_AIV_1_0);
    const Arguments arguments{x, f, y, workspace, tokens, depth};
    if (TILING_KEY_IS(1)) {
        Decode decode;
        decode.Run(arguments);
    } else if (TILING_KEY_IS(2)) {
        Prefill<false>(arguments);
#if __NPU_ARCH__ == 3510
    } else if (TILING_KEY_IS(3)) {
        Prefill<true>(arguments);
#endif
    }
}
