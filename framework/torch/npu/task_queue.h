// torch_npu's C++ interface, which is not part of the stable ABI; task_queue.cpp is the one file on it.
#pragma once

#include <functional>
#include <string>

#include "../checks.h"

namespace custom_ops::npu {

// The current stream of the current device. Tiling that follows on this thread sees the cores the stream is limited to.
void* CurrentStream();
// The same for this thread's launches; `inQueue` on the queue's thread.
void UseCoresOf(void* stream, bool inQueue);

// Runs `launch` in the order of the current stream's task queue, later and on another thread, or now (TASK_QUEUE_ENABLE=0).
void Enqueue(const std::string& name, const std::function<int()>& launch);

// Uninitialised, contiguous, on the device of `like`. An OutOfMemoryError stays one; the stable ABI makes it a RuntimeError.
Tensor NewEmpty(const Tensor& like, Sizes shape, ScalarType dtype);

// int32 of int64. What does not fit becomes the nearest that does and so stays out of range; a cast alone would keep the low 32 bits.
Tensor SaturatedToInt32(const Tensor& tensor);

// Contiguous and in plain rows: no private format, which are layouts of the cube unit such as NZ.
bool IsDense(const Tensor& tensor);
Tensor Dense(const Tensor& tensor);

}  // namespace custom_ops::npu
