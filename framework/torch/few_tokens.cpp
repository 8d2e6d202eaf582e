#include "few_tokens.h"

namespace custom_ops {

void CheckTokens(const char* op, const Tensor& x) {
    CheckGiven(op, {{"x", &x}});
    if (x.dim() < 1 || x.dim() > 4) Fail(op, "x must have 1 to 4 dimensions, got " + Text(x.sizes()));
    CheckDtype(op, "x", x, {ScalarType::BFloat16, ScalarType::Half, ScalarType::Float});
}

void CheckNorm(const char* op, const char* argument, const Tensor& weight, const Tensor& x, double epsilon) {
    CheckDtype(op, argument, weight, {ScalarType::Float});
    const int64_t columns = x.size(-1);
    if (weight.dim() != 1 || weight.size(0) != columns)
        Fail(op, std::string(argument) + " must be [" + std::to_string(columns) + "] to match x " + Text(x.sizes()) + ", got " +
                     Text(weight.sizes()));
    CheckFiniteNonNegative(op, "epsilon", epsilon);
}

void FewTokens::Check() const {
    CheckTokens(op, x);
    if (normWeight) CheckNorm(op, "norm_weight", *normWeight, x, epsilon);
}

void CheckMatrix(const char* op, const Tensor& x, int64_t columns, const Tensor& weight, const std::optional<Tensor>& bias) {
    if (weight.dim() != 2 || weight.size(1) != columns)
        Fail(op, "weight must be [rows, " + std::to_string(columns) + "] to match x " + Text(x.sizes()) + ", got " + Text(weight.sizes()));
    if (bias && (bias->dim() != 1 || bias->size(0) != weight.size(0)))
        Fail(op, "bias must be [rows] = [" + std::to_string(weight.size(0)) + "], got " + Text(bias->sizes()));
    CheckSameDtype(op, "weight", weight, x, "x");
    if (bias) CheckSameDtype(op, "bias", *bias, x, "x");
}

Widened::Widened(const FewTokens& tokens) {
    Contiguous in;
    const void* x = in.Data(tokens.x);
    if (!tokens.normWeight) {
        Fill(tokens.Element(), x, tokens.Tokens(), tokens.Columns());
        return;
    }
    const std::unique_ptr<char[]> normed(new char[tokens.x.numel() * tokens.x.element_size()]);
    native::HostKernels().rmsNorm({x, in.Floats(*tokens.normWeight), normed.get(), tokens.Element(), tokens.Columns(), tokens.epsilon}, 0,
                                  tokens.Tokens());
    Fill(tokens.Element(), normed.get(), tokens.Tokens(), tokens.Columns());
}

Widened::Widened(native::Element element, const void* x, int64_t tokens, int64_t columns) { Fill(element, x, tokens, columns); }

void Widened::Fill(native::Element element, const void* x, int64_t tokens, int64_t columns) {
    constexpr int64_t kLine = 64;
    const native::Kernels& kernels = native::HostKernels();
    const int64_t wide = (columns + kernels.wideColumns - 1) / kernels.wideColumns * kernels.wideColumns;
    memory_.reset(new char[tokens * wide * sizeof(float) + kLine]);
    float* const to = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory_.get()) + kLine - 1) / kLine * kLine);
    kernels.widen(element, x, tokens, columns, to);
    args_ = {to, element, tokens, columns};
}

namespace {

int64_t RowBytes(const native::LinearArgs& args) {
    return std::max<int64_t>(args.columns * (args.element == native::Element::kFloat32 ? 4 : 2), 1);
}

// A multiple of the kernels' tile; a thread is busy with it for a few microseconds, which others wait for at the end.
int64_t RowsPerBlock(const native::LinearArgs& args) {
    constexpr int64_t kBlockBytes = 128 << 10;
    return std::max<int64_t>(kBlockBytes / (RowBytes(args) * native::kRowsPerBlock), 1) * native::kRowsPerBlock;
}

}  // namespace

void RunLinear(const std::vector<native::LinearMatrix>& matrices, const native::LinearArgs& args) {
    struct Block { const native::LinearMatrix* matrix; int64_t first, last; };
    const int64_t rowsPerBlock = RowsPerBlock(args);
    std::vector<Block> blocks;
    int64_t rows = 0;
    for (const native::LinearMatrix& matrix : matrices) {
        rows += matrix.rows;
        for (int64_t first = 0; first < matrix.rows; first += rowsPerBlock)
            blocks.push_back({&matrix, first, std::min(matrix.rows, first + rowsPerBlock)});
    }
    const native::Kernels& kernels = native::HostKernels();
    ForTokens(blocks.size(), rows * RowBytes(args), [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) kernels.linear(*blocks[i].matrix, args, blocks[i].first, blocks[i].last);
    }, 1);
}

}  // namespace custom_ops
