// The SoC that the calling host thread simulates.
#pragma once

#include "sim/core/soc.h"

namespace sim::host {

const SocSpec& CurrentSoc();
void SetCurrentSoc(const SocSpec& soc);
// Of the threads that did not set one.
void SetDefaultSoc(const SocSpec& soc);

}  // namespace sim::host
