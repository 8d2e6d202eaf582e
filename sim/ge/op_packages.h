// The operators that a graph may hold as custom ones: those of the op packages in ASCEND_CUSTOM_OPP_PATH and of the vendors installed
// below ASCEND_OPP_PATH, as their op_host libraries register them.
#pragma once

#include <string>
#include <vector>

#include "sim/host/op.h"

namespace sim {

std::vector<std::string> OpPackageFolders();
// Null when no package has it; HostError when a package cannot be loaded.
const host::Op* FindPackagedOp(const std::string& type);

}  // namespace sim
