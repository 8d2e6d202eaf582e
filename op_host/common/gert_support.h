// Between the gert contexts of CANN and the pure tiling functions.
#pragma once

#include <cstdio>
#include <string>

#include "exe_graph/runtime/shape.h"
#include "exe_graph/runtime/tiling_context.h"
#include "graph/types.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling_base.h"
#if __has_include("toolchain/slog.h")
#include "toolchain/slog.h"
#endif

namespace custom_ops {

// The op's sentence goes to the host log, or to the error stream of a toolkit that does not ship its log header.
inline ge::graphStatus Refuse(const std::string& message) {
#if __has_include("toolchain/slog.h")
    DlogRecord(OP, DLOG_ERROR, "%s", message.c_str());
#else
    std::fprintf(stderr, "%s\n", message.c_str());
#endif
    return ge::GRAPH_FAILED;
}

inline std::string Text(const gert::Shape& shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.GetDimNum(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape.GetDim(i));
    return text + "]";
}

inline ChipSpec ChipOf(gert::TilingContext* context) {
    const platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    ChipSpec chip{};
    chip.vectorCores = platform.GetCoreNumAiv();
    chip.cubeCores = platform.GetCoreNumAic();
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, chip.ubBytes);
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::L1, chip.l1Bytes);
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::L0_A, chip.l0aBytes);
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::L0_B, chip.l0bBytes);
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::L0_C, chip.l0cBytes);
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::L2, chip.l2Bytes);
    // ASCEND910B names 910B and 910_93 in every toolkit; the name of the 950 changed between toolkits, so it is "not that".
    chip.regbase = platform.GetSocVersion() != platform_ascendc::SocVersion::ASCEND910B;
    chip.name = chip.regbase ? "ascend950" : "ascend910b";
    return chip;
}

// Product of the dimensions before the last `inner` ones: the tokens of a 3-D or 4-D tensor.
inline int64_t LeadingSize(const gert::Shape& shape, size_t inner) {
    int64_t size = 1;
    for (size_t i = 0; i + inner < shape.GetDimNum(); ++i) size *= shape.GetDim(i);
    return size;
}

// Bytes of the workspace that the toolkit's own library wants, before the op's.
inline size_t LibraryWorkspace(gert::TilingContext* context) {
    return platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetLibApiWorkSpaceSize();
}

// A plan into its context.
template <typename TilingData>
ge::graphStatus Accept(gert::TilingContext* context, const char* op, const TilingData& plan, uint32_t blocks, uint64_t key = 0,
                       size_t workspaceBytes = 0) {
    TilingData* data = context->GetTilingData<TilingData>();
    size_t* workspace = context->GetWorkspaceSizes(1);
    if (data == nullptr || workspace == nullptr) return Refuse(std::string(op) + ": no room for tiling data");
    *data = plan;
    workspace[0] = workspaceBytes;
    context->SetTilingKey(key);
    context->SetBlockDim(blocks);
    return ge::GRAPH_SUCCESS;
}

inline bool SameLeading(const gert::Shape& a, size_t innerA, const gert::Shape& b, size_t innerB) {
    if (a.GetDimNum() - innerA != b.GetDimNum() - innerB) return false;
    for (size_t i = 0; i + innerA < a.GetDimNum(); ++i)
        if (a.GetDim(i) != b.GetDim(i)) return false;
    return true;
}

}  // namespace custom_ops
