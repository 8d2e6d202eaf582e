// npu_fused_linear_attention: causal convolution and recurrent state of a linear attention layer.
#include "fused_linear_attention.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "op_support.h"

namespace custom_ops {
namespace {

using namespace linear_attention;
using native::Sequence;

constexpr const char* kOp = "npu_fused_linear_attention";

// Of a tensor of int32 or int64.
std::vector<int64_t> Values(const Tensor& tensor) {
    Contiguous in;
    const void* data = in.Data(tensor);
    const int64_t count = tensor.numel();
    if (tensor.scalar_type() == ScalarType::Long) return {static_cast<const int64_t*>(data), static_cast<const int64_t*>(data) + count};
    return {static_cast<const int32_t*>(data), static_cast<const int32_t*>(data) + count};
}

void CheckBoundaries(const std::vector<int64_t>& ends, int64_t length) {
    if (ends[0] != 0) Fail(kOp, "cu_seqlens must begin with 0, got " + std::to_string(ends[0]));
    for (size_t i = 1; i < ends.size(); ++i)
        if (ends[i] < ends[i - 1])
            Fail(kOp, "cu_seqlens must not go down, got " + std::to_string(ends[i - 1]) + " and " + std::to_string(ends[i]) + " (entry " +
                          std::to_string(i) + ")");
    if (ends.back() != length) Fail(kOp, "cu_seqlens must end with L = " + std::to_string(length) + ", got " + std::to_string(ends.back()));
}

void CheckSlots(const std::vector<int64_t>& indices, int64_t slots) {
    for (size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] >= -1 && (slots < 0 || indices[i] < slots)) continue;
        const std::string accepted = slots < 0    ? "-1 or a slot"
                                     : slots == 0 ? "-1 without any slot"
                                                  : "-1 or 0 to " + std::to_string(slots - 1);
        Fail(kOp, "state_indices must be " + accepted + ", got " + std::to_string(indices[i]) + " (entry " + std::to_string(i) + ")");
    }
    if (slots < 0) return;
    std::vector<int64_t> sorted(indices);
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 1; i < sorted.size(); ++i)
        if (sorted[i] >= 0 && sorted[i] == sorted[i - 1])
            Fail(kOp, "state_indices must name a slot once, got " + std::to_string(sorted[i]) + " twice");
}

// The tensors of a call as the kernels take them. Copies live as long as this object.
class CpuCall {
public:
    CpuCall(const LinearAttentionInputs& in, const LinearAttentionAttributes& attributes, const LinearAttentionShape& shape)
        : in_(in), attributes_(attributes), shape_(shape), qkv_(Strided(in.qkv)) {
        const int64_t* strides = qkv_.strides().data();
        elementBytes_ = qkv_.element_size();
        rowStride_ = strides[0];
        conv_ = {strides[attributes.tokenMajor ? 1 : 2], strides[attributes.tokenMajor ? 2 : 1], contiguous_.Data(in.convWeight),
                 contiguous_.Data(in.convBias), ElementOf(qkv_), shape.convChannels, static_cast<int32_t>(shape.taps), nullptr, false};
    }

    Tensor Run() {
        const Heads& heads = attributes_.heads;
        const std::vector<int64_t> ends = in_.cuSeqlens ? Values(*in_.cuSeqlens) : std::vector<int64_t>();
        const std::vector<int64_t> slots = in_.stateIndices ? Values(*in_.stateIndices) : std::vector<int64_t>();
        if (in_.cuSeqlens) CheckBoundaries(ends, shape_.length);
        if (in_.stateIndices) CheckSlots(slots, shape_.slots);
        out_ = NewEmpty(qkv_, Shape({}, {shape_.batch, shape_.length, heads.valueHeads, heads.valueDim}), qkv_.scalar_type());
        conv_.out = out_.mutable_data_ptr();
        FindSequences(ends, slots);
        if (HasState(*shape_.type)) RunDeltaRule();
        else RunShortConv();
        return std::move(out_);
    }

private:
    // With channels or tokens side by side.
    Tensor Strided(const Tensor& qkv) const {
        const auto strides = qkv.strides();
        return strides[1] == 1 || strides[2] == 1 ? qkv : torch::stable::contiguous(qkv);
    }

