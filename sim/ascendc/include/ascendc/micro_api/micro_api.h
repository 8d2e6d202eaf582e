// Register-level API of arch 3510 (950): AscendC::Reg, alias AscendC::MicroAPI.
#pragma once

#include "ascendc/micro_api/arithmetic.h"
#include "ascendc/micro_api/cast.h"
#include "ascendc/micro_api/compare.h"
#include "ascendc/micro_api/gather.h"
#include "ascendc/micro_api/load.h"
#include "ascendc/micro_api/mask.h"
#include "ascendc/micro_api/reduce.h"
#include "ascendc/micro_api/scope.h"
#include "ascendc/micro_api/shuffle.h"
#include "ascendc/micro_api/store.h"
#include "ascendc/micro_api/unaligned.h"
#include "ascendc/not_modelled.h"

namespace AscendC::Reg {

SIM_NOT_MODELLED(Histograms)
SIM_NOT_MODELLED(Slide)

}  // namespace AscendC::Reg
