// cpu_attention_step: softmax attention of one new token in every row of a memory, from the projections to what o_proj takes.
#include "op_support.h"

namespace custom_ops {
namespace {

constexpr const char* kOp = "cpu_attention_step";

struct StepInputs {
    const Tensor &q, &k, &v;
    const std::optional<Tensor> &qNorm, &kNorm, &cosines, &sines;
    const Tensor &keys, &values;
    int64_t first, slot;
    bool outputGate;
};

void CheckShape(const char* argument, const Tensor& tensor, Sizes want) {
    if (tensor.sizes() != want) Fail(kOp, std::string(argument) + " must be " + Text(want) + ", got " + Text(tensor.sizes()));
}

// keys and values are written: as they lie.
void CheckStep(const StepInputs& in) {
    CheckGiven(kOp, {{"q", &in.q}, {"k", &in.k}, {"v", &in.v}, {"keys", &in.keys}, {"values", &in.values}});
    CheckDtype(kOp, "q", in.q, {ScalarType::BFloat16, ScalarType::Half, ScalarType::Float});
    if (in.keys.dim() != 4) Fail(kOp, "keys must be [rows, kv_heads, capacity, dim], got " + Text(in.keys.sizes()));
    const int64_t rows = in.keys.size(0), width = in.keys.size(1) * in.keys.size(3);
    CheckShape("values", in.values, in.keys.sizes());
    CheckShape("k", in.k, Shape({}, {rows, 1, width}));
    CheckShape("v", in.v, Shape({}, {rows, 1, width}));
    const int64_t unit = width * (in.outputGate ? 2 : 1);
    if (in.q.dim() != 3 || in.q.size(0) != rows || in.q.size(1) != 1 || width == 0 || in.q.size(2) == 0 || in.q.size(2) % unit)
        Fail(kOp, "q must be [rows, 1, heads * dim] with heads a multiple of kv_heads (with output_gate twice as wide), got " +
                      Text(in.q.sizes()) + " for keys " + Text(in.keys.sizes()));
    for (const auto& [argument, tensor] : {std::pair<const char*, const Tensor*>{"k", &in.k}, {"v", &in.v}, {"keys", &in.keys},
                                           {"values", &in.values}, {"cosines", in.cosines ? &*in.cosines : nullptr},
                                           {"sines", in.sines ? &*in.sines : nullptr}})
        if (tensor) CheckSameDtype(kOp, argument, *tensor, in.q, "q");
    if (!in.keys.is_contiguous() || !in.values.is_contiguous()) Fail(kOp, "keys and values must be contiguous, they are written in place");
    CheckRange(kOp, "slot", in.slot, 0, in.keys.size(2) - 1);
    CheckRange(kOp, "first", in.first, 0, in.slot);
    using Norm = std::pair<const char*, const std::optional<Tensor>*>;
    for (const auto& [argument, norm] : {Norm{"q_norm", &in.qNorm}, Norm{"k_norm", &in.kNorm}}) {
        if (!*norm) continue;
        CheckDtype(kOp, argument, **norm, {ScalarType::Float});
        CheckShape(argument, **norm, Shape({}, {in.keys.size(3)}));
    }
    if (in.cosines.has_value() != in.sines.has_value()) Fail(kOp, "cosines and sines go together");
    if (!in.cosines) return;
    CheckShape("sines", *in.sines, in.cosines->sizes());
    if (2 * in.cosines->numel() > in.keys.size(3))
        Fail(kOp, "cosines must be at most dim / 2 values, got " + Text(in.cosines->sizes()) + " for dim " +
                      std::to_string(in.keys.size(3)));
}

Tensor CpuAttentionStep(const Tensor& q, const Tensor& k, const Tensor& v, std::optional<Tensor> qNorm, std::optional<Tensor> kNorm,
                        double epsilon, std::optional<Tensor> cosines, std::optional<Tensor> sines, bool interleaved, Tensor keys,
                        Tensor values, int64_t first, int64_t slot, double scale, bool outputGate) {
    CheckStep({q, k, v, qNorm, kNorm, cosines, sines, keys, values, first, slot, outputGate});
    CheckFiniteNonNegative(kOp, "epsilon", epsilon);
    const int64_t rows = keys.size(0), kvHeads = keys.size(1), dim = keys.size(3), heads = q.size(2) / (dim * (outputGate ? 2 : 1));
    Contiguous in;
    Tensor out = NewEmpty(q, Shape({}, {rows, 1, heads * dim}), q.scalar_type());
    const native::AttentionStepArgs args{
        in.Data(q), in.Data(k), in.Data(v), in.Floats(qNorm), in.Floats(kNorm), in.Data(cosines), in.Data(sines),
        keys.mutable_data_ptr(), values.mutable_data_ptr(), out.mutable_data_ptr(), ElementOf(q), heads, kvHeads, dim,
        cosines ? cosines->numel() : 0, keys.size(2), first, slot, interleaved, outputGate, epsilon, static_cast<float>(scale)};
    const native::Kernels& kernels = native::HostKernels();
    const int64_t bytes = 2 * rows * heads * (slot + 1 - first) * dim * static_cast<int64_t>(q.element_size());
    ForTokens(rows * kvHeads, bytes, [&](int64_t from, int64_t to) {
        for (int64_t task = from; task < to; ++task) kernels.attentionStep(args, task);
    }, 1);
    return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) {
    m.def("cpu_attention_step(Tensor q, Tensor k, Tensor v, Tensor? q_norm, Tensor? k_norm, float epsilon, Tensor? cosines, Tensor? sines, "
          "bool interleaved, Tensor(a!) keys, Tensor(b!) values, int first, int slot, float scale, bool output_gate) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(custom, CPU, m) { m.impl("cpu_attention_step", TORCH_BOX(&CpuAttentionStep)); }

}  // namespace custom_ops
