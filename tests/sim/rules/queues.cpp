// TQue: AllocTensor -> EnQue -> DeQue -> FreeTensor, each once and on the queue that owns the buffer.
#include "rule_kernel.h"

using InQue = TQue<TPosition::VECIN, 1>;
using OutQue = TQue<TPosition::VECOUT, 1>;

extern "C" __global__ __aicore__ void tensor_freed_twice(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    InQue que;
    pipe.InitBuffer(que, 1, kBytes);
    LocalTensor<float> in = que.AllocTensor<float>();
    DataCopy(in, Gm(x), kLanes);
    que.EnQue(in);
    in = que.DeQue<float>();
    que.FreeTensor(in);
    if (!repaired) {
        que.FreeTensor(in);
    }
}

extern "C" __global__ __aicore__ void enque_without_alloc(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    InQue que;
    pipe.InitBuffer(que, 1, kBytes);
    LocalTensor<float> in = que.AllocTensor<float>();
    DataCopy(in, Gm(x), kLanes);
    que.EnQue(in);
    in = que.DeQue<float>();
    que.FreeTensor(in);
    if (repaired) {
        in = que.AllocTensor<float>();
        DataCopy(in, Gm(x), kLanes);
    }
    que.EnQue(in);
    in = que.DeQue<float>();
    que.FreeTensor(in);
}

extern "C" __global__ __aicore__ void deque_of_an_empty_queue(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    InQue que;
    pipe.InitBuffer(que, 1, kBytes);
    LocalTensor<float> in = que.AllocTensor<float>();
    DataCopy(in, Gm(x), kLanes);
    if (repaired) {
        que.EnQue(in);
    }
    in = que.DeQue<float>();
    que.FreeTensor(in);
}

extern "C" __global__ __aicore__ void alloc_with_no_free_buffer(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    InQue que;
    pipe.InitBuffer(que, repaired ? 2 : 1, kBytes);
    LocalTensor<float> first = que.AllocTensor<float>();
    LocalTensor<float> second = que.AllocTensor<float>();
    que.FreeTensor(first);
    que.FreeTensor(second);
}

extern "C" __global__ __aicore__ void enque_beyond_the_depth(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    InQue que;
    pipe.InitBuffer(que, 2, kBytes);
    LocalTensor<float> first = que.AllocTensor<float>();
    DataCopy(first, Gm(x), kLanes);
    que.EnQue(first);
    if (repaired) {
        first = que.DeQue<float>();
    }
    LocalTensor<float> second = que.AllocTensor<float>();
    DataCopy(second, Gm(x), kLanes);
    que.EnQue(second);
    second = que.DeQue<float>();
    que.FreeTensor(first);
    que.FreeTensor(second);
}

extern "C" __global__ __aicore__ void tensor_of_another_queue(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    InQue inQue;
    OutQue outQue;
    pipe.InitBuffer(inQue, 1, kBytes);
    pipe.InitBuffer(outQue, 1, kBytes);
    LocalTensor<float> in = inQue.AllocTensor<float>();
    DataCopy(in, Gm(x), kLanes);
    inQue.EnQue(in);
    in = inQue.DeQue<float>();
    LocalTensor<float> out = outQue.AllocTensor<float>();
    Adds(out, in, 1.0f, kLanes);
    outQue.EnQue(repaired ? out : in);
    out = outQue.DeQue<float>();
    DataCopy(Gm(y), out, kLanes);
    outQue.FreeTensor(out);
    inQue.FreeTensor(in);
}

extern "C" __global__ __aicore__ void tensor_never_freed(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    InQue que;
    pipe.InitBuffer(que, 1, kBytes);
    LocalTensor<float> in = que.AllocTensor<float>();
    DataCopy(in, Gm(x), kLanes);
    que.EnQue(in);
    in = que.DeQue<float>();
    if (repaired) {
        que.FreeTensor(in);
    }
}
