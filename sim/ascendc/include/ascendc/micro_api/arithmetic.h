// Arithmetic on registers (facts 6.5): dst = f(src...) in the lanes that the mask has on; the others become 0, or stay
// with MaskMergeMode::MERGING.
#pragma once

#include "ascendc/micro_api/lanes.h"
#include "ascendc/micro_api/math.h"

namespace AscendC::Reg {

#define REG_HERE sim::Location where = sim::Location::Here()
// The lane function of an instruction: parameters as written, one expression.
#define REG_LANE(parameters, ...) [=] parameters REG_INLINE { return __VA_ARGS__; }

// dst = f(src0, src1)
#define REG_BINARY(Name, Supports, Cost, ...)                                                                              \
    template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U, typename = IfRegisters<U>>         \
    REG_INLINE inline void Name(U& dst, U& src0, U& src1, MaskReg& mask, REG_HERE) {                                       \
        using Type = typename U::ActualT;                                                                                  \
        static_assert(detail::kNames<T, U>, #Name ": T is not the type of the registers");                                \
        static_assert(Supports<Type>, #Name ": element type not supported on arch 3510");                                 \
        sim::InVectorFunction(#Name, where).Spend(Cost);                                                                   \
        detail::Apply<detail::Merging<mode>()>(dst, mask, REG_LANE((auto a, auto b), __VA_ARGS__), src0, src1);            \
    }

REG_BINARY(Add, detail::kNumberOrBf16, detail::ArithmeticCost<U>(), a + b)
REG_BINARY(Sub, detail::kNumberOrBf16, detail::ArithmeticCost<U>(), a - b)
REG_BINARY(Mul, detail::kNumberOrBf16, detail::ArithmeticCost<U>(), a * b)
REG_BINARY(Max, detail::kNumberOrBf16, detail::ArithmeticCost<U>(), detail::Larger(a, b))
REG_BINARY(Min, detail::kNumberOrBf16, detail::ArithmeticCost<U>(), detail::Smaller(a, b))
REG_BINARY(Div, detail::kNumber, detail::SlowCost<U>(16), detail::Quotient<Type>(a, b))
REG_BINARY(And, detail::kInteger, detail::ArithmeticCost<U>(), a & b)
REG_BINARY(Or, detail::kInteger, detail::ArithmeticCost<U>(), a | b)
REG_BINARY(Xor, detail::kInteger, detail::ArithmeticCost<U>(), a ^ b)
REG_BINARY(Prelu, detail::kFloating, detail::ArithmeticCost<U>(), a >= 0 ? a : a * b)
REG_BINARY(AbsSub, detail::kFloating, detail::ArithmeticCost<U>(), detail::Magnitude(a - b))
REG_BINARY(FusedAbsSub, detail::kFloating, detail::ArithmeticCost<U>(), detail::Magnitude(a - b))

// dst = f(dst, src0, src1)
#define REG_ACCUMULATE(Name, Supports, Cost, ...)                                                                          \
    template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U, typename = IfRegisters<U>>         \
    REG_INLINE inline void Name(U& dst, U& src0, U& src1, MaskReg& mask, REG_HERE) {                                       \
        using Type = typename U::ActualT;                                                                                  \
        static_assert(detail::kNames<T, U>, #Name ": T is not the type of the registers");                                \
        static_assert(Supports<Type>, #Name ": element type not supported on arch 3510");                                 \
        sim::InVectorFunction(#Name, where).Spend(Cost);                                                                   \
        detail::Apply<detail::Merging<mode>()>(dst, mask, REG_LANE((auto d, auto a, auto b), __VA_ARGS__), dst, src0,      \
                                               src1);                                                                      \
    }

// One rounding: the unit multiplies and adds fused.
REG_ACCUMULATE(MulAddDst, detail::kNumberOrBf16, detail::ArithmeticCost<U>(), detail::MultiplyAdd(a, b, d))
REG_ACCUMULATE(MulDstAdd, detail::kNumberOrBf16, detail::ArithmeticCost<U>(), detail::MultiplyAdd(d, a, b))
REG_ACCUMULATE(FusedMulDstAdd, detail::kNumberOrBf16, detail::ArithmeticCost<U>(), detail::MultiplyAdd(d, a, b))

// dst = f(src, scalar); the scalar is rounded to the element type first.
#define REG_SCALAR(Name, Supports, Cost, ...)                                                                              \
    template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename S, typename U,                        \
              typename = IfRegisters<S>, typename = IfScalar<U>>                                                           \
    REG_INLINE inline void Name(S& dst, S& src, U scalar, MaskReg& mask, REG_HERE) {                                       \
        using Type = typename S::ActualT;                                                                                  \
        static_assert(detail::kNames<T, S>, #Name ": T is not the type of the registers");                                \
        static_assert(Supports<Type>, #Name ": element type not supported on arch 3510");                                 \
        sim::InVectorFunction(#Name, where).Spend(Cost);                                                                   \
        const auto s = detail::Widen(detail::ToElement<Type>(scalar));                                                     \
        detail::Apply<detail::Merging<mode>()>(dst, mask, REG_LANE((auto a), __VA_ARGS__), src);                           \
    }

REG_SCALAR(Adds, detail::kNumberOrBf16, detail::ArithmeticCost<S>(), a + s)
REG_SCALAR(Muls, detail::kNumberOrBf16, detail::ArithmeticCost<S>(), a * s)
REG_SCALAR(Maxs, detail::kNumberOrBf16, detail::ArithmeticCost<S>(), detail::Larger(a, s))
REG_SCALAR(Mins, detail::kNumberOrBf16, detail::ArithmeticCost<S>(), detail::Smaller(a, s))
REG_SCALAR(LeakyRelu, detail::kFloating, detail::ArithmeticCost<S>(), a >= 0 ? a : a * s)

// dst += src * scalar, one rounding
template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename S, typename U, typename = IfRegisters<S>,
          typename = IfScalar<U>>
REG_INLINE inline void Axpy(S& dst, S& src, U scalar, MaskReg& mask, REG_HERE) {
    using Type = typename S::ActualT;
    static_assert(detail::kNames<T, S>, "Axpy: T is not the type of the registers");
    static_assert(detail::kFloating<Type>, "Axpy: element type not supported on arch 3510");
    sim::InVectorFunction("Axpy", where).Spend(detail::ArithmeticCost<S>());
    const auto s = detail::Widen(detail::ToElement<Type>(scalar));
    detail::Apply<detail::Merging<mode>()>(dst, mask, REG_LANE((auto a, auto d), detail::MultiplyAdd(a, s, d)), src, dst);
}

// dst = f(src)
#define REG_UNARY(Name, Supports, Cost, ...)                                                                               \
    template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U, typename = IfRegisters<U>>         \
    REG_INLINE inline void Name(U& dst, U& src, MaskReg& mask, REG_HERE) {                                                 \
        using Type = typename U::ActualT;                                                                                  \
        static_assert(detail::kNames<T, U>, #Name ": T is not the type of the registers");                                \
        static_assert(Supports<Type>, #Name ": element type not supported on arch 3510");                                 \
        sim::InVectorFunction(#Name, where).Spend(Cost);                                                                   \
        detail::Apply<detail::Merging<mode>()>(dst, mask, REG_LANE((auto a), __VA_ARGS__), src);                           \
    }

REG_UNARY(Abs, detail::kNumber, detail::ArithmeticCost<U>(), detail::Magnitude(a))
REG_UNARY(Neg, detail::kNumber, detail::ArithmeticCost<U>(), -a)
REG_UNARY(Relu, detail::kNumber, detail::ArithmeticCost<U>(), detail::Larger(a, decltype(a)(0)))
REG_UNARY(Not, detail::kInteger, detail::ArithmeticCost<U>(), ~a)
REG_UNARY(Exp, detail::kFloating, detail::SlowCost<U>(16), detail::ExpOf(a))
REG_UNARY(Ln, detail::kFloating, detail::SlowCost<U>(16), detail::LnOf(a))
REG_UNARY(Log, detail::kFloating, detail::SlowCost<U>(16), detail::LnOf(a))
REG_UNARY(Log2, detail::kFloating, detail::SlowCost<U>(16), detail::Log2Of(a))
REG_UNARY(Log10, detail::kFloating, detail::SlowCost<U>(16), detail::Log10Of(a))
REG_UNARY(Sqrt, detail::kFloating, detail::SlowCost<U>(16), __builtin_sqrtf(a))

// Rounds to an integral value, kept in the float format.
template <typename T = DefaultType, RoundMode roundMode = RoundMode::CAST_NONE, auto mode = MaskMergeMode::ZEROING,
          typename U, typename = IfRegisters<U>>
REG_INLINE inline void Truncate(U& dst, U& src, MaskReg& mask, REG_HERE) {
    static_assert(detail::kNames<T, U>, "Truncate: T is not the type of the registers");
    static_assert(!detail::kInteger<typename U::ActualT>, "Truncate: element type not supported on arch 3510");
    sim::InVectorFunction("Truncate", where).Spend(detail::ArithmeticCost<U>());
    detail::Apply<detail::Merging<mode>()>(dst, mask, REG_LANE((auto a), detail::Integral<roundMode>(a)), src);
}

// Shift distances: signed registers of the same width; a distance of the width or more shifts everything out.
#define REG_SHIFT(Name, Shifted)                                                                                           \
    template <typename T = DefaultType, typename D = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U,          \
              typename S, typename = IfRegisters<U, S>>                                                                    \
    REG_INLINE inline void Name(U& dst, U& src0, S& src1, MaskReg& mask, REG_HERE) {                                       \
        using Type = typename U::ActualT;                                                                                  \
        static_assert(detail::kNames<T, U> && detail::kNames<D, S>, #Name ": T is not the type of the registers");        \
        static_assert(detail::kInteger<Type> && detail::kInteger<typename S::ActualT> && U::kLanes == S::kLanes,           \
                      #Name ": needs integers of one width");                                                              \
        sim::InVectorFunction(#Name, where).Spend(detail::ArithmeticCost<U>());                                            \
        detail::Apply<detail::Merging<mode>()>(dst, mask, REG_LANE((auto a, auto b), detail::Shifted<Type>(a, b)), src0,   \
                                               src1);                                                                      \
    }                                                                                                                      \
    template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U, typename S,                        \
              typename = IfRegisters<U>, typename = std::enable_if_t<std::is_integral_v<S>>>                               \
    REG_INLINE inline void Name##s(U& dst, U& src, S scalar, MaskReg& mask, REG_HERE) {                                    \
        using Type = typename U::ActualT;                                                                                  \
        static_assert(detail::kNames<T, U> && detail::kInteger<Type>, #Name "s: needs integer registers of type T");      \
        sim::InVectorFunction(#Name "s", where).Spend(detail::ArithmeticCost<U>());                                        \
        const int32_t distance = int32_t(scalar);                                                                          \
        detail::Apply<detail::Merging<mode>()>(dst, mask, REG_LANE((auto a), detail::Shifted<Type>(a, distance)), src);    \
    }

REG_SHIFT(ShiftLeft, Left)
REG_SHIFT(ShiftRight, Right)

// 32 x 32 -> 64-bit product: low words to dst0, high words to dst1.
template <typename T = DefaultType, typename U, typename = IfRegisters<U>>
REG_INLINE inline void Mull(U& dst0, U& dst1, U& src0, U& src1, MaskReg& mask, REG_HERE) {
    using Type = typename U::ActualT;
    static_assert(detail::kNames<T, U> && detail::kInteger<Type> && sizeof(Type) == 4, "Mull: needs 32-bit integers");
    sim::InVectorFunction("Mull", where).Spend(detail::ArithmeticCost<U>());
    U high;
    detail::Apply<false>(high, mask, REG_LANE((auto a, auto b), (a * b) >> 32), src0, src1);
    detail::Apply<false>(dst0, mask, REG_LANE((auto a, auto b), a * b), src0, src1);
    dst1 = high;
}

// Add and subtract with a carry bit per lane; a subtraction's carry is 1 when nothing was borrowed.
#define REG_CARRY(Name, ...)                                                                                               \
    template <typename T = DefaultType, typename U, typename = IfRegisters<U>>                                             \
    REG_INLINE inline void Name(MaskReg& carry, U& dst, U& src0, U& src1, MaskReg& mask, REG_HERE) {                       \
        MaskReg none = detail::InitialCarry(#Name[0] == 'S');                                                              \
        Name(carry, dst, src0, src1, none, mask, where);                                                                   \
    }                                                                                                                      \
    template <typename T = DefaultType, typename U, typename = IfRegisters<U>>                                             \
    inline void Name(MaskReg& carry, U& dst, U& src0, U& src1, MaskReg& carryIn, MaskReg& mask, REG_HERE) {                \
        using Type = typename U::ActualT;                                                                                  \
        static_assert(detail::kNames<T, U> && detail::kInteger<Type> && sizeof(Type) == 4, #Name ": needs 32-bit integers"); \
        sim::InVectorFunction(#Name, where).Spend(detail::ArithmeticCost<U>());                                            \
        MaskReg out;                                                                                                       \
        alignas(64) Type result[U::kLanes];                                                                                \
        for (uint32_t i = 0; i < U::kLanes; ++i) {                                                                         \
            const uint64_t a = uint32_t(src0.lane[i]), b = uint32_t(src1.lane[i]), c = carryIn.Bit(i * U::kMaskStep);      \
            const uint64_t sum = __VA_ARGS__;                                                                              \
            result[i] = Type(sum);                                                                                         \
            out.SetBit(i * U::kMaskStep, mask.Bit(i * U::kMaskStep) && (sum >> 32 & 1));                                   \
        }                                                                                                                  \
        const sim::Taint joined = detail::Join(src0.taint, src1.taint);                                                         \
        detail::Commit(dst, result, mask, false);                                                                          \
        detail::SetTaint<U::kMaskStep>(dst.taint, joined, mask, false);                                                    \
        carry = out;                                                                                                       \
    }
REG_CARRY(AddC, a + b + c)
REG_CARRY(SubC, a + uint32_t(~b) + c)

}  // namespace AscendC::Reg
