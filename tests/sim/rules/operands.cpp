// Operand rules: alignment, extent, limits, types, overlap.
#include "rule_kernel.h"

// y = x + x on 64 floats; `offset` and `count` are where the kernels go wrong.
extern "C" __global__ __aicore__ void unaligned_vector_operand(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 2 * kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x, 2 * kLanes);
    LocalTensor<float> shifted = in[repaired ? 8 : 1];   // 8 floats are one 32-byte block
    Adds(shifted, shifted, 1.0f, 8);
    Store(y, in, 2 * kLanes);
}

extern "C" __global__ __aicore__ void copy_length_not_32_bytes(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    if (repaired) {
        DataCopyPad(in, Gm(x), DataCopyExtParams(1, 7 * sizeof(float), 0, 0, 0), DataCopyPadExtParams<float>(true, 0, 1, 0));
    } else {
        DataCopy(in, Gm(x), 7);
    }
    SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    DataCopy(Gm(y), in, 8);
}

extern "C" __global__ __aicore__ void operand_past_its_buffer(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> small, neighbour;
    pipe.InitBuffer(small, kBytes);
    pipe.InitBuffer(neighbour, kBytes);
    LocalTensor<float> in = small.Get<float>();
    Load(in, x);
    Load(neighbour.Get<float>(), x);
    Adds(in, in, 1.0f, repaired ? kLanes : kLanes + 8);
    Store(y, in);
}

extern "C" __global__ __aicore__ void repeats_past_the_buffer(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf, neighbour;
    pipe.InitBuffer(buf, 2 * kBytes);
    pipe.InitBuffer(neighbour, 2 * kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x, 2 * kLanes);
    Adds(in, in, 1.0f, uint64_t(kLanes), 2, UnaryRepeatParams(1, 1, repaired ? 8 : 16, repaired ? 8 : 16));
    Store(y, in, 2 * kLanes);
}

extern "C" __global__ __aicore__ void local_memory_overflow(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TQue<TPosition::VECIN, 1> que;
    pipe.InitBuffer(que, 2, repaired ? 64 * 1024 : 256 * 1024);
    LocalTensor<float> in = que.AllocTensor<float>();
    DataCopy(in, Gm(x), kLanes);
    que.EnQue(in);
    in = que.DeQue<float>();
    Adds(in, in, 1.0f, kLanes);
    Store(y, in);
    SetFlag<HardEvent::MTE3_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
    que.FreeTensor(in);
}

extern "C" __global__ __aicore__ void read_of_unwritten_bytes(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 2 * kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x, repaired ? 2 * kLanes : kLanes);
    Adds(in, in, 1.0f, 2 * kLanes);
    Store(y, in, 2 * kLanes);
}

// The bytes DataCopyPad adds up to 32 are undefined unless padding is asked for.
extern "C" __global__ __aicore__ void read_of_dummy_bytes(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    DataCopyPad(in, Gm(x), DataCopyExtParams(1, 5 * sizeof(float), 0, 0, 0),
                DataCopyPadExtParams<float>(repaired, 0, repaired ? 3 : 0, 0));
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Adds(in, in, 1.0f, 8);
    Store(y, in, 8);
}

extern "C" __global__ __aicore__ void repeat_over_255(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 256 * 32);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x, 256 * 8);
    const UnaryRepeatParams blockwise(1, 1, 1, 1);
    if (repaired) {
        Adds(in, in, 1.0f, uint64_t(8), 255, blockwise);
        Adds(in[255 * 8], in[255 * 8], 1.0f, uint64_t(8), 1, blockwise);
    } else {
        Adds(in, in, 1.0f, uint64_t(8), 256, blockwise);
    }
    Store(y, in, 256 * 8);
}

extern "C" __global__ __aicore__ void block_count_over_4095(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 4096 * 32);
    LocalTensor<float> in = buf.Get<float>();
    DataCopy(in, Gm(x), DataCopyParams(repaired ? 2048 : 4096, repaired ? 2 : 1, 0, 0));
    SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    DataCopy(Gm(y), in, 4096 * 8);
}

extern "C" __global__ __aicore__ void repeat_stride_over_255(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 512 * 32);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x, 512 * 8);
    const int stride = repaired ? 255 : 256;
    Adds(in, in, 1.0f, uint64_t(8), 2, UnaryRepeatParams(1, 1, stride, stride));
    Store(y, in, 512 * 8);
}