    // Those with tokens that are no padding; what needs no kernel is done here.
    void FindSequences(const std::vector<int64_t>& ends, const std::vector<int64_t>& slots) {
        const Heads& heads = attributes_.heads;
        const int64_t tokenOutBytes = heads.valueHeads * heads.valueDim * elementBytes_;
        const int64_t stateElements = heads.valueHeads * heads.keyDim * heads.valueDim;
        const int64_t windowBytes = WindowBytes();
        const bool* hasInitial = static_cast<const bool*>(contiguous_.Data(in_.hasInitialState));
        char* windows = in_.convState ? static_cast<char*>(const_cast<Tensor&>(*in_.convState).mutable_data_ptr()) : nullptr;
        float* states = in_.recurrentState ? static_cast<float*>(const_cast<Tensor&>(*in_.recurrentState).mutable_data_ptr()) : nullptr;
        sequences_.reserve(shape_.sequences);
        for (int64_t i = 0; i < shape_.sequences; ++i) {
            const int64_t first = ends.empty() ? 0 : ends[i], tokens = ends.empty() ? shape_.length : ends[i + 1] - first;
            const int64_t row = ends.empty() ? i : 0, slot = slots.empty() ? i : slots[i];
            Sequence sequence{};
            sequence.qkv = static_cast<const char*>(qkv_.const_data_ptr()) + (row * rowStride_ + first * conv_.tokenStride) * elementBytes_;
            sequence.firstToken = row * shape_.length + first;
            sequence.tokens = tokens;
            if (slot < 0) {
                std::memset(static_cast<char*>(conv_.out) + sequence.firstToken * tokenOutBytes, 0, tokens * tokenOutBytes);
                continue;
            }
            sequence.window = windows && windowBytes ? windows + slot * windowBytes : nullptr;
            sequence.state = states ? states + slot * stateElements : nullptr;
            const bool continues = !hasInitial || hasInitial[i];
            if (continues) {
                sequence.windowBefore = sequence.window;
                sequence.stateBefore = sequence.state;
            }
            if (tokens > 0) {
                sequences_.push_back(sequence);
            } else if (!continues) {
                if (sequence.window) std::memset(sequence.window, 0, windowBytes);
                if (sequence.state) std::memset(sequence.state, 0, stateElements * sizeof(float));
            }
        }
        // Long ones first: what is left at the end is small.
        if (!ends.empty()) std::stable_sort(sequences_.begin(), sequences_.end(), [](const Sequence& a, const Sequence& b) { return a.tokens > b.tokens; });
    }

    int64_t WindowBytes() const { return shape_.convChannels * (shape_.taps - 1) * elementBytes_; }

    // A part of a sequence may write the window while another one has still to read it: all read a copy.
    void CopyWindows() {
        windows_.reset(new char[sequences_.size() * WindowBytes()]);
        char* copy = windows_.get();
        for (Sequence& sequence : sequences_) {
            if (!sequence.windowBefore) continue;
            std::memcpy(copy, sequence.windowBefore, WindowBytes());
            sequence.windowBefore = copy;
            copy += WindowBytes();
        }
    }

    void RunDeltaRule() {
        const Heads& heads = attributes_.heads;
        const bool fold = attributes_.gateFold;
        const native::DeltaRuleArgs args{conv_, contiguous_.Data(in_.gate), contiguous_.Data(in_.beta), ElementOf(in_.gate),
                                         ElementOf(in_.beta), fold ? contiguous_.Floats(in_.gateCoef) : nullptr,
                                         fold ? contiguous_.Floats(in_.gateBias) : nullptr, heads.keyHeads, heads.valueHeads, heads.keyDim,
                                         heads.valueDim, attributes_.useQkL2norm, shape_.type->gate == Gate::kPerChannel};
        const native::Kernels& kernels = native::HostKernels();
        const int64_t strips = heads.valueHeads / heads.keyHeads * ((heads.valueDim + kernels.stripColumns - 1) / kernels.stripColumns);
        const int64_t whole = static_cast<int64_t>(sequences_.size()) * heads.keyHeads;
        const int64_t threads = torch::stable::get_num_threads();
        const int64_t parts = whole == 0 || whole >= threads ? 1 : std::min(strips, (threads + whole - 1) / whole);
        if (parts > 1) CopyWindows();
        int64_t tokens = 0;
        for (const Sequence& sequence : sequences_) tokens += sequence.tokens;
        const int64_t bytes = tokens * heads.valueHeads * heads.keyDim * heads.valueDim;  // 8 elements in the time of as many bytes of others
        ForTokens(whole * parts, bytes, [&](int64_t firstTask, int64_t lastTask) {
            for (int64_t task = firstTask; task < lastTask; ++task) {
                const int64_t part = task % parts, head = task / parts % heads.keyHeads;
                kernels.deltaRule(args, sequences_[task / parts / heads.keyHeads], head, part * strips / parts, (part + 1) * strips / parts);
            }
        }, 1);
    }

