// Operators of the graph engine itself that parser plugins use: their parameters and attributes, no more.
#pragma once

#include <string>

#include "sim/host/op.h"

namespace sim {

// Null: it is not one of them.
const host::Op* FindBuiltinOp(const std::string& type);

}  // namespace sim
