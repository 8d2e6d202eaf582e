// What generate_soc_table.py makes of soc_table.json.
#pragma once

#include "sim/core/soc.h"

namespace sim {

struct SocAlias {
    const char* alias;
    int index;
};
extern const SocSpec kSocTable[];
extern const int kSocCount;
extern const SocAlias kSocAliases[];
extern const int kSocAliasCount;

}  // namespace sim
