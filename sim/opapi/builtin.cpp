#include "sim/opapi/builtin.h"

#include <memory>

#include "sim/opapi/executor.h"
#include "sim/opapi/session.h"

namespace sim::opapi {

aclOpExecutor* NewBuiltinExecutor(StreamWork work) {
    auto executor = std::make_unique<aclOpExecutor>();
    executor->op = work.name;
    executor->builtin = std::move(work);
    return executor.release();
}

int32_t RunBuiltin(aclOpExecutor* executor, void* stream) {
    if (executor == nullptr || !executor->builtin.run) {
        ThisSession().error = "the executor is null or of another operator: GetWorkspaceSize failed or was not called";
        return host::kNullPointer;
    }
    if (executor->repeatable) return Submit(stream, executor->builtin);
    const std::unique_ptr<aclOpExecutor> once(executor);
    return Submit(stream, std::move(once->builtin));
}

}  // namespace sim::opapi
