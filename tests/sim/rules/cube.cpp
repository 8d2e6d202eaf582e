// The cube core and its order with vector cores. y = x for 256 floats where a kernel is repaired.
#include "rule_kernel.h"

constexpr uint32_t kSide = 16, kMatrix = kSide * kSide;
constexpr uint32_t kMatrixBytes = kMatrix * sizeof(float);

// y = x * identity: x and a 16 x 16 identity, which the second half of x holds, through L1, L0 and L0C.
class Identity {
public:
    __aicore__ inline Identity(GM_ADDR x, GM_ADDR y) : x_(Gm(x)), y_(Gm(y)) {
        pipe_.InitBuffer(aL1_, kMatrixBytes);
        pipe_.InitBuffer(bL1_, kMatrixBytes);
        pipe_.InitBuffer(aL0_, kMatrixBytes);
        pipe_.InitBuffer(bL0_, kMatrixBytes);
        pipe_.InitBuffer(cL0_, kMatrixBytes);
        a1 = aL1_.Get<float>(), b1 = bL1_.Get<float>(), a2 = aL0_.Get<float>(), b2 = bL0_.Get<float>(), c = cL0_.Get<float>();
    }
    template <HardEvent event>
    static __aicore__ inline void Order() {
        SetFlag<event>(EVENT_ID0);
        WaitFlag<event>(EVENT_ID0);
    }
    __aicore__ inline void CopyIn() {
        const Nd2NzParams whole(1, kSide, kSide, 0, kSide, kSide, 1, 0);
        DataCopy(a1, x_, whole);
        DataCopy(b1, x_[kMatrix], whole);
    }
    __aicore__ inline void Split() {
        LoadData(a2, a1, LoadData2DParams(0, 2, 1, 0, 0, false, 0));
        LoadData(b2, b1, LoadData2DParams(0, 2, 1, 0, 0, false, 0));
    }
    __aicore__ inline void Multiply(bool fromZero = true) {
        MmadParams params;
        params.m = params.n = params.k = kSide;
        params.cmatrixInitVal = fromZero;
        Mmad(c, a2, b2, params);
    }
    __aicore__ inline void CopyOut() { Fixpipe(y_, c, FixpipeParamsV220(kSide, kSide, kSide, kSide, false)); }
    __aicore__ inline void UpToMmad() {
        CopyIn();
        Order<HardEvent::MTE2_MTE1>();
        Split();
        Order<HardEvent::MTE1_M>();
    }
    __aicore__ inline void All() {
        UpToMmad();
        Multiply();
        Order<HardEvent::M_FIX>();
        CopyOut();
    }
    LocalTensor<float> a1, b1, a2, b2, c;

private:
    TPipe pipe_;
    TBuf<TPosition::A1> aL1_;
    TBuf<TPosition::B1> bL1_;
    TBuf<TPosition::A2> aL0_;
    TBuf<TPosition::B2> bL0_;
    TBuf<TPosition::CO1> cL0_;
    GlobalTensor<float> x_, y_;
};

extern "C" __global__ __aicore__ void mte1_before_mte2_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Identity product(x, y);
    product.CopyIn();
    if (repaired) {
        product.Order<HardEvent::MTE2_MTE1>();
    }
    product.Split();
    product.Order<HardEvent::MTE1_M>();
    product.Multiply();
    product.Order<HardEvent::M_FIX>();
    product.CopyOut();
}

extern "C" __global__ __aicore__ void m_before_mte1_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Identity product(x, y);
    product.CopyIn();
    product.Order<HardEvent::MTE2_MTE1>();
    product.Split();
    if (repaired) {
        product.Order<HardEvent::MTE1_M>();
    }
    product.Multiply();
    product.Order<HardEvent::M_FIX>();
    product.CopyOut();
}

extern "C" __global__ __aicore__ void fixpipe_before_m_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Identity product(x, y);
    product.UpToMmad();
    product.Multiply();
    if (repaired) {
        product.Order<HardEvent::M_FIX>();
    }
    product.CopyOut();
}

extern "C" __global__ __aicore__ void mte1_before_fixpipe_to_l1_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Identity product(x, y);
    product.UpToMmad();
    product.Multiply();
    product.Order<HardEvent::M_FIX>();
    Fixpipe<float, float, CFG_NZ>(product.a1, product.c, FixpipeParamsV220(kSide, kSide, kSide, kSide, false));
    product.Order<HardEvent::M_MTE1>();
    if (repaired) {
        product.Order<HardEvent::FIX_MTE1>();
    }
    product.Split();
}

// The unit flags order M and FIX; without them, and without an event, nothing does.
extern "C" __global__ __aicore__ void fixpipe_without_its_unit_flag(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Identity product(x, y);
    product.UpToMmad();
    MmadParams params;
    params.m = params.n = params.k = kSide;
    params.unitFlag = 3;
    Mmad(product.c, product.a2, product.b2, params);
    FixpipeParamsV220 out(kSide, kSide, kSide, kSide, false);
    out.unitFlag = repaired ? 3 : 0;
    Fixpipe(Gm(y), product.c, out);
}

