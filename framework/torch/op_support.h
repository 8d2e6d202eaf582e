// Small pieces the operators share: contiguous inputs, new outputs, element types, splitting tokens over PyTorch's threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "checks.h"
#include "kernels/kernels.h"
#include "large_results.h"

namespace custom_ops {

// What tensors hold, in contiguous memory. Copies, where they take some, live as long as this object; the tensors must, too.
class Contiguous {
public:
    const void* Data(const Tensor& tensor) {
        if (tensor.is_contiguous()) return tensor.const_data_ptr();
        return copies_.emplace_back(torch::stable::contiguous(tensor)).const_data_ptr();
    }
    const void* Data(const std::optional<Tensor>& tensor) { return tensor ? Data(*tensor) : nullptr; }
    template <typename T>
    const float* Floats(const T& tensor) { return static_cast<const float*>(Data(tensor)); }

private:
    std::vector<Tensor> copies_;
};

// Uninitialised, contiguous, on the device of `like`. The direct C call: half the time of a dispatcher round trip. On the CPU, from
// `largeBytes` on, on pages that are kept for the next one.
inline Tensor NewEmpty(const Tensor& like, const Shape& shape, ScalarType dtype, int64_t largeBytes = kLargeResultBytes) {
    const int32_t dtypeCode = torch::stable::detail::to<int32_t>(torch::stable::detail::from(dtype));
    int64_t strides[4], stride = 1, bytes = static_cast<int64_t>(aoti_torch_dtype_element_size(dtypeCode));
    bool overflows = false;  // int64: torch refuses it
    for (int32_t dim = shape.rank; dim-- > 0;) {
        strides[dim] = stride;
        overflows |= __builtin_mul_overflow(stride, std::max<int64_t>(shape.sizes[dim], 1), &stride);
        overflows |= __builtin_mul_overflow(bytes, shape.sizes[dim], &bytes);
    }
    int32_t deviceType;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &deviceType));
    AtenTensorHandle handle;
    if (!overflows && bytes >= largeBytes && deviceType == aoti_torch_device_type_cpu() &&
        (handle = NewLargeResult(shape, strides, dtypeCode, bytes)))
        return Tensor(handle);
    if (aoti_torch_empty_strided(shape.rank, shape.sizes, strides, dtypeCode, deviceType, like.get_device_index(), &handle))
        FailEmpty(shape, dtype);
    return Tensor(handle);
}

inline native::Element ElementOf(const Tensor& tensor) {
    switch (tensor.scalar_type()) {
        case ScalarType::BFloat16: return native::Element::kBfloat16;
        case ScalarType::Half: return native::Element::kFloat16;
        default: return native::Element::kFloat32;
    }
}

// Calls run(firstToken, lastToken) over all tokens, on as many threads as torch.set_num_threads allows. A thread takes blocks of a range
// of its own, the same in every call, whose state is still in its cache; then those left in the ranges of others: a core that is busy
// elsewhere does not hold up the call. Below kSerialBytes a thread's start costs more than it saves.
template <typename Run>
void ForTokens(int64_t tokens, int64_t bytes, const Run& run, int64_t mostPerBlock = native::kTokensPerBlock) {
    constexpr int64_t kSerialBytes = 256 << 10;
    const int64_t threads = bytes < kSerialBytes ? 1 : torch::stable::get_num_threads();
    if (threads <= 1 || tokens <= 1) {
        if (tokens > 0) run(int64_t{0}, tokens);
        return;
    }
    const int64_t rounds = (tokens + mostPerBlock * threads - 1) / (mostPerBlock * threads);
    const int64_t perBlock = (tokens + threads * rounds - 1) / (threads * rounds);
    const int64_t blocks = (tokens + perBlock - 1) / perBlock;
    const int64_t ranges = std::min(threads, blocks);
    struct alignas(64) Range { std::atomic<int64_t> next; int64_t last; };
    const std::unique_ptr<Range[]> range(new Range[ranges]);
    for (int64_t i = 0; i < ranges; ++i) {
        range[i].next.store(blocks * i / ranges, std::memory_order_relaxed);
        range[i].last = blocks * (i + 1) / ranges;
    }
    torch::stable::parallel_for(0, ranges, 1, [&](int64_t own, int64_t) {
        for (int64_t i = 0; i < ranges; ++i) {
            Range& from = range[(own + i) % ranges];
            for (int64_t block; (block = from.next.fetch_add(1, std::memory_order_relaxed)) < from.last;)
                run(block * perBlock, std::min(tokens, (block + 1) * perBlock));
        }
    });
}

}  // namespace custom_ops
