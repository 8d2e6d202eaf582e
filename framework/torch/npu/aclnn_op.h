// Calls an operator of the op package through its two aclnn functions, on the current stream. A front end is a check, its
// outputs and a line:
//
//     const OnDeviceOf device(x);
//     Tensor y = NewEmpty(x, shape.y, ScalarType::Float);
//     static const AclnnOp op("HcPreInvRms");
//     op(x, epsilon, Out{y});
//
// Arguments come in the order of aclnn<Op>GetWorkspaceSize: inputs, attributes, outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <torch/csrc/stable/accelerator.h>

#include "../checks.h"
#include "cann_functions.h"
#include "task_queue.h"

namespace custom_ops::npu {

// The tensor's device is the current one while this lives.
struct OnDeviceOf : torch::stable::accelerator::DeviceGuard {
    explicit OnDeviceOf(const Tensor& tensor) : DeviceGuard(tensor.get_device_index()) {}
};

// What the operator writes. It must be contiguous: a copy would take the result.
struct Out {
    const Tensor& tensor;
};

// What the operator reads and writes, if it is given. Contiguous for the same reason.
struct InPlace {
    const std::optional<Tensor>& tensor;
};

class AclnnOp;
struct Failures;

// One call, from the first phase until the second has run. Tensors are not held that long: their memory is reused in the order of
// the stream, which this call is part of, and releasing one on the queue's thread may need Python's lock.
class AclnnCall {
public:
    static constexpr int kMaxTensors = 32, kMaxOutputs = 8;

    explicit AclnnCall(const AclnnOp& op);
    ~AclnnCall();
    AclnnCall(const AclnnCall&) = delete;

    const aclTensor* Argument(const Tensor& input);
    const aclTensor* Argument(const std::optional<Tensor>& input) { return input ? Argument(*input) : nullptr; }
    const aclTensor* Argument(const Out& output);
    const aclTensor* Argument(const InPlace& state) { return state.tensor ? Argument(Out{*state.tensor}) : nullptr; }
    int64_t Argument(int64_t attribute) { return attribute; }
    double Argument(double attribute) { return attribute; }
    bool Argument(bool attribute) { return attribute; }
    const char* Argument(const std::string& attribute) { return attribute.c_str(); }

private:
    friend class AclnnOp;
    const AclnnOp& op_;
    void* const stream_;
    uint64_t workspaceBytes_ = 0;
    void* workspace_ = nullptr;
    aclOpExecutor* executor_ = nullptr;
    bool ran_ = false;

    struct Memory {
        void* data;
        size_t bytes;
    };
    aclTensor* handles_[kMaxTensors];
    Memory outputs_[kMaxOutputs];
    int handleCount_ = 0, outputCount_ = 0;
    std::vector<Tensor> copies_;  // contiguous inputs, until the launch is in the queue

    const std::shared_ptr<Failures> failures_;  // of the calling thread
    const std::thread::id caller_ = std::this_thread::get_id();

    const aclTensor* Create(const Tensor& contiguous);
    void Run() noexcept;
};

// Lives as long as the process: make it a static of its front end.
class AclnnOp {
public:
    // Finds both functions. Throws when the package is missing; the next call of the front end looks again.
    explicit AclnnOp(const char* opType);

    template <typename... Arguments>
    void operator()(const Tensor& first, const Arguments&... others) const {
        constexpr int written = (0 + ... + (std::is_same_v<Arguments, Out> || std::is_same_v<Arguments, InPlace>));
        static_assert(sizeof...(others) < AclnnCall::kMaxTensors && written <= AclnnCall::kMaxOutputs);
        const auto call = std::make_shared<AclnnCall>(*this);
        Prepare(*call, first, others...);
        Launch(call, first);
    }

private:
    friend class AclnnCall;
    using Run = int (*)(void* workspace, uint64_t workspaceBytes, aclOpExecutor* executor, void* stream);
    const std::string name_, prepareName_;  // aclnn<Op>, aclnn<Op>GetWorkspaceSize
    void* const prepare_;
    const Run run_;

    template <typename... Arguments>
    void Prepare(AclnnCall& call, const Arguments&... arguments) const {
        using Function = int (*)(decltype(call.Argument(arguments))..., uint64_t*, aclOpExecutor**);
        CheckPrepared(reinterpret_cast<Function>(prepare_)(call.Argument(arguments)..., &call.workspaceBytes_, &call.executor_));
    }
    void CheckPrepared(int status) const;
    // The second phase, in the order of the stream's task queue.
    void Launch(const std::shared_ptr<AclnnCall>& call, const Tensor& like) const;
};

}  // namespace custom_ops::npu
