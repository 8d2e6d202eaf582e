// Vector functions of the 950.
#include "rule_kernel.h"

using namespace AscendC::MicroAPI;

extern "C" __global__ __aicore__ void load_after_store_without_local_mem_bar(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x);
    __ubuf__ float* data = (__ubuf__ float*)in.GetPhyAddr();
    __VEC_SCOPE__ {
        RegTensor<float> value, again;
        MaskReg all = CreateMask<float, MaskPattern::ALL>();
        DataCopy(value, data);
        Adds(value, value, 1.0f, all);
        DataCopy(data, value, all);
        if (repaired) {
            LocalMemBar<MemType::VEC_STORE, MemType::VEC_LOAD>();
        }
        DataCopy(again, data);
        Add(again, again, again, all);
        LocalMemBar<MemType::VEC_LOAD, MemType::VEC_STORE>();
        DataCopy(data, again, all);
    }
    Store(y, in);
}

extern "C" __global__ __aicore__ void unaligned_register_load(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> inBuf, outBuf;
    pipe.InitBuffer(inBuf, 2 * kBytes);
    pipe.InitBuffer(outBuf, kBytes);
    LocalTensor<float> in = inBuf.Get<float>(), out = outBuf.Get<float>();
    Load(in, x, 2 * kLanes);
    __ubuf__ float* data = (__ubuf__ float*)in.GetPhyAddr() + (repaired ? 8 : 1);
    __ubuf__ float* result = (__ubuf__ float*)out.GetPhyAddr();
    __VEC_SCOPE__ {
        RegTensor<float> value;
        MaskReg all = CreateMask<float, MaskPattern::ALL>();
        DataCopy(value, data);
        DataCopy(result, value, all);
    }
    Store(y, out);
}

extern "C" __global__ __aicore__ void register_load_past_the_unified_buffer(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> inBuf, outBuf;
    pipe.InitBuffer(inBuf, kBytes);
    pipe.InitBuffer(outBuf, kBytes);
    LocalTensor<float> in = inBuf.Get<float>(), out = outBuf.Get<float>();
    Load(in, x);
    __ubuf__ float* data = (__ubuf__ float*)in.GetPhyAddr() + (repaired ? 0 : 1024 * 1024);
    __ubuf__ float* result = (__ubuf__ float*)out.GetPhyAddr();
    __VEC_SCOPE__ {
        RegTensor<float> value;
        MaskReg all = CreateMask<float, MaskPattern::ALL>();
        DataCopy(value, data);
        DataCopy(result, value, all);
    }
    Store(y, out);
}

extern "C" __global__ __aicore__ void vector_function_that_runs_for_hours(GM_ADDR x, GM_ADDR y, bool repaired) {
    const uint32_t rounds = repaired ? 1 : 1u << 31;
    __VEC_SCOPE__ {
        RegTensor<float> value;
        MaskReg all = CreateMask<float, MaskPattern::ALL>();
        Duplicate(value, 1.0f);
        for (uint32_t round = 0; round < rounds; ++round) Adds(value, value, 1.0f, all);
    }
}

// V after V on the same bytes is ordered by hardware here: no barrier needed, unlike on the 910B.
extern "C" __global__ __aicore__ void mte3_before_the_vector_function_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x);
    Adds(in, in, 1.0f, kLanes);
    __ubuf__ float* data = (__ubuf__ float*)in.GetPhyAddr();
    __VEC_SCOPE__ {
        RegTensor<float> value;
        MaskReg all = CreateMask<float, MaskPattern::ALL>();
        DataCopy(value, data);
        Add(value, value, value, all);
        DataCopy(data, value, all);
    }
    if (repaired) {
        SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
        WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    }
    DataCopy(Gm(y), in, kLanes);
}

inline void FillAndReturn(__ubuf__ float* target) {
    __VEC_SCOPE__ {
        RegTensor<float> one;
        MaskReg mask = CreateMask<float>();
        Duplicate(one, 1.0f);
        DataCopy(target, one, mask);
        return;   // ends the vector function: what it stored counts
    }
}

extern "C" __global__ __aicore__ void mte3_before_a_returning_vector_function_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> local = buf.Get<float>();
    FillAndReturn(local.GetPhyAddr());
    if (repaired) {
        SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
        WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    }
    DataCopy(Gm(y), local, kLanes);
}

// Two stores of one function to the same bytes land in either order.
extern "C" __global__ __aicore__ void store_after_store_without_local_mem_bar(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 2 * kBytes);
    LocalTensor<float> in = buf.Get<float>(), out = in[kLanes];
    Load(in, x);
    __ubuf__ float* data = (__ubuf__ float*)in.GetPhyAddr();
    __ubuf__ float* result = (__ubuf__ float*)out.GetPhyAddr();
    __VEC_SCOPE__ {
        RegTensor<float> value;
        MaskReg all = CreateMask<float, MaskPattern::ALL>();
        DataCopy(value, data);
        Adds(value, value, 1.0f, all);
        DataCopy(result, value, all);
        if (repaired) {
            LocalMemBar<MemType::VEC_STORE, MemType::VEC_STORE>();
        }
        Add(value, value, value, all);
        DataCopy(result, value, all);
    }
    Store(y, out);
}
