// dst = f(src): one line per instruction.
#pragma once

#include "ascendc/vec_engine.h"
#include "ascendc/vec_math.h"

namespace sim::vec {

using AscendC::UnaryRepeatParams;
inline constexpr Traits kUnaryTraits{false, 65535};

// kReadsDst: f takes (dst, src).
template <bool kReadsDst = false, typename D, typename S, typename Body>
void Unary(const Entry& entry, const Form& form, const LocalTensor<D>& dst, const LocalTensor<S>& src,
           const UnaryRepeatParams& p, Location where, const Body& body) {
    Elementwise<kReadsDst, D, S>(entry, kUnaryTraits, form, where, body, Ref(dst, "dst", {p.dstBlkStride, p.dstRepStride}),
                                 Ref(src, "src", {p.srcBlkStride, p.srcRepStride}));
}

}  // namespace sim::vec

namespace AscendC {

#define SIM_UNARY(Name, membase, regbaseAdds, entryCost, entryPerLane, ...)                                           \
    namespace detail {                                                                                                \
    template <typename T>                                                                                             \
    void Name##Lanes(const sim::vec::Form& form, const LocalTensor<T>& dst, const LocalTensor<T>& src,                \
                     const UnaryRepeatParams& params, sim::Location where) {                                          \
        using namespace sim::vec;                                                                                     \
        static constexpr Entry entry{#Name, membase, regbaseAdds, sim::Cost::entryCost, entryPerLane};                \
        if constexpr (Supports<T>(entry))                                                                             \
            Unary(entry, form, dst, src, params, where, [](auto a) SIM_INLINE { return __VA_ARGS__; });               \
        else                                                                                                          \
            FailType(#Name, entry.Supported(), TypeOf<T>(), where);                                                   \
    }                                                                                                                 \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, int64_t count,                                    \
              sim::Location where = sim::Location::Here()) {                                                          \
        detail::Name##Lanes(sim::vec::CountForm(count), dst, src, {}, where);                                         \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask, int64_t repeatTime,                \
              const UnaryRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {                   \
        detail::Name##Lanes(sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src, repeatParams, where);          \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask[], int64_t repeatTime,              \
              const UnaryRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {                   \
        detail::Name##Lanes(sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, src, repeatParams, where);          \
    }

// Ln: libm in float. Rsqrt and Reciprocal: the device runs them at full rate and may approximate; no public
// document gives the bits, so they are exact here and a kernel must not rely on more than a loose tolerance.
//        name        arch 2201              arch 3510 adds              cost  16-bit takes 2x  lane
SIM_UNARY(Exp,        kHalf | kFloat,        0,                    VectorExp,    true,  sim::Exponential(a))
SIM_UNARY(Ln,         kHalf | kFloat,        0,                    VectorExp,    true,  __builtin_logf(a))
SIM_UNARY(Sqrt,       kHalf | kFloat,        0,                    VectorExp,    true,  SquareRoot(a))
SIM_UNARY(Rsqrt,      kHalf | kFloat,        0,                    VectorSimple, false, 1.0f / SquareRoot(a))
SIM_UNARY(Reciprocal, kHalf | kFloat,        0,                    VectorSimple, false, 1.0f / a)
SIM_UNARY(Abs,        kHalf | kFloat,        kI8 | kI16 | kI32 | kI64, VectorSimple, false, Magnitude(a))
SIM_UNARY(Relu,       kHalf | kFloat | kI32, kI64,                 VectorSimple, false, Positive(a))
SIM_UNARY(Not,        kI16 | kU16,           kInts,                VectorSimple, false, decltype(a)(~a))

}  // namespace AscendC
