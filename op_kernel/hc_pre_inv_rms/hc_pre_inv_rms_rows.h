// What both kernels of hc_pre_inv_rms share: the rows of a core, the tiles they are read in, the copies. `Kernel`, which derives from
// this, adds InitWork, Start, Compute and Finish.
#pragma once

#include "../common/rows_copy.h"
#include "hc_pre_inv_rms_tiling_data.h"

namespace hc {

template <typename Kernel, typename T>
class HcPreInvRmsRows {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const HcPreInvRmsTilingData* tiling, AscendC::TPipe* pipe) {
        tiling_ = *tiling;
        const uint32_t core = AscendC::GetBlockIdx();
        rows_ = core < tiling_.formerCores ? tiling_.rowsPerFormer : tiling_.rowsPerTail;
        const uint64_t firstRow = static_cast<uint64_t>(core) * tiling_.rowsPerTail + Min(core, tiling_.formerCores);
        if (rows_ == 0) return;
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x) + firstRow * tiling_.rowElements, rows_ * tiling_.rowElements);
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y) + firstRow, rows_);
        pipe->InitBuffer(xQue_, 2, tiling_.xBytes);
        pipe->InitBuffer(yQue_, 2, tiling_.outBytes);
        pipe->InitBuffer(sumBuf_, tiling_.sumBytes);
        Self().InitWork(pipe);
    }

    __aicore__ inline void Process() {
        for (uint32_t first = 0; first < rows_; first += tiling_.outRows) {
            const uint32_t rows = Min(tiling_.outRows, rows_ - first);
            Self().Start(rows);
            for (uint32_t row = 0; row < rows; row += tiling_.rowFactor)
                for (uint32_t piece = 0; piece < tiling_.columnLoop; ++piece) {
                    const uint32_t tileRows = Min(tiling_.rowFactor, rows - row);
                    CopyIn(first + row, tileRows, piece);
                    Self().Compute(row, tileRows, piece);
                }
            Self().Finish(rows);
            CopyOut(first, rows);
        }
    }

protected:
    __aicore__ inline uint32_t Columns(uint32_t piece) const {
        const uint64_t rest = tiling_.rowElements - static_cast<uint64_t>(piece) * tiling_.columnFactor;
        return rest < tiling_.columnFactor ? static_cast<uint32_t>(rest) : tiling_.columnFactor;
    }

private:
    __aicore__ inline Kernel& Self() { return *static_cast<Kernel*>(this); }

    __aicore__ inline void CopyIn(uint32_t row, uint32_t rows, uint32_t piece) {
        AscendC::LocalTensor<T> x = xQue_.template AllocTensor<T>();
        const uint32_t columns = Columns(piece);  // several rows only when a tile holds whole rows: GM pitch = columns
        CopyRowsIn(x, x_[row * tiling_.rowElements + static_cast<uint64_t>(piece) * tiling_.columnFactor], rows, columns, columns);
        xQue_.EnQue(x);
    }

    __aicore__ inline void CopyOut(uint32_t row, uint32_t rows) {
        AscendC::LocalTensor<float> y = yQue_.template DeQue<float>();
        CopyFlatOut(y_[row], y, rows);
        yQue_.FreeTensor(y);
    }

protected:
    HcPreInvRmsTilingData tiling_;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> xQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> yQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> sumBuf_;

private:
    uint32_t rows_ = 0;
    AscendC::GlobalTensor<T> x_;
    AscendC::GlobalTensor<float> y_;
};

}  // namespace hc
