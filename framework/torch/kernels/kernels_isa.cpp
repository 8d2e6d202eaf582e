// Compiled once per instruction set, with KERNEL_ISA naming it (CMakeLists.txt).
#include "delta_strip.h"
#include "hc_post_kernel.h"
#include "hc_pre_inv_rms_kernel.h"
#include "hc_pre_kernel.h"
#include "hc_pre_sinkhorn_kernel.h"
#include "rms_norm_kernel.h"

#define KERNEL_NAME_TEXT(isa) #isa
#define KERNEL_NAME(isa) KERNEL_NAME_TEXT(isa)

namespace custom_ops::native::KERNEL_ISA {

// linear_attention_isa.cpp
void ShortConv(const ConvArgs& args, const Sequence& sequence, int64_t firstToken, int64_t lastToken);
void DeltaRule(const DeltaRuleArgs& args, const Sequence& sequence, int64_t keyHead, int64_t firstStrip, int64_t lastStrip);

// layers_isa.cpp
void Linear(const LinearMatrix& matrix, const LinearArgs& args, int64_t firstRow, int64_t lastRow);
void WidenTokens(Element element, const void* x, int64_t tokens, int64_t columns, float* wide);
void GateTokens(Element element, Activation activation, void* gate, const void* up, int64_t elements);
void AttentionStep(const AttentionStepArgs& args, int64_t task);

extern const Kernels kKernels;
const Kernels kKernels = {KERNEL_NAME(KERNEL_ISA), InvRms, Sinkhorn, Project, Pre, Post, ShortConv, DeltaRule, kStripVectors * kLanes,
                          Linear, WidenTokens, kPairElements, GateTokens, AttentionStep, RmsNorm, nullptr};

}  // namespace custom_ops::native::KERNEL_ISA
