// z = alpha * x + y, elementwise; plain-struct tiling.
#include "kernel_operator.h"

#include "axpy_tiling_data.h"

using namespace AscendC;

namespace {
template <typename T>
class AxpyKernel {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, const AxpyTilingData& tiling, TPipe* pipe) {
        tiling_ = tiling;
        x_.SetGlobalBuffer((__gm__ T*)x);
        y_.SetGlobalBuffer((__gm__ T*)y);
        z_.SetGlobalBuffer((__gm__ T*)z);
        pipe->InitBuffer(xQueue_, 2, tiling.tile.elements * sizeof(T));
        pipe->InitBuffer(yQueue_, 2, tiling.tile.elements * sizeof(T));
        pipe->InitBuffer(zQueue_, 2, tiling.tile.elements * sizeof(T));
    }
    __aicore__ inline void Process() {
        const uint64_t first = uint64_t(GetBlockIdx()) * tiling_.tile.tilesPerCore * tiling_.tile.elements;
        for (uint32_t i = 0; i < tiling_.tile.tilesPerCore; ++i) {
            const uint64_t begin = first + uint64_t(i) * tiling_.tile.elements;
            if (begin >= tiling_.total) return;
            const uint64_t left = tiling_.total - begin;
            const uint32_t count = left < tiling_.tile.elements ? uint32_t(left) : tiling_.tile.elements;
            CopyIn(begin, count);
            Compute(count);
            CopyOut(begin, count);
        }
    }

private:
    __aicore__ inline void CopyIn(uint64_t begin, uint32_t count) {
        DataCopyExtParams params{1, uint32_t(count * sizeof(T)), 0, 0, 0};
        DataCopyPadExtParams<T> pad{false, 0, 0, 0};
        LocalTensor<T> x = xQueue_.template AllocTensor<T>();
        LocalTensor<T> y = yQueue_.template AllocTensor<T>();
        DataCopyPad(x, x_[begin], params, pad);
        DataCopyPad(y, y_[begin], params, pad);
        xQueue_.EnQue(x);
        yQueue_.EnQue(y);
    }
    __aicore__ inline void Compute(uint32_t count) {
        LocalTensor<T> x = xQueue_.template DeQue<T>();
        LocalTensor<T> y = yQueue_.template DeQue<T>();
        LocalTensor<T> z = zQueue_.template AllocTensor<T>();
        Muls(z, x, T(tiling_.alpha), int32_t(count));
        PipeBarrier<PIPE_V>();
        Add(z, z, y, int32_t(count));
        zQueue_.EnQue(z);
        xQueue_.FreeTensor(x);
        yQueue_.FreeTensor(y);
    }
    __aicore__ inline void CopyOut(uint64_t begin, uint32_t count) {
        LocalTensor<T> z = zQueue_.template DeQue<T>();
        DataCopyPad(z_[begin], z, DataCopyExtParams{1, uint32_t(count * sizeof(T)), 0, 0, 0});
        zQueue_.FreeTensor(z);
    }

    AxpyTilingData tiling_;
    GlobalTensor<T> x_, y_, z_;
    TQue<QuePosition::VECIN, 2> xQueue_, yQueue_;
    TQue<QuePosition::VECOUT, 2> zQueue_;
};
}  // namespace

extern "C" __global__ __aicore__ void axpy(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    REGISTER_TILING_DEFAULT(AxpyTilingData);
    GET_TILING_DATA(data, tiling);
    TPipe pipe;
    AxpyKernel<DTYPE_X> op;
    op.Init(x, y, z, data, &pipe);
    op.Process();
}
