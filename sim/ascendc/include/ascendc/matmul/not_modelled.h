// Members of the high-level object that are refused by name.
#pragma once

#include "ascendc/not_modelled.h"

namespace sim::matmul {

class Refused {
public:
    template <typename Vector> void SetQuantVector(const Vector&) {
        static_assert(kNever<Vector>, "AscendC API not modelled: SetQuantVector");
    }
    template <typename... Arguments> void SetBatchNum(Arguments...) {
        static_assert(kNever<Arguments...>, "AscendC API not modelled: SetBatchNum");
    }
    template <typename... Arguments> void IterateBatch(Arguments&&...) {
        static_assert(kNever<Arguments...>, "AscendC API not modelled: IterateBatch");
    }
    template <typename... Arguments> void SetNBatchOutNum(Arguments...) {
        static_assert(kNever<Arguments...>, "AscendC API not modelled: SetNBatchOutNum");
    }
};

}  // namespace sim::matmul
