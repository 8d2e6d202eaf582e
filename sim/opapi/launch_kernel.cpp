// Launch of a bare kernel, without op_host.
#include <cstdlib>
#include <memory>

#include "sim/host/current_soc.h"
#include "sim/host/node.h"
#include "sim/opapi/c_api.h"
#include "sim/opapi/kernel_library.h"
#include "sim/opapi/session.h"

namespace {

constexpr sim::GmRole kRoles[] = {sim::GmRole::Input, sim::GmRole::Output, sim::GmRole::InOut, sim::GmRole::Workspace,
                                  sim::GmRole::Tiling};  // by SimArgument::kind
constexpr int32_t kByValue = 5, kWorkspace = 3, kTiling = 4;

}  // namespace

int SimLaunchKernel(const char* library, const char* op, uint32_t blockDim, uint64_t tilingKey, const SimArgument* arguments,
                    int32_t count) {
    using sim::host::Format;
    using sim::host::Refuse;
    return sim::opapi::GuardStatus([&] {
        if (library == nullptr || op == nullptr || (arguments == nullptr && count > 0))
            Refuse(sim::host::kNullPointer, "SimLaunchKernel: library, op and arguments must not be null");
        if (blockDim == 0) Refuse(sim::host::kInvalidParameter, "%s: blockDim is 0, it must be at least 1", op);
        sim::LaunchRequest request;
        request.op = op;
        request.invoke = sim::opapi::LoadKernel(library, op);
        request.blockDim = blockDim;
        request.tilingKey = tilingKey;
        // A direct launch keeps all blocks resident when the chip has a core for each.
        request.scheduleMode = blockDim <= sim::host::CurrentSoc().vectorCores ? 1 : 0;
        std::vector<uint8_t> tiling;
        uint64_t workspaceBytes = 0;
        for (int32_t i = 0; i < count; ++i) {
            const SimArgument& argument = arguments[i];
            if (argument.kind < 0 || argument.kind > kByValue)
                Refuse(sim::host::kInvalidParameter, "%s: argument %d has kind %d, kinds are 0 to 5", op, i,
                       argument.kind);
            request.argv.push_back(argument.data);
            if (argument.kind == kByValue) continue;
            const std::string name = argument.name != nullptr ? argument.name : Format("arg%d", i);
            if (argument.bytes != 0) request.buffers.push_back({name, argument.data, argument.bytes, kRoles[argument.kind]});
            if (argument.kind == kWorkspace) {
                request.userWorkspace = static_cast<uint8_t*>(argument.data);  // the system part is apart
                workspaceBytes = argument.bytes;
            }
            const uint8_t* bytes = static_cast<const uint8_t*>(argument.data);
            if (argument.kind == kTiling && bytes != nullptr) tiling.assign(bytes, bytes + argument.bytes);
        }
        // Untouched pages of it cost nothing.
        const std::unique_ptr<void, decltype(&std::free)> system(std::calloc(1, sim::host::kSystemWorkspaceBytes), &std::free);
        if (system == nullptr)
            Refuse(sim::host::kInnerError, "%s: the host ran out of memory for a system workspace of %llu bytes", op,
                   static_cast<unsigned long long>(sim::host::kSystemWorkspaceBytes));
        request.systemWorkspace = static_cast<uint8_t*>(system.get());
        request.buffers.push_back({"system workspace", system.get(), sim::host::kSystemWorkspaceBytes, sim::GmRole::Workspace});
        const sim::WorkResult result = sim::opapi::RunAndReport(std::move(request), tiling, workspaceBytes);
        if (result.status != 0) throw sim::host::HostError(result.status, result.message);
    });
}
