// Conflicting accesses that nothing orders. In adversarial mode the broken kernels compute wrong numbers: y = 2 * (x + 1).
#include "rule_kernel.h"

extern "C" __global__ __aicore__ void v_before_mte2_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> inBuf, outBuf;
    pipe.InitBuffer(inBuf, kBytes);
    pipe.InitBuffer(outBuf, kBytes);
    LocalTensor<float> in = inBuf.Get<float>(), out = outBuf.Get<float>();
    Duplicate(in, 0.0f, kLanes);
    SetFlag<HardEvent::V_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
    DataCopy(in, Gm(x), kLanes);
    if (repaired) {
        SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
        WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    }
    Adds(out, in, 1.0f, kLanes);
    PipeBarrier<PIPE_V>();
    Add(out, out, out, kLanes);
    Store(y, out);
}

extern "C" __global__ __aicore__ void v_before_v_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> inBuf, outBuf;
    pipe.InitBuffer(inBuf, kBytes);
    pipe.InitBuffer(outBuf, kBytes);
    LocalTensor<float> in = inBuf.Get<float>(), out = outBuf.Get<float>();
    Load(in, x);
    Duplicate(out, 0.0f, kLanes);
    PipeBarrier<PIPE_V>();
    Adds(out, in, 1.0f, kLanes);
    if (repaired) {
        PipeBarrier<PIPE_V>();
    }
    Add(in, out, out, kLanes);
    Store(y, in);
}

extern "C" __global__ __aicore__ void v_overwrites_what_v_reads(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> inBuf, outBuf;
    pipe.InitBuffer(inBuf, kBytes);
    pipe.InitBuffer(outBuf, kBytes);
    LocalTensor<float> in = inBuf.Get<float>(), out = outBuf.Get<float>();
    Load(in, x);
    Adds(out, in, 1.0f, kLanes);
    if (repaired) {
        PipeBarrier<PIPE_V>();
    }
    Duplicate(in, 0.0f, kLanes);
    PipeBarrier<PIPE_V>();
    Add(out, out, out, kLanes);
    Store(y, out);
}

extern "C" __global__ __aicore__ void mte3_before_v_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x);
    Adds(in, in, 1.0f, kLanes);
    PipeBarrier<PIPE_V>();
    Add(in, in, in, kLanes);
    if (repaired) {
        SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
        WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    }
    DataCopy(Gm(y), in, kLanes);
}

extern "C" __global__ __aicore__ void mte2_overwrites_what_v_reads(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> inBuf, outBuf;
    pipe.InitBuffer(inBuf, kBytes);
    pipe.InitBuffer(outBuf, kBytes);
    LocalTensor<float> in = inBuf.Get<float>(), out = outBuf.Get<float>();
    Load(in, x);
    Adds(out, in, 1.0f, kLanes);
    PipeBarrier<PIPE_V>();
    Add(out, out, in, kLanes);
    PipeBarrier<PIPE_V>();
    Adds(out, out, 1.0f, kLanes);
    if (repaired) {
        SetFlag<HardEvent::V_MTE2>(EVENT_ID0);
        WaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
    }
    DataCopy(in, Gm(x)[kLanes], kLanes);      // the next tile
    Store(y, out);
}

extern "C" __global__ __aicore__ void mte2_overwrites_what_mte3_reads(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x);
    Adds(in, in, 1.0f, kLanes);
    PipeBarrier<PIPE_V>();
    Add(in, in, in, kLanes);
    Store(y, in);
    if (repaired) {
        SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
        WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    }
    DataCopy(in, Gm(x)[kLanes], kLanes);
}

extern "C" __global__ __aicore__ void mte2_over_mte2(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    DataCopy(in, Gm(x)[kLanes], kLanes);
    if (repaired) {
        PipeBarrier<PIPE_MTE2>();
    }
    Load(in, x);
    Adds(in, in, 1.0f, kLanes);
    PipeBarrier<PIPE_V>();
    Add(in, in, in, kLanes);
    Store(y, in);
}

extern "C" __global__ __aicore__ void mte3_over_mte3(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> inBuf, outBuf;
    pipe.InitBuffer(inBuf, kBytes);
    pipe.InitBuffer(outBuf, kBytes);
    LocalTensor<float> in = inBuf.Get<float>(), out = outBuf.Get<float>();
    Load(in, x);
    Adds(out, in, 1.0f, kLanes);
    PipeBarrier<PIPE_V>();
    Add(out, out, out, kLanes);
    Store(y, in);
    if (repaired) {
        PipeBarrier<PIPE_MTE3>();
    }
    Store(y, out);
}

extern "C" __global__ __aicore__ void scalar_reads_before_v_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x);
    Adds(in, in, 1.0f, kLanes);
    if (repaired) {
        SetFlag<HardEvent::V_S>(EVENT_ID0);
        WaitFlag<HardEvent::V_S>(EVENT_ID0);
    }
    const float first = in.GetValue(0);      // x[0] + 1
    PipeBarrier<PIPE_V>();
    Duplicate(in, 2.0f * first, kLanes);
    Store(y, in);
}

extern "C" __global__ __aicore__ void v_before_the_scalar_write_is_done(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x);
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    in.SetValue(0, 3.0f);
    if (repaired) {
        SetFlag<HardEvent::S_V>(EVENT_ID0);
        WaitFlag<HardEvent::S_V>(EVENT_ID0);
    }
    Adds(in, in, 1.0f, kLanes);
    Store(y, in);
}

// The buffer is given back before V has used it: its next owner may fill it at once.
extern "C" __global__ __aicore__ void buffer_freed_before_its_last_use(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TQue<TPosition::VECIN, 1> que;
    TBuf<> outBuf;
    pipe.InitBuffer(que, 1, kBytes);
    pipe.InitBuffer(outBuf, kBytes);
    LocalTensor<float> out = outBuf.Get<float>();
    LocalTensor<float> in = que.AllocTensor<float>();
    DataCopy(in, Gm(x), kLanes);
    que.EnQue(in);
    in = que.DeQue<float>();
    if (!repaired) {
        que.FreeTensor(in);
    }
    Adds(out, in, 1.0f, kLanes);
    PipeBarrier<PIPE_V>();
    Add(out, out, out, kLanes);
    if (repaired) {
        que.FreeTensor(in);
    }
    LocalTensor<float> next = que.AllocTensor<float>();
    DataCopy(next, Gm(x)[kLanes], kLanes);
    que.EnQue(next);
    next = que.DeQue<float>();
    que.FreeTensor(next);
    Store(y, out);
}

// Two of the three Adds come too early, each in both operands.
extern "C" __global__ __aicore__ void v_before_v_in_a_loop(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x);
    for (int i = 0; i < 3; ++i) {
        Add(in, in, in, kLanes);
        if (repaired) {
            PipeBarrier<PIPE_V>();
        }
    }
}
