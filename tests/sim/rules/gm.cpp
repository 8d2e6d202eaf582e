// Global memory: extents, and cores that share bytes.
#include "rule_kernel.h"

extern "C" __global__ __aicore__ void copy_in_past_the_tensor(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 2 * kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x, repaired ? kLanes : kLanes + 8);      // x and y hold 64 floats
    Adds(in, in, 1.0f, kLanes);
    Store(y, in);
}

extern "C" __global__ __aicore__ void copy_out_past_the_tensor(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 2 * kBytes);
    LocalTensor<float> out = buf.Get<float>();
    Duplicate(out, 1.0f, 2 * kLanes);
    Store(y, out, repaired ? kLanes : kLanes + 8);
}

extern "C" __global__ __aicore__ void write_into_an_input(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x);
    Store(repaired ? y : x, in);
}

// Every core must own the bytes it writes: a 32-byte copy of a 16-byte share overwrites the neighbour's.
extern "C" __global__ __aicore__ void tail_written_over_the_neighbour(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> out = buf.Get<float>();
    Duplicate(out, float(GetBlockIdx()), kLanes);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    GlobalTensor<float> share = Gm(y)[GetBlockIdx() * 4];
    if (repaired) {
        DataCopyPad(share, out, DataCopyExtParams(1, 4 * sizeof(float), 0, 0, 0));
    } else {
        DataCopy(share, out, 8);
    }
}

// Block 0 fills y, the others read it.
extern "C" __global__ __aicore__ void read_of_another_cores_result(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> local = buf.Get<float>();
    if (GetBlockIdx() == 0) {
        Load(local, x);
        Store(y, local);
    }
    if (repaired) {
        SyncAll();
    }
    if (GetBlockIdx() != 0) {
        DataCopy(local, Gm(y), kLanes);
    }
}

extern "C" __global__ __aicore__ void return_before_sync_all(GM_ADDR x, GM_ADDR y, bool repaired) {
    if (GetBlockIdx() == 0 && !repaired) {
        return;
    }
    SyncAll();
}

// What SetValue writes stays in the core's data cache, also after the whole cache was cleaned once.
extern "C" __global__ __aicore__ void value_left_in_the_data_cache(GM_ADDR x, GM_ADDR y, bool repaired) {
    GlobalTensor<float> out = Gm(y);
    for (uint32_t i = 0; i < kLanes; i += 16) {
        out.SetValue(i, 1.0f);
    }
    DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(out);
    out.SetValue(0, 2.0f);
    if (repaired) {
        DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(out);
    }
}

// Cores add to the same bytes: in atomic mode the sum is right, and the bytes must have been written before.
extern "C" __global__ __aicore__ void cores_add_to_the_same_bytes(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> local = buf.Get<float>();
    Load(local, x);
    if (repaired) {
        SetAtomicAdd<float>();
    }
    SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID1);
    WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID1);
    DataCopy(Gm(y), local, kLanes);
    SetAtomicNone();
}
