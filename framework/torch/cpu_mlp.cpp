// cpu_mlp: x + down(act(gate n) * (up n)) with n = RMS norm of x, for few tokens.
#include "few_tokens.h"

namespace custom_ops {
namespace {

constexpr const char* kOp = "cpu_mlp";

native::Activation ActivationOf(const std::string& name) {
    if (name == "silu") return native::Activation::kSilu;
    if (name == "gelu_tanh") return native::Activation::kGeluTanh;
    Fail(kOp, "activation '" + name + "' is not known, use silu or gelu_tanh");
}

Tensor CpuMlp(const Tensor& x, const Tensor& gate, const Tensor& up, const Tensor& down, std::vector<std::optional<Tensor>> biases,
              std::string activation, const Tensor& normWeight, double epsilon) {
    CheckGiven(kOp, {{"gate", &gate}, {"up", &up}, {"down", &down}, {"norm_weight", &normWeight}});
    const FewTokens tokens{kOp, x, &normWeight, epsilon};
    tokens.Check();
    if (biases.size() != 3) Fail(kOp, "biases must be those of gate, up and down, got " + std::to_string(biases.size()));
    const native::Activation act = ActivationOf(activation);
    CheckMatrix(kOp, x, tokens.Columns(), gate, biases[0]);
    CheckMatrix(kOp, x, tokens.Columns(), up, biases[1]);
    CheckMatrix(kOp, x, up.size(0), down, biases[2]);
    if (gate.size(0) != up.size(0) || down.size(0) != tokens.Columns())
        Fail(kOp, "gate and up must be [size, hidden], down [hidden, size], got " + Text(gate.sizes()) + ", " + Text(up.sizes()) + " and " +
                      Text(down.sizes()));

    Contiguous in;
    const int64_t size = up.size(0), elements = tokens.Tokens() * size;
    const std::unique_ptr<char[]> between(new char[2 * elements * x.element_size()]);
    char *const gated = between.get(), *const raised = gated + elements * x.element_size();
    {
        const Widened wide(tokens);
        RunLinear({{in.Data(gate), in.Data(biases[0]), nullptr, gated, size},
                   {in.Data(up), in.Data(biases[1]), nullptr, raised, size}},
                  wide.Args());
    }
    native::HostKernels().gate(tokens.Element(), act, gated, raised, elements);
    Tensor y = NewEmpty(x, Shape(x.sizes(), {}), x.scalar_type());
    const Widened wide(tokens.Element(), gated, tokens.Tokens(), size);
    RunLinear({{in.Data(down), in.Data(biases[2]), in.Data(x), y.mutable_data_ptr(), tokens.Columns()}}, wide.Args());
    return y;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) {
    m.def("cpu_mlp(Tensor x, Tensor gate, Tensor up, Tensor down, Tensor?[] biases, str activation, Tensor norm_weight, float epsilon) "
          "-> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(custom, CPU, m) { m.impl("cpu_mlp", TORCH_BOX(&CpuMlp)); }

}  // namespace custom_ops
