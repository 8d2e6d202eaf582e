// What the operators of a decode step on the CPU share: normed tokens, and products with matrices that are read once.
#pragma once

#include <memory>
#include <vector>

#include "op_support.h"

namespace custom_ops {

// x [..., columns] and, where given, the weight of the RMS norm before the product.
struct FewTokens {
    const char* op;
    const Tensor& x;
    const Tensor* normWeight;
    double epsilon;

    int64_t Columns() const { return x.size(-1); }
    int64_t Tokens() const { return Columns() ? Product(x.sizes()) / Columns() : 0; }
    native::Element Element() const { return ElementOf(x); }
    void Check() const;
};

// x [..., columns] of 1 to 4 dimensions.
void CheckTokens(const char* op, const Tensor& x);
// The weight of an RMS norm of x, [columns] float32.
void CheckNorm(const char* op, const char* argument, const Tensor& weight, const Tensor& x, double epsilon);
// weight [rows, columns], bias [rows] of the dtype of x.
void CheckMatrix(const char* op, const Tensor& x, int64_t columns, const Tensor& weight, const std::optional<Tensor>& bias);

// Tokens as the linear kernels take them.
class Widened {
public:
    explicit Widened(const FewTokens& tokens);
    Widened(native::Element element, const void* x, int64_t tokens, int64_t columns);
    const native::LinearArgs& Args() const { return args_; }

private:
    void Fill(native::Element element, const void* x, int64_t tokens, int64_t columns);

    std::unique_ptr<char[]> memory_;
    native::LinearArgs args_;
};

// All matrices, their rows on all threads.
void RunLinear(const std::vector<native::LinearMatrix>& matrices, const native::LinearArgs& args);

}  // namespace custom_ops
