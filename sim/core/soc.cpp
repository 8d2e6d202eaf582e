#include "sim/core/soc.h"

#include <strings.h>

#include "sim/core/soc_table.h"

namespace sim {

const SocSpec* SocTable(int* count) {
    *count = kSocCount;
    return kSocTable;
}

const SocSpec* FindSoc(const char* name) {
    if (name == nullptr) return nullptr;
    for (int i = 0; i < kSocCount; ++i)
        if (strcasecmp(kSocTable[i].name, name) == 0) return &kSocTable[i];
    for (int i = 0; i < kSocAliasCount; ++i)
        if (strcasecmp(kSocAliases[i].alias, name) == 0) return &kSocTable[kSocAliases[i].index];
    return nullptr;
}

}  // namespace sim
