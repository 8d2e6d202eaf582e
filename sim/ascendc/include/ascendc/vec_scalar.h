// dst = f(src, scalar): one line per instruction.
#pragma once

#include "ascendc/vec_unary.h"

namespace AscendC {

// In the lane expressions: a is the lane of src, s the scalar, round the roundEn of shifts.
#define SIM_SCALAR_BODY(Name, membase, regbaseAdds, ...)                                                              \
    namespace detail {                                                                                                \
    template <typename T>                                                                                             \
    void Name##Lanes(const sim::vec::Form& form, const LocalTensor<T>& dst, const LocalTensor<T>& src, T scalar,      \
                     const UnaryRepeatParams& params, [[maybe_unused]] bool round, sim::Location where) {             \
        using namespace sim::vec;                                                                                     \
        static constexpr Entry entry{#Name, membase, regbaseAdds};                                                    \
        if constexpr (Supports<T>(entry))                                                                             \
            Unary(entry, form, dst, src, params, where,                                                               \
                  [s = Widen(scalar), round](auto a) SIM_INLINE { (void)round; return __VA_ARGS__; });                \
        else                                                                                                          \
            FailType(#Name, entry.Supported(), TypeOf<T>(), where);                                                   \
    }                                                                                                                 \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, int64_t count,                   \
              sim::Location where = sim::Location::Here()) {                                                          \
        detail::Name##Lanes(sim::vec::CountForm(count), dst, src, scalar, {}, false, where);                          \
    }
#define SIM_SCALAR(Name, membase, regbaseAdds, ...)                                                                   \
    SIM_SCALAR_BODY(Name, membase, regbaseAdds, __VA_ARGS__)                                                          \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, uint64_t mask,                   \
              int64_t repeatTime, const UnaryRepeatParams& repeatParams,                                              \
              sim::Location where = sim::Location::Here()) {                                                          \
        detail::Name##Lanes(sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src, scalar, repeatParams, false, where);\
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, uint64_t mask[],                 \
              int64_t repeatTime, const UnaryRepeatParams& repeatParams,                                              \
              sim::Location where = sim::Location::Here()) {                                                          \
        detail::Name##Lanes(sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, src, scalar, repeatParams, false, where);\
    }
#define SIM_SHIFT(Name, membase, regbaseAdds, ...) /* the mask forms take roundEn */                                  \
    SIM_SCALAR_BODY(Name, membase, regbaseAdds, __VA_ARGS__)                                                          \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, uint64_t mask,                   \
              int64_t repeatTime, const UnaryRepeatParams& repeatParams, bool roundEn = false,                        \
              sim::Location where = sim::Location::Here()) {                                                          \
        detail::Name##Lanes(sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src, scalar, repeatParams, roundEn, where);\
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, uint64_t mask[],                 \
              int64_t repeatTime, const UnaryRepeatParams& repeatParams, bool roundEn = false,                        \
              sim::Location where = sim::Location::Here()) {                                                          \
        detail::Name##Lanes(sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, src, scalar, repeatParams, roundEn, where);\
    }

//         name       arch 2201                        arch 3510 adds         lane
SIM_SCALAR(Adds,      kHalf | kFloat | kI16 | kI32,    kBf16 | kInts,         Sum(a, s))
SIM_SCALAR(Muls,      kHalf | kFloat | kI16 | kI32,    kBf16 | kInts,         Product(a, s))
SIM_SCALAR(Maxs,      kHalf | kFloat | kI16 | kI32,    kBf16 | kInts,         Larger(a, s))
SIM_SCALAR(Mins,      kHalf | kFloat | kI16 | kI32,    kBf16 | kInts,         Smaller(a, s))
SIM_SCALAR(Subs,      0,                               kAllTypes,             Difference(a, s))
SIM_SCALAR(Divs,      0,                               kAllTypes,             Quotient(a, s))
SIM_SCALAR(Ands,      0,                               kInts,                 decltype(a)(a & s))
SIM_SCALAR(Ors,       0,                               kInts,                 decltype(a)(a | s))
SIM_SCALAR(LeakyRelu, kHalf | kFloat,                  0,                     a >= 0 ? a : a * s)
SIM_SHIFT(ShiftLeft,  kI16 | kU16 | kI32 | kU32,       kInts,                 ShiftedLeft(a, uint32_t(s)))
SIM_SHIFT(ShiftRight, kI16 | kU16 | kI32 | kU32,       kInts,                 ShiftedRight(a, uint32_t(s), round))

namespace detail {

// dst += src * scalar; dst float may take a half source and scalar.
template <typename T, typename U>
void AxpyLanes(const sim::vec::Form& form, const LocalTensor<T>& dst, const LocalTensor<U>& src, U scalar,
               const UnaryRepeatParams& params, sim::Location where) {
    using namespace sim::vec;
    static constexpr Entry entry{"Axpy", kHalf | kFloat, 0};
    static_assert(std::is_same_v<T, U> || (std::is_same_v<T, float> && std::is_same_v<U, half>),
                  "Axpy takes equal types, or a half source into float");
    if constexpr (Supports<T>(entry))
        Unary<true>(entry, form, dst, src, params, where,
                    [s = Widen(scalar)](auto d, auto a) SIM_INLINE { return d + a * s; });
    else
        FailType("Axpy", entry.Supported(), TypeOf<T>(), where);
}

}  // namespace detail

template <typename T, typename U>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalar, int64_t count,
          sim::Location where = sim::Location::Here()) {
    detail::AxpyLanes(sim::vec::CountForm(count), dst, src, scalar, {}, where);
}
template <typename T, typename U, bool isSetMask = true>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalar, uint64_t mask, int64_t repeatTime,
          const UnaryRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    detail::AxpyLanes(sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src, scalar, repeatParams, where);
}
template <typename T, typename U, bool isSetMask = true>
void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalar, uint64_t mask[], int64_t repeatTime,
          const UnaryRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    detail::AxpyLanes(sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, src, scalar, repeatParams, where);
}

}  // namespace AscendC
