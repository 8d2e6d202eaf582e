// cpu_linear: several linear maps of the same few tokens. What a decode step on the CPU spends its time on is reading the weights.
#include "few_tokens.h"

namespace custom_ops {
namespace {

constexpr const char* kOp = "cpu_linear";

std::vector<Tensor> CpuLinear(const Tensor& x, std::vector<Tensor> weights, std::vector<std::optional<Tensor>> biases,
                              std::optional<Tensor> normWeight, double epsilon, std::optional<Tensor> residual) {
    const FewTokens tokens{kOp, x, normWeight ? &*normWeight : nullptr, epsilon};
    tokens.Check();
    if (weights.size() != biases.size())
        Fail(kOp, "weights and biases must be as many, got " + std::to_string(weights.size()) + " and " + std::to_string(biases.size()));
    for (size_t i = 0; i < weights.size(); ++i) CheckMatrix(kOp, x, tokens.Columns(), weights[i], biases[i]);
    if (residual && weights.size() != 1) Fail(kOp, "residual is taken with one weight, got " + std::to_string(weights.size()));

    std::vector<Tensor> results;
    std::vector<native::LinearMatrix> matrices;
    Contiguous in;
    for (size_t i = 0; i < weights.size(); ++i) {
        const Shape shape(x.sizes().slice(0, x.dim() - 1), {weights[i].size(0)});
        results.push_back(NewEmpty(x, shape, x.scalar_type()));
        if (residual && (residual->sizes() != Sizes(shape) || residual->scalar_type() != x.scalar_type()))
            Fail(kOp, "residual must be " + Text(shape) + " " + Text(x.scalar_type()) + " as the result, got " +
                          Text(residual->sizes()) + " " + Text(residual->scalar_type()));
        matrices.push_back(
            {in.Data(weights[i]), in.Data(biases[i]), in.Data(residual), results.back().mutable_data_ptr(), weights[i].size(0)});
    }
    const Widened wide(tokens);
    RunLinear(matrices, wide.Args());
    return results;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) {
    m.def("cpu_linear(Tensor x, Tensor[] weights, Tensor?[] biases, *, Tensor? norm_weight=None, float epsilon=0., Tensor? residual=None) "
          "-> Tensor[]");
}
STABLE_TORCH_LIBRARY_IMPL(custom, CPU, m) { m.impl("cpu_linear", TORCH_BOX(&CpuLinear)); }

}  // namespace custom_ops
