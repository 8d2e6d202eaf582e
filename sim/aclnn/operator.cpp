#include "sim/aclnn/operator.h"

#include "sim/host/current_soc.h"
#include "sim/host/text.h"

namespace sim::aclnn {
namespace {

using host::kInvalidParameter;
using host::Refuse;

constexpr int32_t kVectorCoreException = 507035;  // what a stream gives after an AI core met bad data, e.g. an index out of range

std::string Text(at::IntArrayRef shape) {
    std::vector<std::string> dims;
    for (const int64_t dim : shape) dims.push_back(std::to_string(dim));
    return "[" + host::Join(dims) + "]";
}

void CheckBroadcast(const char* function, const Shapes& shapes) {
    if (shapes.outputs.empty()) return;
    const at::IntArrayRef out = shapes.outputs.front().sizes();
    std::vector<int64_t> shape = shapes.inPlace ? out.vec() : std::vector<int64_t>();
    for (const at::Tensor& input : shapes.inputs) {
        const at::IntArrayRef next = input.sizes();
        for (size_t back = 1; back <= next.size(); ++back) {
            if (back > shape.size()) shape.insert(shape.begin(), 1);
            int64_t& have = shape[shape.size() - back];
            const int64_t dim = next[next.size() - back];
            if (have == dim || dim == 1) continue;
            if (have != 1)
                Refuse(kInvalidParameter, "%s: an input of shape %s does not broadcast with %s", function, Text(next).c_str(),
                       Text(shape).c_str());
            have = dim;
        }
    }
    if (c10::multiply_integers(shape) != shapes.outputs.front().numel() || (shapes.inPlace && at::IntArrayRef(shape) != out))
        Refuse(kInvalidParameter, "%s: the inputs broadcast to %s, the output has shape %s", function, Text(shape).c_str(),
               Text(out).c_str());
}

void CheckCube(const char* function, const Shapes& shapes) {
    for (const at::Tensor& input : shapes.inputs) {
        const at::ScalarType type = input.scalar_type();
        if (type != at::kFloat && type != at::kHalf && type != at::kBFloat16)
            Refuse(kInvalidParameter, "%s: dtype %s is not supported, use float32, float16 or bfloat16", function,
                   c10::getDtypeNames(type).first.data());
    }
}

// The rule of matmul, which mm, bmm and mv are cases of.
void CheckProduct(const char* function, const Shapes& shapes) {
    const at::Tensor &a = shapes.inputs[shapes.inputs.size() - 2], &b = shapes.inputs.back();
    const bool fits = a.dim() > 0 && b.dim() > 0 && a.size(-1) == b.size(b.dim() == 1 ? 0 : -2);
    if (!fits) Refuse(kInvalidParameter, "%s: shapes %s and %s cannot be multiplied", function, Text(a.sizes()).c_str(),
                      Text(b.sizes()).c_str());
}

}  // namespace

void Check(Kind kind, const char* function, const Shapes& shapes) {
    if (kind == Kind::Elementwise) CheckBroadcast(function, shapes);
    if (kind == Kind::Cube || kind == Kind::Product) CheckCube(function, shapes);
    if (kind == Kind::Product) CheckProduct(function, shapes);
}

// Modelled time: every operand crosses the HBM once; the launch is the floor.
StreamWork MakeWork(const char* function, double bytes, std::function<void()> body) {
    return {function, [function, bytes, body = std::move(body)] {
                const SocSpec& soc = host::CurrentSoc();
                WorkResult result;
                result.microseconds = 1e6 * (soc.launchSeconds + bytes / soc.hbmBytesPerSecond);
                try {
                    const at::AutoDispatchBelowADInplaceOrView below;  // the host's autograd has recorded its own
                    body();
                } catch (const c10::Error& error) {
                    result.status = kVectorCoreException;
                    result.message = std::string(function) + ": " + error.what_without_backtrace();
                } catch (const std::exception& error) {
                    result.status = kVectorCoreException;
                    result.message = std::string(function) + ": " + error.what();
                }
                return result;
            }};
}

int32_t RunAndWait(aclOpExecutor* executor, void* stream) {
    int32_t status = WaitForDevice();
    if (status != 0) {
        aclDestroyAclOpExecutor(executor);
        return status;
    }
    status = opapi::RunBuiltin(executor, stream);
    return status != 0 ? status : WaitForDevice();
}

}  // namespace sim::aclnn
