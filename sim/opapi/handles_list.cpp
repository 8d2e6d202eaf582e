// aclScalarList: the scalars of the foreach operators.
#include "sim/opapi/handles.h"

aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) { return new aclScalarList{{value, value + size}}; }

aclnnStatus aclDestroyScalarList(const aclScalarList* list) {
    if (list != nullptr)
        for (const aclScalar* scalar : list->scalars) delete scalar;
    delete list;
    return 0;
}

aclnnStatus aclGetScalarListSize(const aclScalarList* list, uint64_t* size) {
    *size = list == nullptr ? 0 : list->scalars.size();
    return 0;
}
