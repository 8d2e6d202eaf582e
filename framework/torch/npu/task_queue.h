// torch_npu's C++ interface, which is not part of the stable ABI; task_queue.cpp is the one file on it.
#pragma once

#include <functional>
#include <string>

#include <torch/csrc/stable/tensor.h>

namespace custom_ops::npu {

// The current stream of the current device. Tiling that follows on this thread sees the cores the stream is limited to.
void* CurrentStream();
// The same for this thread's launches; `inQueue` on the queue's thread.
void UseCoresOf(void* stream, bool inQueue);

// Runs `launch` in the order of the current stream's task queue, later and on another thread, or now (TASK_QUEUE_ENABLE=0).
void Enqueue(const std::string& name, const std::function<int()>& launch);

// Layouts of the cube unit, such as NZ; ND and the image formats are plain rows.
bool HasPrivateFormat(const torch::stable::Tensor& tensor);
torch::stable::Tensor InNdFormat(const torch::stable::Tensor& tensor);

}  // namespace custom_ops::npu
