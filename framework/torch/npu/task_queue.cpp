// The one file on torch_npu's C++ interface, which is not part of the stable ABI.
#include "task_queue.h"

#include <torch_npu/csrc/core/npu/NPUStream.h>
#include <torch_npu/csrc/framework/OpCommand.h>

namespace custom_ops::npu {

void Enqueue(const char* name, std::function<int(void* stream)> launch) {
    void* stream = c10_npu::getCurrentNPUStream().stream(false);  // false: do not drain the queue first
    at_npu::native::OpCommand::RunOpApiV2(name, [launch = std::move(launch), stream]() -> int { return launch(stream); });
}

}  // namespace custom_ops::npu
