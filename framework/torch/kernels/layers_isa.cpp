// Compiled once per instruction set, beside kernels_isa.cpp which has these functions in its table.
#include "attention_step_kernel.h"
#include "gate_kernel.h"
#include "linear_kernel.h"
