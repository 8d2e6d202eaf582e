// The two phases of aclnn operators that are no op package (sim/aclnn): the first makes an executor that holds the work, the
// second submits it.
#pragma once

#include "sim/opapi/stream.h"

struct aclOpExecutor;

namespace sim::opapi {

aclOpExecutor* NewBuiltinExecutor(StreamWork work);
// The executor is spent, unless it was set repeatable. The status is Submit's.
int32_t RunBuiltin(aclOpExecutor* executor, void* stream);

}  // namespace sim::opapi
