// What every operator's check needs: messages in the words of python/custom_ops/_fake.py, and short ways to say what was given.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include <torch/csrc/stable/tensor.h>

#define CUSTOM_OPS_API __attribute__((visibility("default")))  // what libcustom_ops_torch_npu uses of libcustom_ops_torch

namespace custom_ops {

using Sizes = torch::headeronly::IntHeaderOnlyArrayRef;  // borrowed
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// The shape of a result, at most [b, s, n, n]. In place: the front end's share of a small call is mostly allocations.
struct Shape {
    int64_t sizes[4];
    int32_t rank = 0;

    Shape(Sizes leading, std::initializer_list<int64_t> trailing) {
        for (int64_t size : leading) sizes[rank++] = size;
        for (int64_t size : trailing) sizes[rank++] = size;
    }
    operator Sizes() const { return Sizes(sizes, rank); }
};

inline int64_t Product(Sizes sizes) {
    int64_t product = 1;
    for (int64_t size : sizes) product *= size;
    return product;
}

std::string Text(Sizes shape);          // [3, 4, 16]
std::string Text(double value);         // as Python's f"{value:g}"
CUSTOM_OPS_API std::string Text(ScalarType dtype);  // bfloat16
std::string DeviceText(const Tensor& tensor);

// std::runtime_error "<op>: <what>"; reaches Python as RuntimeError.
[[noreturn]] void Fail(const char* op, const std::string& what);
// torch gave no tensor: its own words. To be called right after the call that failed.
[[noreturn]] void FailEmpty(Sizes shape, ScalarType dtype);

// None arrives as an undefined tensor.
void CheckGiven(const char* op, std::initializer_list<std::pair<const char*, const Tensor*>> arguments);
void CheckDtype(const char* op, const char* argument, const Tensor& tensor, std::initializer_list<ScalarType> accepted);
// `tensor` has the dtype of `like`, the argument called `name`.
void CheckSameDtype(const char* op, const char* argument, const Tensor& tensor, const Tensor& like, const char* name);
void CheckRange(const char* op, const char* argument, int64_t value, int64_t low, int64_t high);
void CheckFiniteNonNegative(const char* op, const char* argument, double value);
// `tensor` lies where `x` lies, the argument called `name`.
void CheckDevice(const char* op, const char* argument, const Tensor& tensor, const Tensor& x, const char* name = "x");

}  // namespace custom_ops
