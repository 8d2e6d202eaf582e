// Compiled once per instruction set, with KERNEL_ISA naming it (CMakeLists.txt).
#include "delta_strip.h"
#include "hc_post_kernel.h"
#include "hc_pre_inv_rms_kernel.h"
#include "hc_pre_kernel.h"
#include "hc_pre_sinkhorn_kernel.h"

#define KERNEL_NAME_TEXT(isa) #isa
#define KERNEL_NAME(isa) KERNEL_NAME_TEXT(isa)

namespace custom_ops::native::KERNEL_ISA {

// linear_attention_isa.cpp
void ShortConv(const ConvArgs& args, const Sequence& sequence, int64_t firstToken, int64_t lastToken);
void DeltaRule(const DeltaRuleArgs& args, const Sequence& sequence, int64_t keyHead, int64_t firstStrip, int64_t lastStrip);

extern const Kernels kKernels;
const Kernels kKernels = {KERNEL_NAME(KERNEL_ISA), InvRms, Sinkhorn, Project, Pre, Post, ShortConv, DeltaRule, kStripVectors * kLanes};

}  // namespace custom_ops::native::KERNEL_ISA
