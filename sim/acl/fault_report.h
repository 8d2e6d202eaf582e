// Host code that follows a device pointer: says which memory was touched before the process takes its course.
#pragma once

namespace sim::acl {

void ReportFaultsOnDeviceMemory();

}  // namespace sim::acl
