// What npu_fused_linear_attention does not accept, in the words of python/custom_ops/ops/fused_linear_attention.py.
#include <limits>

#include "fused_linear_attention.h"

namespace custom_ops {
namespace {

using namespace linear_attention;

constexpr const char* kOp = "npu_fused_linear_attention";
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

std::string Number(int64_t value) { return std::to_string(value); }

const AttnType& CheckType(std::string_view name) {
    if (const AttnType* type = FindAttnType(name)) return *type;
    std::string known;
    size_t index = 0;
    for (const AttnType& type : kAttnTypes) {
        known += (index == 0 ? "" : index + 1 == std::size(kAttnTypes) ? " or " : ", ") + std::string(type.name);
        ++index;
    }
    Fail(kOp, "attn_type '" + std::string(name) + "' is not known, use " + known);
}

void CheckHeads(const AttnType& type, const Heads& heads) {
    const int64_t most = HasState(type) ? kMaxHeadDim : kMost;
    CheckRange(kOp, "num_k_heads", heads.keyHeads, 1, kMost);
    CheckRange(kOp, "num_v_heads", heads.valueHeads, 1, kMost);
    CheckRange(kOp, "head_k_dim", heads.keyDim, 1, most);
    CheckRange(kOp, "head_v_dim", heads.valueDim, 1, most);
    if (!HasHeads(type) && (heads.keyHeads != 1 || heads.valueHeads != 1 || heads.keyDim != heads.valueDim))
        Fail(kOp, "attn_type " + std::string(type.name) + " takes num_k_heads = num_v_heads = 1 and head_k_dim = head_v_dim, got " +
                      Number(heads.keyHeads) + ", " + Number(heads.valueHeads) + ", " + Number(heads.keyDim) + " and " +
                      Number(heads.valueDim));
    if (heads.valueHeads % heads.keyHeads)
        Fail(kOp, "num_v_heads must be a multiple of num_k_heads, got " + Number(heads.valueHeads) + " and " + Number(heads.keyHeads));
}

void CheckFold(const AttnType& type, bool fold, const OptionalTensor& coef, const OptionalTensor& bias) {
    if (fold && !HasGate(type)) Fail(kOp, "attn_type " + std::string(type.name) + " takes no gate_fold");
    const auto check = [&](const char* argument, const OptionalTensor& tensor) {
        if (fold && !tensor) Fail(kOp, std::string("gate_fold needs ") + argument);
        if (!fold && tensor) Fail(kOp, std::string(argument) + " is only taken with gate_fold");
    };
    check("gate_coef", coef);
    check("gate_bias", bias);
}

void CheckQkv(const AttnType& type, const Heads& heads, const Tensor& qkv, bool tokenMajor) {
    const Sizes sizes = qkv.sizes();
    const int64_t channels = QkvChannels(type, heads);
    if (sizes.size() != 3 || sizes[tokenMajor ? 2 : 1] != channels)
        Fail(kOp, std::string("qkv must be ") + (tokenMajor ? "[B, L, D]" : "[B, D, L]") + " with D = " +
                      (HasHeads(type) ? "2 * num_k_heads * head_k_dim + num_v_heads * head_v_dim" : "3 * head_v_dim") + " = " +
                      Number(channels) + ", got " + Text(sizes));
    CheckDtype(kOp, "qkv", qkv, {ScalarType::BFloat16, ScalarType::Half, ScalarType::Float});
}

void CheckWeights(int64_t channels, const Tensor& qkv, const Tensor& weight, const OptionalTensor& bias) {
    CheckSameDtype(kOp, "conv_weight", weight, qkv, "qkv");
    const Sizes sizes = weight.sizes();
    if (sizes.size() != 3 || sizes[0] != channels || sizes[1] != 1 || sizes[2] < 1 || sizes[2] > kMaxTaps)
        Fail(kOp, "conv_weight must be [C, 1, K] with C = " + Number(channels) + " and K 1 to " + Number(kMaxTaps) + ", got " + Text(sizes));
    if (!bias) return;
    CheckSameDtype(kOp, "conv_bias", *bias, qkv, "qkv");
    if (bias->sizes() != Sizes(&channels, 1))
        Fail(kOp, "conv_bias must be [C] = [" + Number(channels) + "], got " + Text(bias->sizes()));
}

void CheckGates(const AttnType& type, const Heads& heads, const LinearAttentionInputs& in, int64_t batch, int64_t length) {
    const bool perChannel = type.gate == Gate::kPerChannel;
    const char* headSymbol = HasGate(type) ? "num_v_heads" : "1";
    const char* gateSymbols = perChannel ? "num_v_heads, head_k_dim" : headSymbol;
    const int64_t gateHeads = GateHeads(type, heads);
    const Shape perHead({}, {batch, length, gateHeads});
    const Shape gates = perChannel ? Shape({}, {batch, length, gateHeads, heads.keyDim}) : perHead;

    const auto check = [&](const char* argument, const Tensor& tensor, const char* symbols, Sizes want) {
        if (in.qkv.scalar_type() == ScalarType::Float) CheckDtype(kOp, argument, tensor, {ScalarType::Float});
        else CheckDtype(kOp, argument, tensor, {in.qkv.scalar_type(), ScalarType::Float});
        if (tensor.sizes() == want) return;
        Fail(kOp, std::string(argument) + " must be [B, L, " + symbols + "] = " + Text(want) + " to match qkv " + Text(in.qkv.sizes()) +
                      ", got " + Text(tensor.sizes()));
    };
    check("gate", in.gate, gateSymbols, gates);
    check("beta", in.beta, headSymbol, perHead);

    const auto checkFold = [&](const char* argument, const OptionalTensor& tensor, const char* symbols, Sizes want) {
        if (!tensor) return;
        CheckDtype(kOp, argument, *tensor, {ScalarType::Float});
        if (tensor->sizes() == want) return;
        Fail(kOp, std::string(argument) + " must be [" + symbols + "] = " + Text(want) + ", got " + Text(tensor->sizes()));
    };
    checkFold("gate_coef", in.gateCoef, headSymbol, Sizes(perHead).slice(2));
    checkFold("gate_bias", in.gateBias, gateSymbols, Sizes(gates).slice(2));
}

// N
int64_t CheckSequences(const LinearAttentionInputs& in, int64_t batch) {
    int64_t sequences = batch;
    if (in.cuSeqlens) {
        CheckDtype(kOp, "cu_seqlens", *in.cuSeqlens, {ScalarType::Int, ScalarType::Long});
        const Sizes sizes = in.cuSeqlens->sizes();
        if (sizes.size() != 1 || sizes[0] < 2) Fail(kOp, "cu_seqlens must be [N + 1] with N at least 1, got " + Text(sizes));
        if (batch != 1) Fail(kOp, "B must be 1 with cu_seqlens, got qkv " + Text(in.qkv.sizes()));
        sequences = sizes[0] - 1;
    }
    const auto check = [&](const char* argument, const OptionalTensor& tensor, std::initializer_list<ScalarType> dtypes) {
        if (!tensor) return;
        CheckDtype(kOp, argument, *tensor, dtypes);
        if (tensor->sizes() != Sizes(&sequences, 1))
            Fail(kOp, std::string(argument) + " must be [N] = [" + Number(sequences) + "], got " + Text(tensor->sizes()));
    };
    check("state_indices", in.stateIndices, {ScalarType::Int, ScalarType::Long});
    check("has_initial_state", in.hasInitialState, {ScalarType::Bool});
    return sequences;
}

void CheckState(const char* argument, const Tensor& state, int64_t sequences, bool indexed, const char* symbols,
                std::initializer_list<int64_t> slot) {
    const Sizes sizes = state.sizes();
    int64_t wanted[4] = {indexed ? sizes.size() ? sizes[0] : 1 : sequences};
    size_t rank = 1;
    for (int64_t size : slot) wanted[rank++] = size;
    if (sizes != Sizes(wanted, rank))
        Fail(kOp, std::string(argument) + " must be [" + (indexed ? "slots" : "N") + ", " + symbols + "] = " + Text(Sizes(wanted, rank)) +
                      ", got " + Text(sizes));
    if (!state.is_contiguous()) Fail(kOp, std::string(argument) + " must be contiguous, it is written in place");
}

// The number of slots, -1 without a state.
int64_t CheckStates(const AttnType& type, const Heads& heads, const LinearAttentionInputs& in, int64_t sequences, int64_t channels) {
    if (in.recurrentState && !HasState(type)) Fail(kOp, "attn_type " + std::string(type.name) + " has no recurrent_state");
    const bool indexed = in.stateIndices.has_value();
    if (in.convState) {
        CheckSameDtype(kOp, "conv_state", *in.convState, in.qkv, "qkv");
        CheckState("conv_state", *in.convState, sequences, indexed, "C, K - 1", {channels, in.convWeight.size(2) - 1});
    }
    if (in.recurrentState) {
        CheckDtype(kOp, "recurrent_state", *in.recurrentState, {ScalarType::Float});
        CheckState("recurrent_state", *in.recurrentState, sequences, indexed, "num_v_heads, head_k_dim, head_v_dim",
                   {heads.valueHeads, heads.keyDim, heads.valueDim});
    }
    if (in.convState && in.recurrentState && in.convState->size(0) != in.recurrentState->size(0))
        Fail(kOp, "conv_state and recurrent_state must have the same number of slots, got " + Number(in.convState->size(0)) + " and " +
                      Number(in.recurrentState->size(0)));
    return in.convState ? in.convState->size(0) : in.recurrentState ? in.recurrentState->size(0) : -1;
}

// Bytes from the first to the last element.
int64_t Extent(Sizes sizes, Sizes strides, int64_t elementBytes) {
    int64_t extent = elementBytes;
    for (size_t dim = 0; dim < sizes.size(); ++dim) extent += (sizes[dim] - 1) * strides[dim] * elementBytes;
    return extent;
}

// Whether an element lies in [begin, end): others than contiguous tensors may have it between their rows.
bool Touches(const char* at, Sizes sizes, Sizes strides, int64_t elementBytes, const char* begin, const char* end) {
    if (at >= end || at + Extent(sizes, strides, elementBytes) <= begin) return false;
    if (sizes.empty()) return true;
    const int64_t rows = strides[0] == 0 ? 1 : sizes[0];  // all of an expanded one are the same
    for (int64_t row = 0; row < rows; ++row)
        if (Touches(at + row * strides[0] * elementBytes, sizes.slice(1), strides.slice(1), elementBytes, begin, end)) return true;
    return false;
}

// f(name, tensor) for all that are given but qkv.
template <typename F>
void ForGivenBesideQkv(const LinearAttentionInputs& in, const F& f) {
    const auto given = [&](const char* argument, const OptionalTensor& tensor) {
        if (tensor) f(argument, *tensor);
    };
    f("gate", in.gate);
    f("beta", in.beta);
    f("conv_weight", in.convWeight);
    given("conv_bias", in.convBias);
    given("conv_state", in.convState);
    given("recurrent_state", in.recurrentState);
    given("gate_coef", in.gateCoef);
    given("gate_bias", in.gateBias);
    given("cu_seqlens", in.cuSeqlens);
    given("state_indices", in.stateIndices);
    given("has_initial_state", in.hasInitialState);
}

void CheckDevices(const LinearAttentionInputs& in) {
    ForGivenBesideQkv(in, [&](const char* argument, const Tensor& tensor) { CheckDevice(kOp, argument, tensor, in.qkv, "qkv"); });
}

}  // namespace

void CheckLinearAttentionMemory(const LinearAttentionInputs& in) {
    struct Written { const char* name; const Tensor* state; const char *begin, *end; } written[2];
    size_t states = 0;
    const auto add = [&](const char* name, const OptionalTensor& state) {
        if (!state || state->numel() == 0) return;
        const char* begin = static_cast<const char*>(state->data_ptr());
        written[states++] = {name, &*state, begin, begin + state->numel() * state->element_size()};
    };
    add("conv_state", in.convState);
    add("recurrent_state", in.recurrentState);
    if (states == 0) return;

    const auto check = [&](const char* argument, const Tensor& tensor) {
        const Sizes sizes = tensor.sizes(), strides = tensor.strides();
        if (Product(sizes) == 0) return;
        const char* first = static_cast<const char*>(tensor.data_ptr());
        for (size_t i = 0; i < states; ++i)
            if (written[i].state != &tensor && Touches(first, sizes, strides, tensor.element_size(), written[i].begin, written[i].end))
                Fail(kOp, std::string(written[i].name) + " is written and must not share memory with " + argument);
    };
    check("qkv", in.qkv);
    ForGivenBesideQkv(in, check);
}

LinearAttentionShape CheckLinearAttention(const LinearAttentionInputs& in, const LinearAttentionAttributes& attributes) {
    const Heads& heads = attributes.heads;
    const AttnType& type = CheckType(attributes.attnType);
    CheckHeads(type, heads);
    CheckFold(type, attributes.gateFold, in.gateCoef, in.gateBias);
    CheckGiven(kOp, {{"qkv", &in.qkv}, {"gate", &in.gate}, {"beta", &in.beta}, {"conv_weight", &in.convWeight}});
    CheckQkv(type, heads, in.qkv, attributes.tokenMajor);
    const int64_t batch = in.qkv.size(0), length = in.qkv.size(attributes.tokenMajor ? 1 : 2);
    const int64_t channels = ConvChannels(type, heads);
    CheckWeights(channels, in.qkv, in.convWeight, in.convBias);
    CheckGates(type, heads, in, batch, length);
    const int64_t sequences = CheckSequences(in, batch);
    const int64_t slots = CheckStates(type, heads, in, sequences, channels);
    CheckDevices(in);
    CheckLinearAttentionMemory(in);
    return {&type, batch, length, channels, in.convWeight.size(2), sequences, slots};
}

}  // namespace custom_ops
