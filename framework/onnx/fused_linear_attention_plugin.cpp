// ATC's parser of the ONNX node LlmExporter::FusedLinearAttention. The node has qkv [B, D, L] and folded gates as attributes, our OpDef
// qkv [B, L, D] and these as inputs, so a node becomes a small graph:
//
//   qkv -> Transpose (0, 2, 1) ---------+
//   gate, beta, conv_weight ------------+-> FusedLinearAttention -> attn_out [B, L, Hv, dv]
//   Const gate_coef, gate_bias [Hv] ----+   with gate_fold
//
// What else the OpDef could take (conv_bias, states, cu_seqlens, slots) is left out: the node computes a prompt from its first token.
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "fused_linear_attention/attn_types.h"
#include "graph/graph.h"
#include "graph/operator.h"
#include "graph/operator_factory.h"
#include "graph/tensor.h"
#include "node_attributes.h"
#include "register/register.h"

namespace domi {
namespace {

using custom_ops::onnx::NodeAttributes;
using custom_ops::onnx::Refusal;
using namespace custom_ops::linear_attention;

constexpr const char* kOrigin = "LlmExporter::1::FusedLinearAttention";
constexpr const char* kInputs[] = {"qkv", "gate", "beta", "conv_weight"};
constexpr uint32_t kInputCount = 4;
constexpr const char* kAttributes = "attribute";  // the JSON text: where ATC puts it, and where the first step leaves it for the second

struct Node {
    std::string attnType;
    Heads heads;
    bool useQkL2norm, gateFold;
    std::vector<float> gateCoef, gateBias;  // [Hv] with gateFold
};

Node Read(const ge::Operator& op) {
    ge::AscendString text;
    const bool any = op.GetAttr(kAttributes, text) == ge::GRAPH_SUCCESS && text.GetString() != nullptr;
    const NodeAttributes attributes(any ? text.GetString() : "[]");
    attributes.RequireNoneBut({"name", "attn_type", "num_k_heads", "num_v_heads", "head_k_dim", "head_v_dim", "use_qk_l2norm", "gate_fold",
                               "gate_coef", "gate_bias"});
    Node node;
    node.attnType = attributes.Text("attn_type");
    const AttnType* type = FindAttnType(node.attnType);
    if (type == nullptr) {
        std::string known;
        for (const AttnType& one : kAttnTypes) known += (known.empty() ? "" : ", ") + std::string(one.name);
        throw Refusal("attn_type '" + node.attnType + "' is not known; there are " + known);
    }
    node.heads = {attributes.Positive("num_k_heads"), attributes.Positive("num_v_heads"), attributes.Positive("head_k_dim"),
                  attributes.Positive("head_v_dim")};
    if (node.heads.valueHeads % node.heads.keyHeads != 0)
        throw Refusal("num_v_heads " + std::to_string(node.heads.valueHeads) + " must be a multiple of num_k_heads " +
                      std::to_string(node.heads.keyHeads));
    node.useQkL2norm = attributes.Flag("use_qk_l2norm", true);
    node.gateFold = attributes.Flag("gate_fold", false);
    for (const char* name : {"gate_coef", "gate_bias"})
        if (!node.gateFold && attributes.Has(name)) throw Refusal("attribute " + std::string(name) + " goes with gate_fold 1");
    if (node.gateFold) {
        if (type->gate != Gate::kPerHead) throw Refusal("gate_fold goes with a gate per head, which " + node.attnType + " has not");
        node.gateCoef = attributes.Floats("gate_coef", static_cast<size_t>(node.heads.valueHeads));
        node.gateBias = attributes.Floats("gate_bias", static_cast<size_t>(node.heads.valueHeads));
    }
    return node;
}

// Puts the operators of a node into its graph; their names begin with the node's, so that they are unique in the model.
class Builder {
public:
    explicit Builder(std::string prefix) : prefix_(std::move(prefix)) {}

    ge::Operator Data(const char* name, int64_t index) const {
        ge::Operator data = New(name, "Data");
        data.SetAttr("index", index);
        return data;
    }

