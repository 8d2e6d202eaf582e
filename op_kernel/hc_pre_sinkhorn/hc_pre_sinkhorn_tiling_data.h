// Plan of hc_pre_sinkhorn, written by op_host/hc_pre_sinkhorn/hc_pre_sinkhorn_tiling.cpp and read by both kernels.
#pragma once

#include "../common/sinkhorn_rows_plan.h"

using HcPreSinkhornTilingData = SinkhornRowsPlan;
