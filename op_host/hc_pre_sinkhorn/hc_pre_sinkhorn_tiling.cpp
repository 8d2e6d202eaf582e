#include "hc_pre_sinkhorn_tiling.h"

#include <cinttypes>

#include "../common/sinkhorn_rows_tiling.h"

namespace custom_ops {

Result<HcPreSinkhornTilingData> TileHcPreSinkhorn(const HcPreSinkhornShape& s, const ChipSpec& chip) {
    const std::string misfit = SinkhornRowsMisfit("hc_pre_sinkhorn", s.tokens, s.hcMult, s.hidden, s.sinkhornIters, s.hcEps);
    if (!misfit.empty()) return Failure{misfit};

    HcPreSinkhornTilingData plan{};
    plan.tokens = static_cast<uint32_t>(s.tokens);
    plan.hcMult = static_cast<uint32_t>(s.hcMult);
    plan.hidden = static_cast<uint32_t>(s.hidden);
    plan.sinkhornIters = static_cast<uint32_t>(s.sinkhornIters);
    plan.hcEps = s.hcEps;
    const uint32_t mix = (2 + plan.hcMult) * plan.hcMult;
    plan.mixPitch = chip.regbase ? mix : static_cast<uint32_t>(AlignUp(mix, 8));  // gathers take rows as they are
    plan.mixParts = 1;
    SplitSinkhornRows(plan, chip);
    if (s.tokens == 0 || TileSinkhornRows(plan, chip, s.elementBytes)) return plan;
    return Error("hc_pre_sinkhorn: %s has %" PRIu64 " B of UB, too few for one token of hc_mult %u", chip.name, chip.ubBytes,
                 plan.hcMult);
}

}  // namespace custom_ops
