#pragma once

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// The sentence of the last failed call of this host thread, null when there was none since the last call.
ACL_FUNC_VISIBILITY const char* aclGetRecentErrMsg(void);

#ifdef __cplusplus
}
#endif
