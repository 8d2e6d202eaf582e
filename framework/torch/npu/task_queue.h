#pragma once

#include <functional>

namespace custom_ops::npu {

// Runs `launch(stream)` in the order of the current NPU stream's task queue, now or later. What it captured lives until then.
void Enqueue(const char* name, std::function<int(void* stream)> launch);

}  // namespace custom_ops::npu
