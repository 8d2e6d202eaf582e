// Compiled once per instruction set, beside kernels_isa.cpp which has these functions in its table.
#include "delta_rule_kernel.h"
#include "short_conv_kernel.h"
