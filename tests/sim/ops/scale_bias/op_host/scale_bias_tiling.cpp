#include "scale_bias_tiling.h"

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
static ge::graphStatus Tile(gert::TilingContext* context) {
    const gert::Shape& x = context->GetInputShape(0)->GetStorageShape();
    const int64_t width = x.GetDim(x.GetDimNum() - 1);
    const int64_t rows = x.GetShapeSize() / width;
    if (width > 4096) return ge::GRAPH_FAILED;
    platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    const int64_t cores = platform.GetCoreNumAiv();
    const int64_t rowsPerCore = (rows + cores - 1) / cores;
    ScaleBiasTiling tiling;
    tiling.set_hasBias(context->GetOptionalInputShape(1) != nullptr);
    tiling.set_width(width);
    tiling.set_scale(*context->GetAttrs()->GetFloat(0));
    const int32_t marks[] = {1, -2, 3};
    tiling.set_marks(marks);
    tiling.row.set_rowsPerCore(uint32_t(rowsPerCore));
    tiling.row.set_rows(uint32_t(rows));
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->SetBlockDim(uint32_t((rows + rowsPerCore - 1) / rowsPerCore));
    context->SetTilingKey(context->GetInputDesc(0)->GetDataType() == ge::DT_FLOAT ? 1 : 2);
    context->GetWorkspaceSizes(1)[0] = 0;
    return ge::GRAPH_SUCCESS;
}
struct CompileInfo {};
static ge::graphStatus Parse(gert::TilingParseContext*) { return ge::GRAPH_SUCCESS; }
IMPL_OP_OPTILING(ScaleBias).Tiling(Tile).TilingParse<CompileInfo>(Parse);
}  // namespace optiling
