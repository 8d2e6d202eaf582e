// Copy: UB to UB on the V pipe, in the mask forms.
#pragma once

#include "ascendc/vec_unary.h"

namespace AscendC {

namespace detail {

template <typename T>
void CopyLanes(const sim::vec::Form& form, const LocalTensor<T>& dst, const LocalTensor<T>& src, const CopyRepeatParams& p,
               sim::Location where) {
    using namespace sim::vec;
    static constexpr Entry entry{"Copy", kI16 | kU16 | kI32 | kU32 | kHalf | kBf16 | kFloat, 0};
    static constexpr Traits traits{false, 65535, false, 4095};
    if constexpr (Supports<T>(entry))
        Elementwise<false, T, T>(entry, traits, form, where, [](auto a) SIM_INLINE { return a; },
                                 Ref(dst, "dst", {p.dstStride, p.dstRepeatSize}), Ref(src, "src", {p.srcStride, p.srcRepeatSize}));
    else
        FailType("Copy", entry.Supported(), TypeOf<T>(), where);
}

}  // namespace detail

template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask, int64_t repeatTime,
          const CopyRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    detail::CopyLanes(sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src, repeatParams, where);
}
template <typename T, bool isSetMask = true>
void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask[], int64_t repeatTime,
          const CopyRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    detail::CopyLanes(sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, src, repeatParams, where);
}

}  // namespace AscendC
