#include "sim/host/current_soc.h"

namespace sim::host {

static thread_local const SocSpec* current = nullptr;

const SocSpec& CurrentSoc() {
    if (current == nullptr) current = FindSoc("ascend910b");
    return *current;
}

void SetCurrentSoc(const SocSpec& soc) { current = &soc; }

}  // namespace sim::host
