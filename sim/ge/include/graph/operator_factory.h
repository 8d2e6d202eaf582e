// Operators by their type: those of op packages, and the few built-in ones that parser plugins put around them.
#pragma once

#include "graph/operator.h"

namespace ge {

class OperatorFactory {
public:
    static Operator CreateOperator(const char* name, const char* type);
    static bool IsExistOp(const char* type);
};

}  // namespace ge
