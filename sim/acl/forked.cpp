#include "sim/acl/forked.h"

#include <pthread.h>

#include <atomic>

#include "sim/acl/status.h"

namespace sim::acl {
namespace {

std::atomic<bool> used{false}, forked{false};

}  // namespace

bool IsForkedProcess() { return forked.load(std::memory_order_relaxed); }

std::string ForkRefusal() {
    if (!IsForkedProcess()) return {};
    return "this process was forked from one that uses the NPU, and cannot use it: start processes with multiprocessing's \"spawn\", "
           "or before the first use of the NPU";
}

void RefuseInForkedProcess() {
    if (IsForkedProcess()) Refuse(kContextNull, "%s", ForkRefusal().c_str());
}

void DeviceIsUsed() {
    static const bool watches = pthread_atfork(nullptr, nullptr, [] { forked = used.load(); }) == 0;
    (void)watches;
    used = true;
}

}  // namespace sim::acl
