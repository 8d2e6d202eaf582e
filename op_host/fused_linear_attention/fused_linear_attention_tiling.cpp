#include "fused_linear_attention_tiling.h"

#include <cinttypes>
#include <cmath>

#include "chunked_tiling.h"
#include "recurrent_tiling.h"
#include "short_conv_tiling.h"

namespace custom_ops {
namespace {

using linear_attention::AttnType;
using linear_attention::Convolution;
using linear_attention::Gate;
using linear_attention::Heads;

constexpr uint64_t kMaxCount = INT32_MAX;  // tokens, sequences, slots, channels

// The sentence that says what no kernel does, or "".
std::string Unsupported(const FusedLinearAttentionShape& s) {
    const Heads& h = s.heads;
    const AttnType& type = *s.type;
    if (h.keyHeads < 1 || h.valueHeads < 1 || h.valueHeads % h.keyHeads != 0)
        return Error("fused_linear_attention: num_v_heads = %" PRId64 " must be a multiple of num_k_heads = %" PRId64, h.valueHeads,
                     h.keyHeads).message;
    const int64_t most = linear_attention::HasState(type) ? linear_attention::kMaxHeadDim : INT32_MAX / 3;
    if (h.keyDim < 1 || h.valueDim < 1 || h.keyDim > most || h.valueDim > most)
        return Error("fused_linear_attention: head_k_dim = %" PRId64 " and head_v_dim = %" PRId64 ", supported are 1 to %" PRId64, h.keyDim,
                     h.valueDim, most).message;
    if (s.taps < 1 || s.taps > linear_attention::kMaxTaps)
        return Error("fused_linear_attention: conv_weight has K = %" PRId64 " taps, supported are 1 to %" PRId64, s.taps,
                     linear_attention::kMaxTaps).message;
    const uint64_t channels = static_cast<uint64_t>(linear_attention::QkvChannels(type, h));
    if (channels > kMaxCount / 8)  // the stride of a DMA is 32 bits of bytes
        return Error("fused_linear_attention: qkv has D = %" PRIu64 " channels, supported are up to %" PRIu64, channels,
                     kMaxCount / 8).message;
    if (s.length != 0 && s.batch > kMaxCount / s.length)
        return Error("fused_linear_attention: qkv has %" PRIu64 " x %" PRIu64 " tokens, supported are up to %" PRIu64, s.batch, s.length,
                     kMaxCount).message;
    if (s.sequences > kMaxCount || s.slots > kMaxCount)
        return Error("fused_linear_attention: %" PRIu64 " sequences and %" PRIu64 " slots, supported are up to %" PRIu64, s.sequences,
                     s.slots, kMaxCount).message;
    return "";
}

FusedLinearAttentionTilingData CallOf(const FusedLinearAttentionShape& s) {
    FusedLinearAttentionTilingData data{};
    data.sequences = static_cast<uint32_t>(s.sequences);
    data.tokens = static_cast<uint32_t>(s.batch * s.length);
    data.sequenceTokens = s.packed ? 0 : static_cast<uint32_t>(s.length);
    data.slots = static_cast<uint32_t>(s.slots);
    data.channels = static_cast<uint32_t>(linear_attention::QkvChannels(*s.type, s.heads));
    data.convChannels = static_cast<uint32_t>(linear_attention::ConvChannels(*s.type, s.heads));
    data.taps = static_cast<uint32_t>(s.taps);
    data.keyHeads = static_cast<uint32_t>(s.heads.keyHeads);
    data.valueHeads = static_cast<uint32_t>(s.heads.valueHeads);
    data.keyDim = static_cast<uint32_t>(s.heads.keyDim);
    data.valueDim = static_cast<uint32_t>(s.heads.valueDim);
    data.perChannelGate = s.type->gate == Gate::kPerChannel;
    data.useQkL2norm = s.useQkL2norm;
    data.gateFold = s.gateFold;
    data.queryScale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.heads.keyDim)));
    data.usedCores = 1;
    return data;
}

}  // namespace

Result<FusedLinearAttentionPlan> TileFusedLinearAttention(const FusedLinearAttentionShape& s, const ChipSpec& chip) {
    const std::string reason = Unsupported(s);
    if (!reason.empty()) return Failure{reason};
    const bool conv = !linear_attention::HasState(*s.type);
    FusedLinearAttentionPlan plan{conv ? LinearAttentionKernel::kShortConv : LinearAttentionKernel::kRecurrent, 1, 0, CallOf(s)};
    if (s.sequences == 0) return plan;
    uint64_t cycles = UINT64_MAX;
    const bool fits = conv ? TileShortConv(plan.data, s, chip) : TileRecurrent(plan.data, s, chip, &cycles);
    FusedLinearAttentionTilingData chunked = CallOf(s);
    if (!conv && TileChunked(chunked, s, chip) < cycles)
        return FusedLinearAttentionPlan{LinearAttentionKernel::kChunked, chunked.chunked.cubeCores, chunked.chunked.bytes, chunked};
    if (!fits)
        return Error("fused_linear_attention: %s has %" PRIu64 " B of UB, the smallest tile needs %u B", chip.name, chip.ubBytes,
                     conv ? plan.data.conv.ubBytes : plan.data.buffers.ubBytes);
    plan.blockDim = plan.data.usedCores;
    return plan;
}

}  // namespace custom_ops