    void RunShortConv() {
        constexpr int64_t kFewestTokens = 32;  // of a block: the taps are brought into columns for each
        int64_t tokens = 0;
        for (const Sequence& sequence : sequences_) tokens += sequence.tokens;
        const int64_t bytes = tokens * shape_.convChannels * elementBytes_;
        conv_.bypassCache = bytes >= kLargeResultBytes;
        const int64_t threads = torch::stable::get_num_threads();
        const int64_t perBlock = threads > 1 ? std::max(kFewestTokens, (tokens + 4 * threads - 1) / (4 * threads)) : std::max<int64_t>(tokens, 1);
        struct Block { const Sequence* sequence; int64_t first, last; };
        std::vector<Block> blocks;
        for (const Sequence& sequence : sequences_)
            for (int64_t first = 0; first < sequence.tokens; first += perBlock)
                blocks.push_back({&sequence, first, std::min(sequence.tokens, first + perBlock)});
        if (blocks.size() > sequences_.size()) CopyWindows();
        const native::Kernels& kernels = native::HostKernels();
        ForTokens(blocks.size(), 4 * bytes, [&](int64_t first, int64_t last) {
            for (int64_t i = first; i < last; ++i) kernels.shortConv(conv_, *blocks[i].sequence, blocks[i].first, blocks[i].last);
        }, 1);
    }

    const LinearAttentionInputs& in_;
    const LinearAttentionAttributes& attributes_;
    const LinearAttentionShape& shape_;
    Contiguous contiguous_;
    const Tensor qkv_;
    Tensor out_;
    int64_t elementBytes_, rowStride_;
    native::ConvArgs conv_;
    std::vector<Sequence> sequences_;
    std::unique_ptr<char[]> windows_;
};

Tensor FusedLinearAttentionCpu(const Tensor& qkv, const Tensor& gate, const Tensor& beta, const Tensor& convWeight, OptionalTensor convBias,
                               OptionalTensor convState, OptionalTensor recurrentState, std::string attnType, int64_t keyHeads,
                               int64_t valueHeads, int64_t keyDim, int64_t valueDim, bool useQkL2norm, bool gateFold, OptionalTensor gateCoef,
                               OptionalTensor gateBias, OptionalTensor cuSeqlens, OptionalTensor stateIndices, OptionalTensor hasInitialState,
                               bool tokenMajor) {
    const LinearAttentionInputs inputs{qkv,      gate,      beta,         convWeight,     convBias, convState, recurrentState, gateCoef,
                                       gateBias, cuSeqlens, stateIndices, hasInitialState};
    const LinearAttentionAttributes attributes{attnType, {keyHeads, valueHeads, keyDim, valueDim}, useQkL2norm, gateFold, tokenMajor};
    const LinearAttentionShape shape = CheckLinearAttention(inputs, attributes);
    return CpuCall(inputs, attributes, shape).Run();
}

void CheckMemory(const Tensor& qkv, const Tensor& gate, const Tensor& beta, const Tensor& convWeight, OptionalTensor convBias,
                 OptionalTensor convState, OptionalTensor recurrentState, OptionalTensor gateCoef, OptionalTensor gateBias,
                 OptionalTensor cuSeqlens, OptionalTensor stateIndices, OptionalTensor hasInitialState) {
    CheckLinearAttentionMemory({qkv, gate, beta, convWeight, convBias, convState, recurrentState, gateCoef, gateBias, cuSeqlens,
                                stateIndices, hasInitialState});
}

// A line with the limits, then one per variant: what python/custom_ops/ops/_attn_types.py reads.
std::string AttnTypes() {
    std::string text = std::to_string(kMaxHeadDim) + " " + std::to_string(kMaxTaps);
    for (const AttnType& type : kAttnTypes)
        text += "\n" + std::string(type.name) + " " + Name(type.convolution) + " " + Name(type.state) + " " + Name(type.gate);
    return text;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) {
    m.def("npu_fused_linear_attention(Tensor qkv, Tensor gate, Tensor beta, Tensor conv_weight, Tensor? conv_bias=None, "
          "Tensor(a!)? conv_state=None, Tensor(b!)? recurrent_state=None, *, str attn_type, int num_k_heads, int num_v_heads, "
          "int head_k_dim, int head_v_dim, bool use_qk_l2norm=True, bool gate_fold=False, Tensor? gate_coef=None, Tensor? gate_bias=None, "
          "Tensor? cu_seqlens=None, Tensor? state_indices=None, Tensor? has_initial_state=None, bool token_major=False) -> Tensor");
    m.def("_check_linear_attention_memory(Tensor qkv, Tensor gate, Tensor beta, Tensor conv_weight, Tensor? conv_bias, Tensor? conv_state, "
          "Tensor? recurrent_state, Tensor? gate_coef, Tensor? gate_bias, Tensor? cu_seqlens, Tensor? state_indices, "
          "Tensor? has_initial_state) -> ()");
    m.def("_attn_types() -> str");
}
STABLE_TORCH_LIBRARY_IMPL(custom, CPU, m) {
    m.impl("npu_fused_linear_attention", TORCH_BOX(&FusedLinearAttentionCpu));
    m.impl("_check_linear_attention_memory", TORCH_BOX(&CheckMemory));
}
STABLE_TORCH_LIBRARY_IMPL(custom, CompositeExplicitAutograd, m) { m.impl("_attn_types", TORCH_BOX(&AttnTypes)); }

}  // namespace custom_ops