extern "C" __global__ __aicore__ void short_mmad_before_the_last_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Identity product(x, y);
    product.UpToMmad();
    product.Multiply();
    if (repaired) {
        PipeBarrier<PIPE_M>();
    }
    product.Multiply(false);
    product.Order<HardEvent::M_FIX>();
    product.CopyOut();
}

extern "C" __global__ __aicore__ void load_to_an_unaligned_fractal(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Identity product(x, y);
    product.CopyIn();
    product.Order<HardEvent::MTE2_MTE1>();
    LoadData(product.a2[repaired ? 128 : 8], product.a1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
}

extern "C" __global__ __aicore__ void load_past_the_l1_buffer(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Identity product(x, y);
    product.CopyIn();
    product.Order<HardEvent::MTE2_MTE1>();
    LoadData(product.b2, product.b1, LoadData2DParams(repaired ? 0 : 1, 2, 1, 0, 0, false, 0));
}

extern "C" __global__ __aicore__ void mmad_of_a_matrix_that_was_not_loaded(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Identity product(x, y);
    product.CopyIn();
    product.Order<HardEvent::MTE2_MTE1>();
    if (repaired) {
        product.Split();
    }
    product.Order<HardEvent::MTE1_M>();
    product.Multiply();
}

extern "C" __global__ __aicore__ void mmad_accumulates_on_nothing(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Identity product(x, y);
    product.UpToMmad();
    product.Multiply(repaired);
}

extern "C" __global__ __aicore__ void vector_instruction_on_a_cube_core(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    if (repaired && ASCEND_IS_AIC) return;
    Duplicate(buf.Get<float>(), 0.0f, kLanes);
}

extern "C" __global__ __aicore__ void vector_event_on_a_cube_core(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    if (repaired) {
        Identity::Order<HardEvent::MTE2_MTE1>();
    } else {
        Identity::Order<HardEvent::MTE2_V>();
    }
}

// The cube core writes y, its first vector core doubles it.
extern "C" __global__ __aicore__ void vector_core_reads_what_the_cube_core_writes(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    constexpr uint16_t kProduct = 8;
    if ASCEND_IS_AIC {
        Identity product(x, y);
        product.All();
        if (repaired) CrossCoreSetFlag<2, PIPE_FIX>(kProduct);
        else CrossCoreSetFlag<2, PIPE_MTE2>(kProduct);   // MTE2 knows nothing of Fixpipe
        return;
    }
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kMatrixBytes);
    CrossCoreWaitFlag(kProduct);
    if (GetSubBlockIdx() != 0) return;
    Load(buf.Get<float>(), y, kMatrix);
    Store(y, buf.Get<float>(), kMatrix);
}

extern "C" __global__ __aicore__ void one_vector_core_sets_no_flag(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    constexpr uint16_t kReady = 8, kDone = 9;
    if ASCEND_IS_AIC {
        CrossCoreWaitFlag(kReady);
        CrossCoreSetFlag<2, PIPE_FIX>(kDone);
    } else {
        if (repaired || GetSubBlockIdx() == 0) CrossCoreSetFlag<2, PIPE_MTE3>(kReady);
        CrossCoreWaitFlag(kDone);
    }
}

extern "C" __global__ __aicore__ void cross_core_flag_left_set(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    if ASCEND_IS_AIC {
        CrossCoreSetFlag<2, PIPE_FIX>(3);
    } else if (repaired) {
        CrossCoreWaitFlag(3);
    }
}

extern "C" __global__ __aicore__ void cube_core_misses_sync_all(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    if ASCEND_IS_AIC {
        if (!repaired) return;
    }
    SyncAll<false>();
}

// The vector core keeps up by luck only, unless it answers.
extern "C" __global__ __aicore__ void cube_core_runs_ahead_of_its_counter(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    constexpr uint16_t kReady = 3, kFree = 4;
    for (int i = 0; i < 40; ++i) {
        if ASCEND_IS_AIC {
            CrossCoreSetFlag<2, PIPE_FIX>(kReady);
            if (repaired) CrossCoreWaitFlag(kFree);
        } else {
            CrossCoreWaitFlag(kReady);
            if (repaired) CrossCoreSetFlag<2, PIPE_MTE2>(kFree);
        }
    }
}

extern "C" __global__ __aicore__ void sync_all_without_the_scheduler(GM_ADDR x, GM_ADDR y, bool repaired) {
    if (repaired) KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    else KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    SyncAll();
}

extern "C" __global__ __aicore__ void two_types_of_kernel(GM_ADDR x, GM_ADDR y, bool repaired) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    if (!repaired) KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
}

extern "C" __global__ __aicore__ void type_declared_after_a_copy(GM_ADDR x, GM_ADDR y, bool repaired) {
    if (repaired) KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    TPipe pipe;
    TBuf<> buf;
    if ASCEND_IS_AIV {
        pipe.InitBuffer(buf, kBytes);
        DataCopy(buf.Get<float>(), Gm(x), kLanes);
    }
    if (!repaired) KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
}
