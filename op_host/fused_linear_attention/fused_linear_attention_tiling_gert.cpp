// From the tiling context to TileFusedLinearAttention and back; here the shapes are checked against each other.
#include "../common/gert_support.h"
#include "fused_linear_attention_tiling.h"
#include "register/op_impl_registry.h"

namespace custom_ops {
namespace {

using linear_attention::AttnType;
using linear_attention::Gate;
using linear_attention::Heads;

struct FusedLinearAttentionCompileInfo {};

enum Input : size_t {
    kQkv, kGate, kBeta, kConvWeight, kConvBias, kConvState, kRecurrentState, kGateCoef, kGateBias, kCuSeqlens, kStateIndices,
    kHasInitialState, kInputs
};
constexpr const char* kNames[kInputs] = {"qkv", "gate", "beta", "conv_weight", "conv_bias", "conv_state", "recurrent_state", "gate_coef",
                                         "gate_bias", "cu_seqlens", "state_indices", "has_initial_state"};
enum Attribute : size_t { kAttnType, kKeyHeads, kValueHeads, kKeyDim, kValueDim, kUseQkL2norm, kGateFold };

using Shapes = const gert::Shape* [kInputs];  // null: left out

gert::Shape Dims(std::initializer_list<int64_t> dims) {
    gert::Shape shape;
    shape.SetDimNum(dims.size());
    size_t i = 0;
    for (const int64_t dim : dims) shape.SetDim(i++, dim);
    return shape;
}

// "" or the sentence that names the tensor; one that is left out fits.
std::string Differs(const Shapes& shapes, Input input, const gert::Shape& expected) {
    if (shapes[input] == nullptr || *shapes[input] == expected) return "";
    return std::string(kNames[input]) + " must be " + Text(expected) + " for qkv " + Text(*shapes[kQkv]) + ", got " + Text(*shapes[input]);
}

std::string MisfitOfGates(const Shapes& shapes, const AttnType& type, const Heads& heads, bool fold) {
    const int64_t batch = shapes[kQkv]->GetDim(0), length = shapes[kQkv]->GetDim(1), gateHeads = GateHeads(type, heads);
    const bool channels = type.gate == Gate::kPerChannel;
    std::string misfit = Differs(shapes, kBeta, Dims({batch, length, gateHeads}));
    if (misfit.empty())
        misfit = Differs(shapes, kGate, channels ? Dims({batch, length, gateHeads, heads.keyDim}) : Dims({batch, length, gateHeads}));
    if (misfit.empty()) misfit = Differs(shapes, kGateCoef, Dims({heads.valueHeads}));
    if (misfit.empty()) misfit = Differs(shapes, kGateBias, channels ? Dims({heads.valueHeads, heads.keyDim}) : Dims({heads.valueHeads}));
    if (!misfit.empty()) return misfit;
    if (fold && !HasGate(type)) return std::string("gate_fold needs a gate, ") + type.name + " has none";
    const bool coef = shapes[kGateCoef] != nullptr, bias = shapes[kGateBias] != nullptr;
    if (fold != coef || fold != bias)
        return fold ? "gate_fold needs gate_coef and gate_bias" : "gate_coef and gate_bias are read with gate_fold only";
    return "";
}

std::string MisfitOfSequences(const Shapes& shapes, FusedLinearAttentionShape& s) {
    const gert::Shape& qkv = *shapes[kQkv];
    s.packed = shapes[kCuSeqlens] != nullptr;
    s.sequences = s.batch;
    if (s.packed) {
        const gert::Shape& ends = *shapes[kCuSeqlens];
        if (ends.GetDimNum() != 1 || ends.GetDim(0) < 1) return "cu_seqlens must be [N + 1], got " + Text(ends);
        if (s.batch != 1) return "qkv must be [1, L, D] with cu_seqlens, got " + Text(qkv);
        s.sequences = static_cast<uint64_t>(ends.GetDim(0) - 1);
        if (s.sequences == 0 && s.length != 0) return "cu_seqlens [1] has no sequence for the tokens of qkv " + Text(qkv);
    }
    const int64_t sequences = static_cast<int64_t>(s.sequences);
    std::string misfit = Differs(shapes, kStateIndices, Dims({sequences}));
    if (misfit.empty()) misfit = Differs(shapes, kHasInitialState, Dims({sequences}));
    return misfit;
}

std::string MisfitOfStates(const Shapes& shapes, FusedLinearAttentionShape& s) {
    const AttnType& type = *s.type;
    if (shapes[kRecurrentState] != nullptr && !HasState(type)) return std::string(type.name) + " has no recurrent_state";
    s.slots = INT32_MAX;
    for (const Input state : {kConvState, kRecurrentState})
        if (shapes[state] != nullptr && shapes[state]->GetDimNum() != 0) s.slots = static_cast<uint64_t>(shapes[state]->GetDim(0));
    const bool any = shapes[kConvState] != nullptr || shapes[kRecurrentState] != nullptr;
    const int64_t slots = static_cast<int64_t>(s.slots);
    std::string misfit = Differs(shapes, kConvState, Dims({slots, ConvChannels(type, s.heads), s.taps - 1}));
    if (misfit.empty())
        misfit = Differs(shapes, kRecurrentState, Dims({slots, s.heads.valueHeads, s.heads.keyDim, s.heads.valueDim}));
    if (misfit.empty() && any && shapes[kStateIndices] == nullptr && s.slots != s.sequences)
        misfit = "without state_indices the states must have one slot for each of the " + std::to_string(s.sequences) + " sequences, got " +
                 std::to_string(s.slots);
    s.keepsConvState = shapes[kConvState] != nullptr;
    return misfit;
}

// The sentence that names what does not fit, or ""; sets what follows from the shapes.
std::string Misfit(const Shapes& shapes, FusedLinearAttentionShape& s) {
    const gert::Shape& qkv = *shapes[kQkv];
    if (qkv.GetDimNum() != 3) return "qkv must be [B, L, D], got " + Text(qkv);
    s.batch = static_cast<uint64_t>(qkv.GetDim(0));
    s.length = static_cast<uint64_t>(qkv.GetDim(1));
    const bool heads = HasHeads(*s.type);
    if (!heads && (s.heads.keyHeads != 1 || s.heads.valueHeads != 1 || s.heads.keyDim != s.heads.valueDim))
        return std::string(s.type->name) + " has one head and head_k_dim = head_v_dim, got num_k_heads = " +
               std::to_string(s.heads.keyHeads) + ", num_v_heads = " + std::to_string(s.heads.valueHeads) +
               ", head_k_dim = " + std::to_string(s.heads.keyDim) + ", head_v_dim = " + std::to_string(s.heads.valueDim);
    const int64_t channels = QkvChannels(*s.type, s.heads);
    if (qkv.GetDim(2) != channels)
        return "qkv must have D = " + std::string(heads ? "2 * num_k_heads * head_k_dim + num_v_heads * head_v_dim" : "3 * head_v_dim") +
               " = " + std::to_string(channels) + " channels (last dimension), got " + Text(qkv);
    const gert::Shape& weight = *shapes[kConvWeight];
    if (weight.GetDimNum() != 3 || weight.GetDim(0) != ConvChannels(*s.type, s.heads) || weight.GetDim(1) != 1)
        return "conv_weight must be [" + std::to_string(ConvChannels(*s.type, s.heads)) + ", 1, K] for qkv " + Text(qkv) + ", got " +
               Text(weight);
    s.taps = weight.GetDim(2);
    std::string misfit = Differs(shapes, kConvBias, Dims({weight.GetDim(0)}));
    if (misfit.empty()) misfit = MisfitOfGates(shapes, *s.type, s.heads, s.gateFold);
    if (misfit.empty()) misfit = MisfitOfSequences(shapes, s);
    if (misfit.empty()) misfit = MisfitOfStates(shapes, s);
    return misfit;
}

std::string KnownTypes() {
    std::string names;
    for (const AttnType& type : linear_attention::kAttnTypes) names += (names.empty() ? "" : ", ") + std::string(type.name);
    return names;
}

ge::graphStatus TilingFusedLinearAttention(gert::TilingContext* context) {
    Shapes shapes{};
    for (size_t i = 0; i < kInputs; ++i) {
        const gert::StorageShape* shape = i <= kConvWeight ? context->GetInputShape(i) : context->GetOptionalInputShape(i);
        if (shape != nullptr) shapes[i] = &shape->GetStorageShape();
        else if (i <= kConvWeight) return Refuse("fused_linear_attention: an input is missing");
    }
    const auto *qkvDesc = context->GetInputDesc(kQkv), *gateDesc = context->GetInputDesc(kGate);
    const auto* attrs = context->GetAttrs();
    if (qkvDesc == nullptr || gateDesc == nullptr || attrs == nullptr)
        return Refuse("fused_linear_attention: the type of an input is missing");
    const char* name = attrs->GetStr(kAttnType);
    const int64_t* dims[] = {attrs->GetInt(kKeyHeads), attrs->GetInt(kValueHeads), attrs->GetInt(kKeyDim), attrs->GetInt(kValueDim)};
    const bool *norm = attrs->GetBool(kUseQkL2norm), *fold = attrs->GetBool(kGateFold);
    for (const int64_t* dim : dims)
        if (dim == nullptr || name == nullptr || norm == nullptr || fold == nullptr)
            return Refuse("fused_linear_attention: an attribute is missing");

    FusedLinearAttentionShape shape{};
    shape.type = linear_attention::FindAttnType(name);
    if (shape.type == nullptr)
        return Refuse("fused_linear_attention: attn_type '" + std::string(name) + "' is not known, known are " + KnownTypes());
    shape.heads = {*dims[0], *dims[1], *dims[2], *dims[3]};
    shape.useQkL2norm = *norm;
    shape.gateFold = *fold;
    shape.elementBytes = qkvDesc->GetDataType() == ge::DT_FLOAT ? 4 : 2;
    shape.gateBytes = gateDesc->GetDataType() == ge::DT_FLOAT ? 4 : 2;
    const std::string misfit = Misfit(shapes, shape);
    if (!misfit.empty()) return Refuse("fused_linear_attention: " + misfit);

    const Result<FusedLinearAttentionPlan> plan = TileFusedLinearAttention(shape, ChipOf(context));
    if (!plan) return Refuse(plan.Message());
    context->SetScheduleMode(1);  // batch: SyncAll needs all blocks on a core at once
    return Accept(context, "fused_linear_attention", plan->data, plan->blockDim, static_cast<uint64_t>(plan->kernel),
                  LibraryWorkspace(context) + plan->workspaceBytes);
}

ge::graphStatus ParseFusedLinearAttention(gert::TilingParseContext*) { return ge::GRAPH_SUCCESS; }

}  // namespace

IMPL_OP_OPTILING(FusedLinearAttention)
    .Tiling(TilingFusedLinearAttention)
    .TilingParse<FusedLinearAttentionCompileInfo>(ParseFusedLinearAttention);

}  // namespace custom_ops
