// Compiled once per instruction set, with KERNEL_ISA naming it (CMakeLists.txt).
#include "hc_post_kernel.h"
#include "hc_pre_inv_rms_kernel.h"
#include "hc_pre_kernel.h"
#include "hc_pre_sinkhorn_kernel.h"

#define KERNEL_NAME_TEXT(isa) #isa
#define KERNEL_NAME(isa) KERNEL_NAME_TEXT(isa)

namespace custom_ops::native::KERNEL_ISA {

extern const Kernels kKernels;
const Kernels kKernels = {KERNEL_NAME(KERNEL_ISA), InvRms, Sinkhorn, Project, Pre, Post};

}  // namespace custom_ops::native::KERNEL_ISA
