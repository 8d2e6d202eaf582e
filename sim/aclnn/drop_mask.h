// Masks of dropout as the device keeps them: a bit per element, 1 keeps it, a whole number of 128-bit words.
#pragma once

#include "sim/aclnn/values.h"

namespace sim::aclnn {

void PackMask(const Tensor& keep, const Out& mask);
Tensor UnpackMask(const Tensor& mask, at::IntArrayRef sizes);  // bool

}  // namespace sim::aclnn