extern "C" __global__ __aicore__ void mask_longer_than_a_repeat(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 2 * kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x, 2 * kLanes);
    Adds(in, in, 1.0f, uint64_t(repaired ? 64 : 128), 1, UnaryRepeatParams());
    Store(y, in, 2 * kLanes);
}

extern "C" __global__ __aicore__ void bit_mask_high_word_of_float(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x);
    uint64_t mask[2] = {0x5555555555555555ull, repaired ? 0ull : 1ull};
    Adds(in, in, 1.0f, mask, 1, UnaryRepeatParams());
    Store(y, in);
}

extern "C" __global__ __aicore__ void partial_overlap(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 2 * kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x, 2 * kLanes);
    Adds(in[repaired ? 64 : 8], in, 1.0f, kLanes);
    Store(y, in, 2 * kLanes);
}

// The bits of a comparison take the place of floats that it still reads.
extern "C" __global__ __aicore__ void compare_over_its_source(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 2 * kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x, 2 * kLanes);
    CompareScalar(in[repaired ? kLanes : 8].ReinterpretCast<uint8_t>(), in, 3.0f, CMPMODE::GT, kLanes);
}

extern "C" __global__ __aicore__ void select_over_its_mask(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, 3 * kBytes);
    LocalTensor<float> in = buf.Get<float>(), out = in[2 * kLanes];
    Load(in, x, 3 * kLanes);
    LocalTensor<uint8_t> bits = in[(repaired ? 1 : 2) * kLanes].ReinterpretCast<uint8_t>();
    Select(out, bits, in, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, kLanes);
}

extern "C" __global__ __aicore__ void gather_over_its_source(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf, offsetBuf;
    pipe.InitBuffer(buf, 2 * kBytes);
    pipe.InitBuffer(offsetBuf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    LocalTensor<int32_t> index = offsetBuf.Get<int32_t>();
    Load(in, x, 2 * kLanes);
    CreateVecIndex(index, 0, kLanes);
    PipeBarrier<PIPE_V>();
    Muls(index, index, 4, kLanes);
    PipeBarrier<PIPE_V>();
    Gather(in[repaired ? kLanes : kLanes / 2], in, index.ReinterpretCast<uint32_t>(), 0, kLanes);
}

extern "C" __global__ __aicore__ void gather_over_its_offsets(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf, offsetBuf;
    pipe.InitBuffer(buf, kBytes);
    pipe.InitBuffer(offsetBuf, 2 * kBytes);
    LocalTensor<float> in = buf.Get<float>();
    LocalTensor<int32_t> index = offsetBuf.Get<int32_t>();
    Load(in, x);
    Duplicate(index, 4, kLanes);
    PipeBarrier<PIPE_V>();
    Gather(index[repaired ? 0 : 8].ReinterpretCast<float>(), in, index.ReinterpretCast<uint32_t>(), 0, kLanes);
}

extern "C" __global__ __aicore__ void gather_by_offsets_past_the_memory(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf, offsetBuf;
    pipe.InitBuffer(buf, 2 * kBytes);
    pipe.InitBuffer(offsetBuf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    LocalTensor<int32_t> index = offsetBuf.Get<int32_t>();
    Load(in, x);
    Duplicate(index, 4, kLanes);
    PipeBarrier<PIPE_V>();
    Gather(in[kLanes], in, index[repaired ? 0 : 1 << 20].ReinterpretCast<uint32_t>(), 0, kLanes);
}

extern "C" __global__ __aicore__ void gather_by_unwritten_offsets(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf, offsetBuf;
    pipe.InitBuffer(buf, 2 * kBytes);
    pipe.InitBuffer(offsetBuf, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    LocalTensor<int32_t> index = offsetBuf.Get<int32_t>();
    Load(in, x);
    Duplicate(index, 4, repaired ? kLanes : kLanes / 2);
    PipeBarrier<PIPE_V>();
    Gather(in[kLanes], in, index.ReinterpretCast<uint32_t>(), 0, kLanes);
}

extern "C" __global__ __aicore__ void scalar_write_past_its_buffer(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> small, neighbour;
    pipe.InitBuffer(small, kBytes);
    pipe.InitBuffer(neighbour, 16 * kBytes);
    small.Get<float>().SetValue(repaired ? 0 : 1000, 1.0f);
}

extern "C" __global__ __aicore__ void tensor_without_memory(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf;
    pipe.InitBuffer(buf, kBytes);
    LocalTensor<float> in, out = buf.Get<float>();
    if (repaired) {
        in = out;
    }
    Load(out, x);
    Adds(out, in, 1.0f, kLanes);
}
