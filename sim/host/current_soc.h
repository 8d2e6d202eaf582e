// The SoC that the calling host thread simulates.
#pragma once

#include <string>

#include "sim/core/soc.h"

namespace sim::host {

const SocSpec& CurrentSoc();
void SetCurrentSoc(const SocSpec& soc);
// Of the threads that did not set one.
void SetDefaultSoc(const SocSpec& soc);
// What is said of a name that FindSoc does not know.
std::string UnknownSoc(const char* name);

}  // namespace sim::host
