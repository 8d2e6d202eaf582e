#pragma once
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(RowTiling)
TILING_DATA_FIELD_DEF(uint32_t, rowsPerCore);
TILING_DATA_FIELD_DEF(uint32_t, rows);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(RowTilingOp, RowTiling)

BEGIN_TILING_DATA_DEF(ScaleBiasTiling)
TILING_DATA_FIELD_DEF(uint8_t, hasBias);
TILING_DATA_FIELD_DEF(int64_t, width);
TILING_DATA_FIELD_DEF(float, scale);
TILING_DATA_FIELD_DEF_ARR(int32_t, 3, marks);
TILING_DATA_FIELD_DEF_STRUCT(RowTiling, row);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ScaleBias, ScaleBiasTiling)
}  // namespace optiling
