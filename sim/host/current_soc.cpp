#include "sim/host/current_soc.h"

#include <atomic>

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

}  // namespace sim::host
