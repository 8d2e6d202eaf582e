#include "aclnn_op.h"

#include <atomic>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace custom_ops::npu {

// Launches of one thread that failed in the queue, raised by that thread's next call.
struct Failures {
    std::atomic<bool> any{false};
    std::mutex mutex;
    std::string text;

    void Add(const std::string& failure) {
        const std::lock_guard<std::mutex> lock(mutex);
        text += (text.empty() ? "" : "\n") + failure;
        any = true;
    }
    void Raise() {
        if (!any) return;
        const std::lock_guard<std::mutex> lock(mutex);
        any = false;
        throw std::runtime_error(std::exchange(text, {}));
    }
};

namespace {

constexpr int kFormatNd = 2;

const std::shared_ptr<Failures>& FailuresOfThisThread() {
    thread_local const auto failures = std::make_shared<Failures>();
    return failures;
}

int AclDtype(const Tensor& tensor) {
    switch (tensor.scalar_type()) {
        case ScalarType::Float: return 0;
        case ScalarType::Half: return 1;
        case ScalarType::Char: return 2;
        case ScalarType::Int: return 3;
        case ScalarType::Byte: return 4;
        case ScalarType::Long: return 9;
        case ScalarType::Bool: return 12;
        case ScalarType::BFloat16: return 27;
        default: throw std::runtime_error("custom_ops: no aclDataType is known for " + Text(tensor.scalar_type()));
    }
}

// With the sentence that the runtime has kept for this thread.
std::string StatusText(const std::string& function, int status) {
    const char* message = Cann().recentErrorMessage();
    return function + " failed with " + std::to_string(status) + ": " + (message ? message : "no message");
}

}  // namespace

AclnnCall::AclnnCall(const AclnnOp& op) : op_(op), stream_(CurrentStream()), failures_(FailuresOfThisThread()) { failures_->Raise(); }

AclnnCall::~AclnnCall() {
    const CannFunctions& cann = Cann();
    // Never run, because something in between has thrown. Only a repeatable executor may be destroyed.
    if (executor_ && cann.setExecutorRepeatable(executor_) == 0) cann.destroyExecutor(executor_);
    for (int i = 0; i < handleCount_; ++i) cann.destroyTensor(handles_[i]);
}

const aclTensor* AclnnCall::Create(const Tensor& contiguous) {
    const Sizes sizes = contiguous.sizes(), strides = contiguous.strides();
    aclTensor* handle = Cann().createTensor(sizes.data(), sizes.size(), AclDtype(contiguous), strides.data(), 0, kFormatNd, sizes.data(),
                                            sizes.size(), contiguous.data_ptr());
    if (!handle) throw std::runtime_error(StatusText("aclCreateTensor for " + op_.name_, -1));
    return handles_[handleCount_++] = handle;
}

const aclTensor* AclnnCall::Argument(const Tensor& input) {
    if (IsDense(input)) return Create(input);
    copies_.push_back(Dense(input));
    return Create(copies_.back());
}

const aclTensor* AclnnCall::Argument(const Out& output) {
    const Tensor& tensor = output.tensor;
    if (!IsDense(tensor)) throw std::runtime_error(op_.name_ + ": what is written must be contiguous and in ND format");
    outputs_[outputCount_++] = {tensor.data_ptr(), static_cast<size_t>(tensor.numel()) * tensor.element_size()};
    return Create(tensor);
}

void AclnnCall::Run() noexcept {
    ran_ = true;
    UseCoresOf(stream_, /*inQueue=*/true);
    const int status = op_.run_(workspace_, workspaceBytes_, std::exchange(executor_, nullptr), stream_);
    if (status == 0) return;
    const std::string text = StatusText(op_.name_, status);
    // What was not computed must not look like a result: 0xff is NaN in every floating type.
    for (int i = 0; i < outputCount_; ++i)
        Cann().memsetAsync(outputs_[i].data, outputs_[i].bytes, 0xff, outputs_[i].bytes, stream_);
    failures_->Add(text);
    if (std::this_thread::get_id() != caller_)
        std::cerr << "custom_ops: " + text + "\nIts outputs are filled with NaN; the next operator that this thread calls raises this error.\n";
}

AclnnOp::AclnnOp(const char* opType)
    : name_(std::string("aclnn") + opType), prepareName_(name_ + "GetWorkspaceSize"), prepare_(FindInOpPackages(prepareName_.c_str())),
      run_(reinterpret_cast<Run>(FindInOpPackages(name_.c_str()))) {}

void AclnnOp::CheckPrepared(int status) const {
    if (status != 0) throw std::runtime_error(StatusText(prepareName_, status));
}

void AclnnOp::Launch(const std::shared_ptr<AclnnCall>& call, const Tensor& like) const {
    std::optional<Tensor> workspace;  // allocated and reused in the order of this stream
    if (call->workspaceBytes_) {
        const int64_t bytes = static_cast<int64_t>(call->workspaceBytes_);
        workspace = NewEmpty(like, Sizes(&bytes, 1), ScalarType::Byte);
        call->workspace_ = workspace->data_ptr();
    }
    // Always 0: any other result, and any exception, ends the queue's thread, and torch_npu then drops all later launches in silence.
    Enqueue(name_, [call]() -> int { return call->Run(), 0; });
    // From here on the stream's order keeps what other launches may reuse.
    call->copies_.clear();
    if (call.use_count() == 1) {  // it has run, or a queue that an earlier error has ended let go of it
        std::atomic_thread_fence(std::memory_order_acquire);
        if (!call->ran_)
            throw std::runtime_error(name_ + " was not launched: torch_npu's task queue has ended with an earlier error, start the process again");
    }
    call->failures_->Raise();  // without a queue the launch has run
}

}  // namespace custom_ops::npu
