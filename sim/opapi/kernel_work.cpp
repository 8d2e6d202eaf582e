#include "sim/opapi/kernel_work.h"

#include <algorithm>

#include "sim/host/node.h"
#include "sim/opapi/launch_arguments.h"
#include "sim/opapi/session.h"

namespace sim::opapi {
namespace {

using host::Refuse;

// aclError values of a stream whose kernel failed.
constexpr int32_t kVectorCoreTimeout = 507034, kVectorCoreException = 507035;

}  // namespace

KernelWork::KernelWork(const aclOpExecutor& executor, void* workspace, uint64_t workspaceBytes) : call_(executor) {
    const uint64_t needed = call_.workspaceBytes;
    if (needed != 0 && (workspace == nullptr || workspaceBytes < needed))
        Refuse(host::kInvalidParameter, "%s: the workspace has %llu bytes%s, GetWorkspaceSize asked for %llu", call_.op.c_str(),
               static_cast<unsigned long long>(workspaceBytes), workspace == nullptr ? " at a null pointer" : "",
               static_cast<unsigned long long>(needed));
    Translate(call_.inputs);
    Translate(call_.outputs);
    if (needed != 0) {
        extents_.push_back({"workspace", workspace, needed});
        onDevice_ = onDevice_ || IsDeviceAddress(workspace);
        workspace_ = static_cast<uint8_t*>(HostAddress(workspace));
    }
}

void KernelWork::Translate(std::vector<Argument>& arguments) {
    for (Argument& argument : arguments)
        for (size_t i = 0; i < argument.tensors.size(); ++i) {
            aclTensor& tensor = argument.tensors[i];
            extents_.push_back({argument.Name(i), tensor.First(), tensor.ReachBytes()});
            onDevice_ = onDevice_ || IsDeviceAddress(tensor.data);
            tensor.data = HostAddress(tensor.data);
        }
}

std::string KernelWork::UnreachableArgument() const {
    for (const Extent& extent : extents_) {
        const std::string error = ExtentError(extent.address, extent.bytes);
        if (!error.empty()) return call_.op + ": " + extent.name + ": " + error;
    }
    return {};
}

WorkResult KernelWork::Run(bool asStreamWork) const {
    WorkResult result;
    try {
        if (asStreamWork) result.message = UnreachableArgument();
        if (!result.message.empty()) result.status = host::kInvalidParameter;
        else result = Launch();
    } catch (const host::HostError& error) {
        result = {error.status, error.what(), 0};
    } catch (const std::exception& error) {
        result = {host::kInnerError, error.what(), 0};
    }
    if (asStreamWork && result.status != 0)
        result.status = result.status == host::kTimedOut ? kVectorCoreTimeout : kVectorCoreException;
    return result;
}

WorkResult KernelWork::Launch() const {
    LaunchRequest request;
    request.op = call_.op;
    request.soc = call_.soc;
    request.invoke = call_.invoke;
    request.blockDim = call_.blockDim;
    request.scheduleMode = call_.scheduleMode;
    request.tilingKey = call_.tilingKey;
    LaunchArguments arguments(request);
    for (const Argument& input : call_.inputs) arguments.AddInput(input);
    for (const Argument& output : call_.outputs) arguments.AddOutput(output);
    arguments.AddBuffer("workspace", workspace_, call_.workspaceBytes, GmRole::Workspace);
    // GetUserWorkspace: behind the system's part, whether or not the op asked for more than that.
    if (call_.workspaceBytes >= host::kSystemWorkspaceBytes) {
        request.systemWorkspace = workspace_;
        request.userWorkspace = workspace_ + host::kSystemWorkspaceBytes;
    }
    std::vector<uint64_t> tiling((call_.tilingData.size() + 7) / 8 + 1);  // aligned for any field
    std::copy(call_.tilingData.begin(), call_.tilingData.end(), reinterpret_cast<uint8_t*>(tiling.data()));
    arguments.AddBuffer("tiling", tiling.data(), call_.tilingData.size(), GmRole::Tiling);
    const WorkResult result = RunAndReport(std::move(request), call_.tilingData, call_.workspaceBytes);
    arguments.CopyBack();  // also when there are findings: what the kernel did write is in the outputs
    return result;
}

}  // namespace sim::opapi
