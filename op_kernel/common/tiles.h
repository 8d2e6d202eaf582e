// Which rows and columns a core works on, and the tiles it walks them in. `Tiling` is a plan with usedCores, coresPerToken,
// columnsPerCore, formerCores, rowsPerFormer, rowsPerTail, hidden, batchRows, rowFactor and dFactor.
#pragma once

#include "rows_copy.h"

namespace hc {

// A core's share: rows [firstRow, firstRow + rows) and columns [firstColumn, firstColumn + columns).
struct CoreShare {
    uint64_t firstRow;
    uint32_t rows;
    uint32_t firstColumn;
    uint32_t columns;
    uint32_t part;  // of the cores that share these rows, counted from 0

    template <typename Tiling>
    __aicore__ inline void Init(const Tiling& tiling, uint32_t core) {
        const uint32_t group = core / tiling.coresPerToken;
        part = core % tiling.coresPerToken;
        rows = group < tiling.formerCores ? tiling.rowsPerFormer : tiling.rowsPerTail;
        firstRow = static_cast<uint64_t>(group) * tiling.rowsPerTail + Min(group, tiling.formerCores);
        firstColumn = part * tiling.columnsPerCore;
        columns = Min(tiling.columnsPerCore, tiling.hidden - firstColumn);
    }
};

// Part of the share that is in UB at a time; walks the columns of a group of rows, then the next rows. A tile never reaches into the
// next batch, whose weights are not known yet.
struct Tile {
    uint32_t row = 0;  // in the core's share, as is column
    uint32_t rows = 0;
    uint32_t column = 0;
    uint32_t columns = 0;

    template <typename Tiling>
    __aicore__ inline void First(const Tiling& tiling, const CoreShare& share) {
        row = column = 0;
        Fit(tiling, share);
    }
    // False after the last.
    template <typename Tiling>
    __aicore__ inline bool Next(const Tiling& tiling, const CoreShare& share) {
        column += columns;
        if (column >= share.columns) {
            column = 0;
            row += rows;
        }
        if (row >= share.rows) return false;
        Fit(tiling, share);
        return true;
    }

private:
    template <typename Tiling>
    __aicore__ inline void Fit(const Tiling& tiling, const CoreShare& share) {
        const uint32_t batchEnd = Min(share.rows, (row / tiling.batchRows + 1) * tiling.batchRows);
        rows = Min(tiling.rowFactor, batchEnd - row);
        columns = Min(tiling.dFactor, share.columns - column);
    }
};

}  // namespace hc
