// The part of hc_pre_sinkhorn and hc_pre that turns mixes into y, post and comb_frag: which core takes which rows and columns, and
// how it walks them.
#pragma once

#include <cstdint>
#include <string>

#include "../../op_kernel/common/sinkhorn_rows_plan.h"
#include "tiling_base.h"

namespace custom_ops {

// What the attributes and the shape of x have to be; `op` starts the sentence. "" when they are.
std::string SinkhornRowsMisfit(const char* op, uint64_t tokens, int64_t hcMult, uint64_t hidden, int64_t sinkhornIters, float hcEps);

// Rows, and with few tokens columns, over cores. plan: tokens, hidden.
void SplitSinkhornRows(SinkhornRowsPlan& plan, const ChipSpec& chip);

// Batches, tiles and UB of the busiest core's share. plan: hcMult, columnsPerCore, rowsPerFormer, mixPitch, mixScales, mixParts. False
// when not even one token fits.
bool TileSinkhornRows(SinkhornRowsPlan& plan, const ChipSpec& chip, uint32_t elementBytes);

}  // namespace custom_ops
