// Functions that callers expect to exist and that the runtime does not have: they fail by name.
#include "acl/acl_base.h"
#include "sim/acl/status.h"

extern "C" {

#define ABSENT(name)                                                                                                       \
    ACL_FUNC_VISIBILITY int name() {                                                                                       \
        return sim::acl::RememberFailure(#name, sim::acl::kFeatureNotSupported, "not modelled by the simulator, see docs/npu/runtime.md"); \
    }
#include "sim/acl/absent_functions.inc"
#undef ABSENT

}  // extern "C"
