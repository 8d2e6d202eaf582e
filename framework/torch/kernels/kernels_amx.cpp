// Compiled for AVX-512: what tiles compute, beside the functions of that set.
#include "hc_pre_amx_kernel.h"

namespace custom_ops::native::KERNEL_ISA {

static int64_t WeightBytes(const ProjectionArgs& args) { return Chunks(args) * ChunkBytes(args); }

extern const TileKernels kTileKernels;
const TileKernels kTileKernels = {kSumChunk, WeightBytes, SplitWeights, PreTiles};

}  // namespace custom_ops::native::KERNEL_ISA
