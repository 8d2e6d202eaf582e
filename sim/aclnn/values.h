// What an operator of the table sees instead of the handles of its C function: tensors are ATen views of the device bytes.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <vector>

#include "aclnn/acl_meta.h"
#include "sim/opapi/one_device.h"

namespace sim::aclnn {

using at::Scalar;
using at::Tensor;
using Optional = std::optional<at::Tensor>;  // a tensor whose handle may be null
using OptionalScalar = std::optional<at::Scalar>;
using Ints = std::vector<int64_t>;
using OptionalInts = std::optional<std::vector<int64_t>>;
using Tensors = std::vector<at::Tensor>;  // a null entry is an undefined tensor
using Scalars = std::vector<at::Scalar>;
using Dtype = at::ScalarType;
using Text = std::string;

// A tensor that is written, possibly after being read. Assigning a result to it checks the shape and converts to its dtype.
class Out : public at::Tensor {
 public:
    Out() = default;
    explicit Out(const at::Tensor& view) : at::Tensor(view) {}
    Out(const Out&) = default;
    void operator=(const Out&) = delete;
    void operator=(const at::Tensor& result) const;
};
// An output whose handle may be null: nobody wants the result then.
class OptionalOut : public Out {
 public:
    using Out::Out;
    void operator=(const at::Tensor& result) const {
        if (defined()) Out::operator=(result);
    }
};
// An output whose size the data decides. The handle gets the shape of the result and its buffer the elements; such a call
// waits for its stream, since its caller reads the shape next.
class DynamicOut {
 public:
    DynamicOut(const at::Tensor& buffer, aclTensor* handle) : buffer_(buffer), handle_(handle) {}
    void operator=(const at::Tensor& result) const;
    const at::Tensor& Buffer() const { return buffer_; }

 private:
    at::Tensor buffer_;
    aclTensor* handle_;
};
using Outs = std::vector<Out>;
using OptionalDynamicOut = std::optional<DynamicOut>;
class Bools : public std::vector<uint8_t> {
 public:
    using std::vector<uint8_t>::vector;
    template <size_t N>
    std::array<bool, N> Array() const {
        std::array<bool, N> values{};
        for (size_t i = 0; i < N; ++i) values[i] = i >= size() || (*this)[i] != 0;
        return values;
    }
};

struct ArgumentName {
    const char* function;
    const char* parameters;  // "(Tensor)self, (Tensor)other"
    size_t index;
    opapi::OneDevice& device;  // of all arguments of the call
    std::string Text() const;  // for messages: "aclnnAdd: other"
};

// C: the type in the C function. Read: its value, or HostError. Bytes: traffic for the modelled time.
template <typename Value>
struct Argument {  // bool, int64_t, double ...
    using C = Value;
    static Value Read(Value value, const ArgumentName&) { return value; }
};
#define SIM_ACLNN_ARGUMENT(Value, CType)                          \
    template <>                                                   \
    struct Argument<Value> {                                      \
        using C = CType;                                          \
        static Value Read(CType handle, const ArgumentName& name); \
    }
SIM_ACLNN_ARGUMENT(Tensor, const aclTensor*);
SIM_ACLNN_ARGUMENT(Optional, const aclTensor*);
SIM_ACLNN_ARGUMENT(Out, const aclTensor*);
SIM_ACLNN_ARGUMENT(OptionalOut, const aclTensor*);
SIM_ACLNN_ARGUMENT(DynamicOut, aclTensor*);
SIM_ACLNN_ARGUMENT(OptionalDynamicOut, aclTensor*);
SIM_ACLNN_ARGUMENT(Tensors, const aclTensorList*);
SIM_ACLNN_ARGUMENT(Outs, const aclTensorList*);
SIM_ACLNN_ARGUMENT(Scalar, const aclScalar*);
SIM_ACLNN_ARGUMENT(OptionalScalar, const aclScalar*);
SIM_ACLNN_ARGUMENT(Scalars, const aclScalarList*);
SIM_ACLNN_ARGUMENT(Ints, const aclIntArray*);
SIM_ACLNN_ARGUMENT(OptionalInts, const aclIntArray*);
SIM_ACLNN_ARGUMENT(Bools, const aclBoolArray*);
SIM_ACLNN_ARGUMENT(Dtype, int32_t);
SIM_ACLNN_ARGUMENT(Text, const char*);
#undef SIM_ACLNN_ARGUMENT

inline double Traffic(const at::Tensor& tensor) { return tensor.defined() ? static_cast<double>(tensor.nbytes()) : 0; }
inline double Traffic(const Optional& tensor) { return tensor.has_value() ? Traffic(*tensor) : 0; }
inline double Traffic(const DynamicOut& out) { return Traffic(out.Buffer()); }
template <typename Element>
double Traffic(const std::vector<Element>& list) {
    double bytes = 0;
    if constexpr (std::is_base_of_v<at::Tensor, Element>)
        for (const Element& tensor : list) bytes += Traffic(static_cast<const at::Tensor&>(tensor));
    return bytes;
}
template <typename Other, typename = std::enable_if_t<!std::is_base_of_v<at::Tensor, Other>>>
double Traffic(const Other&) {
    return 0;
}

}  // namespace sim::aclnn
