// Calls a two-phase aclnn function of the op package on the current NPU stream:
//     status = aclnnXGetWorkspaceSize(tensors..., attributes..., &bytes, &executor); Launch("aclnnX", bytes, executor, tensors, x);
// The package is libcust_opapi.so below one of the folders in ASCEND_CUSTOM_OPP_PATH.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../checks.h"

struct aclTensor;
struct aclOpExecutor;

namespace custom_ops::npu {

// Address of `symbol`: in the op packages first (`custom`), else in the toolkit's own aclnn library. Fails by name.
void* Find(const char* symbol, bool custom);

// aclTensors over contiguous NPU tensors; destroys them, and until then keeps the memory.
class AclTensors {
public:
    explicit AclTensors(std::vector<Tensor> tensors);
    ~AclTensors();
    AclTensors(const AclTensors&) = delete;
    aclTensor* operator[](size_t index) const { return handles_[index]; }

private:
    std::vector<Tensor> tensors_;
    std::vector<aclTensor*> handles_;
};

// The second phase: workspace from PyTorch's allocator, then `symbol` in the order of the stream's task queue.
void Launch(const char* symbol, uint64_t workspaceBytes, aclOpExecutor* executor, std::shared_ptr<AclTensors> tensors, const Tensor& like);

// status of aclnn<Op>GetWorkspaceSize -> RuntimeError with the runtime's own sentence
void CheckStatus(const char* symbol, int status);

}  // namespace custom_ops::npu