    template <typename T>
    ge::Operator Const(const char* name, const std::vector<T>& values, ge::DataType type) const {
        const ge::TensorDesc desc(ge::Shape({static_cast<int64_t>(values.size())}), ge::FORMAT_ND, type);
        ge::Operator constant = New(name, "Const");
        constant.SetAttr("value", ge::Tensor(desc, reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)));
        constant.UpdateOutputDesc("y", desc);
        return constant;
    }

    // [B, D, L] -> [B, L, D]
    ge::Operator Transposed(const ge::Operator& x) const {
        ge::Operator transpose = New("qkv_by_token", "Transpose");
        transpose.SetInput("x", x, "y");
        transpose.SetInput("perm", Const<int64_t>("perm", {0, 2, 1}, ge::DT_INT64), "y");
        return transpose;
    }

    ge::Operator New(const char* name, const char* type) const {
        if (!ge::OperatorFactory::IsExistOp(type)) throw Refusal("operator " + std::string(type) + " is not installed");
        return ge::OperatorFactory::CreateOperator((prefix_ + "/" + name).c_str(), type);
    }

private:
    const std::string prefix_;
};

void Build(const Node& node, const std::string& name, ge::Graph& graph) {
    const Builder builder(name);
    std::vector<ge::Operator> inputs;
    for (const char* input : kInputs) inputs.push_back(builder.Data(input, static_cast<int64_t>(inputs.size())));
    ge::Operator attention = builder.New("attention", "FusedLinearAttention");
    attention.SetInput(kInputs[0], builder.Transposed(inputs[0]), "y");
    for (size_t i = 1; i < inputs.size(); ++i) attention.SetInput(kInputs[i], inputs[i], "y");
    if (node.gateFold) {
        attention.SetInput("gate_coef", builder.Const("gate_coef", node.gateCoef, ge::DT_FLOAT), "y");
        attention.SetInput("gate_bias", builder.Const("gate_bias", node.gateBias, ge::DT_FLOAT), "y");
    }
    attention.SetAttr("attn_type", node.attnType.c_str());
    attention.SetAttr("num_k_heads", node.heads.keyHeads);
    attention.SetAttr("num_v_heads", node.heads.valueHeads);
    attention.SetAttr("head_k_dim", node.heads.keyDim);
    attention.SetAttr("head_v_dim", node.heads.valueDim);
    attention.SetAttr("use_qk_l2norm", node.useQkL2norm);
    attention.SetAttr("gate_fold", node.gateFold);
    graph.SetInputs(inputs).SetOutputs(std::vector<std::pair<ge::Operator, std::vector<size_t>>>{{attention, {0}}});
}

std::string NameOf(const ge::Operator& op) {
    ge::AscendString name;
    return op.GetName(name) == ge::GRAPH_SUCCESS && name.GetString() != nullptr ? name.GetString() : "";
}

// ATC is a command: what it cannot take goes to its error stream, and nothing is thrown into it.
template <typename Step>
Status Guarded(const ge::Operator& op, const Step& step) {
    try {
        step();
        return SUCCESS;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "LlmExporter::FusedLinearAttention %s: %s\n", NameOf(op).c_str(), error.what());
        return FAILED;
    }
}

Status ParseNode(const ge::Operator& node, ge::Operator& call) {
    return Guarded(node, [&] {
        Read(node);
        const size_t inputs = node.GetInputsSize();  // 0: ATC connects it later
        if (inputs != 0 && inputs != kInputCount)
            throw Refusal("it has " + std::to_string(inputs) + " inputs, expected are qkv, gate, beta and conv_weight");
        ge::AscendString text;
        node.GetAttr(kAttributes, text);
        call.SetAttr(kAttributes, text);
        call.SetAttr("original_type", kOrigin);
        call.DynamicInputRegister("args", kInputCount);
        call.DynamicOutputRegister("output", 1);
    });
}

Status MakeGraph(const ge::Operator& call, ge::Graph& graph) {
    return Guarded(call, [&] { Build(Read(call), NameOf(call), graph); });
}

}  // namespace

REGISTER_CUSTOM_OP("PartitionedCall")
    .FrameworkType(ONNX)
    .OriginOpType({ge::AscendString(kOrigin)})
    .ParseParamsByOperatorFn(ParseNode)
    .ParseOpToGraphFn(MakeGraph)
    .ImplyType(ImplyType::TVM);

}  // namespace domi
