#include "sim/host/current_soc.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "sim/host/text.h"

namespace sim::host {
namespace {

thread_local const SocSpec* ofThread = nullptr;
std::atomic<const SocSpec*> ofProcess{nullptr};

}  // namespace

const SocSpec& CurrentSoc() {
    if (ofThread != nullptr) return *ofThread;
    const SocSpec* soc = ofProcess.load();
    return soc != nullptr ? *soc : *FindSoc("ascend910b");
}

void SetCurrentSoc(const SocSpec& soc) { ofThread = &soc; }

void SetDefaultSoc(const SocSpec& soc) { ofProcess = &soc; }

std::string UnknownSoc(const char* name) {
    int count = 0;
    const SocSpec* table = SocTable(&count);
    std::vector<std::string> families;
    for (int i = 0; i < count; ++i)
        if (std::find(families.begin(), families.end(), table[i].family) == families.end()) families.push_back(table[i].family);
    return Format("soc '%s' is not known; families are %s; `custom-ops sim socs` lists all", name, Join(families).c_str());
}

}  // namespace sim::host
