// A process forked from one that has used the device: the workers of its streams exist in the other process only.
#pragma once

#include <string>

namespace sim::acl {

void RefuseInForkedProcess();   // whatever would wait for such a worker, or for a lock that one held
std::string ForkRefusal();      // what that says; empty in a process of its own
bool IsForkedProcess();
void DeviceIsUsed();            // from now on forked processes cannot

}  // namespace sim::acl
