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
        static_assert(regimpl::kNames<T, U>, #Name ": T is not the type of the registers");                                \
        static_assert(Supports<Type>, #Name ": element type not supported on arch 3510");                                 \
        sim::InVectorFunction(#Name, where).Spend(Cost);                                                                   \
        regimpl::Apply<regimpl::Merging<mode>()>(dst, mask, REG_LANE((auto a, auto b), __VA_ARGS__), src0, src1);            \
    }

REG_BINARY(Add, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<U>(), a + b)
REG_BINARY(Sub, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<U>(), a - b)
REG_BINARY(Mul, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<U>(), regimpl::Product(a, b))
REG_BINARY(Max, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<U>(), regimpl::Larger(a, b))
REG_BINARY(Min, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<U>(), regimpl::Smaller(a, b))
REG_BINARY(Div, regimpl::kNumber, regimpl::SlowCost<U>(16), regimpl::Quotient<Type>(a, b))
REG_BINARY(And, regimpl::kInteger, regimpl::ArithmeticCost<U>(), a & b)
REG_BINARY(Or, regimpl::kInteger, regimpl::ArithmeticCost<U>(), a | b)
REG_BINARY(Xor, regimpl::kInteger, regimpl::ArithmeticCost<U>(), a ^ b)
REG_BINARY(Prelu, regimpl::kFloating, regimpl::ArithmeticCost<U>(), a >= 0 ? a : a * b)
REG_BINARY(AbsSub, regimpl::kFloating, regimpl::ArithmeticCost<U>(), regimpl::Magnitude(a - b))
REG_BINARY(FusedAbsSub, regimpl::kFloating, regimpl::ArithmeticCost<U>(), regimpl::Magnitude(a - b))

// dst = f(dst, src0, src1)
#define REG_ACCUMULATE(Name, Supports, Cost, ...)                                                                          \
    template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U, typename = IfRegisters<U>>         \
    REG_INLINE inline void Name(U& dst, U& src0, U& src1, MaskReg& mask, REG_HERE) {                                       \
        using Type = typename U::ActualT;                                                                                  \
        static_assert(regimpl::kNames<T, U>, #Name ": T is not the type of the registers");                                \
        static_assert(Supports<Type>, #Name ": element type not supported on arch 3510");                                 \
        sim::InVectorFunction(#Name, where).Spend(Cost);                                                                   \
        regimpl::Apply<regimpl::Merging<mode>()>(dst, mask, REG_LANE((auto d, auto a, auto b), __VA_ARGS__), dst, src0,      \
                                               src1);                                                                      \
    }

// One rounding: the unit multiplies and adds fused.
REG_ACCUMULATE(MulAddDst, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<U>(), regimpl::MultiplyAdd(a, b, d))
REG_ACCUMULATE(MulDstAdd, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<U>(), regimpl::MultiplyAdd(d, a, b))
REG_ACCUMULATE(FusedMulDstAdd, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<U>(), regimpl::MultiplyAdd(d, a, b))

// dst = f(src, scalar); the scalar is rounded to the element type first.
#define REG_SCALAR(Name, Supports, Cost, ...)                                                                              \
    template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename S, typename U,                        \
              typename = IfRegisters<S>, typename = IfScalar<U>>                                                           \
    REG_INLINE inline void Name(S& dst, S& src, U scalar, MaskReg& mask, REG_HERE) {                                       \
        using Type = typename S::ActualT;                                                                                  \
        static_assert(regimpl::kNames<T, S>, #Name ": T is not the type of the registers");                                \
        static_assert(Supports<Type>, #Name ": element type not supported on arch 3510");                                 \
        sim::InVectorFunction(#Name, where).Spend(Cost);                                                                   \
        const auto s = regimpl::Widen(regimpl::ToElement<Type>(scalar));                                                     \
        regimpl::Apply<regimpl::Merging<mode>()>(dst, mask, REG_LANE((auto a), __VA_ARGS__), src);                           \
    }

REG_SCALAR(Adds, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<S>(), a + s)
REG_SCALAR(Muls, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<S>(), regimpl::Product(a, s))
REG_SCALAR(Maxs, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<S>(), regimpl::Larger(a, s))
REG_SCALAR(Mins, regimpl::kNumberOrBf16, regimpl::ArithmeticCost<S>(), regimpl::Smaller(a, s))
REG_SCALAR(LeakyRelu, regimpl::kFloating, regimpl::ArithmeticCost<S>(), a >= 0 ? a : a * s)

// dst += src * scalar, one rounding
template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename S, typename U, typename = IfRegisters<S>,
          typename = IfScalar<U>>
REG_INLINE inline void Axpy(S& dst, S& src, U scalar, MaskReg& mask, REG_HERE) {
    using Type = typename S::ActualT;
    static_assert(regimpl::kNames<T, S>, "Axpy: T is not the type of the registers");
    static_assert(regimpl::kFloating<Type>, "Axpy: element type not supported on arch 3510");
    sim::InVectorFunction("Axpy", where).Spend(regimpl::ArithmeticCost<S>());
    const auto s = regimpl::Widen(regimpl::ToElement<Type>(scalar));
    regimpl::Apply<regimpl::Merging<mode>()>(dst, mask, REG_LANE((auto a, auto d), regimpl::MultiplyAdd(a, s, d)), src, dst);
}

// dst = f(src)
#define REG_UNARY(Name, Supports, Cost, ...)                                                                               \
    template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U, typename = IfRegisters<U>>         \
    REG_INLINE inline void Name(U& dst, U& src, MaskReg& mask, REG_HERE) {                                                 \
        using Type = typename U::ActualT;                                                                                  \
        static_assert(regimpl::kNames<T, U>, #Name ": T is not the type of the registers");                                \
        static_assert(Supports<Type>, #Name ": element type not supported on arch 3510");                                 \
        sim::InVectorFunction(#Name, where).Spend(Cost);                                                                   \
        regimpl::Apply<regimpl::Merging<mode>()>(dst, mask, REG_LANE((auto a), __VA_ARGS__), src);                           \
    }

REG_UNARY(Abs, regimpl::kNumber, regimpl::ArithmeticCost<U>(), regimpl::Magnitude(a))
REG_UNARY(Neg, regimpl::kNumber, regimpl::ArithmeticCost<U>(), -a)
REG_UNARY(Relu, regimpl::kNumber, regimpl::ArithmeticCost<U>(), regimpl::Larger(a, decltype(a)(0)))
REG_UNARY(Not, regimpl::kInteger, regimpl::ArithmeticCost<U>(), ~a)
REG_UNARY(Exp, regimpl::kFloating, regimpl::SlowCost<U>(16), sim::Exponential(a))
REG_UNARY(Ln, regimpl::kFloating, regimpl::SlowCost<U>(16), regimpl::LnOf(a))
REG_UNARY(Log, regimpl::kFloating, regimpl::SlowCost<U>(16), regimpl::LnOf(a))
REG_UNARY(Log2, regimpl::kFloating, regimpl::SlowCost<U>(16), regimpl::Log2Of(a))
REG_UNARY(Log10, regimpl::kFloating, regimpl::SlowCost<U>(16), regimpl::Log10Of(a))
REG_UNARY(Sqrt, regimpl::kFloating, regimpl::SlowCost<U>(16), __builtin_sqrtf(a))

// Rounds to an integral value, kept in the float format.
template <typename T = DefaultType, RoundMode roundMode = RoundMode::CAST_NONE, auto mode = MaskMergeMode::ZEROING,
          typename U, typename = IfRegisters<U>>
REG_INLINE inline void Truncate(U& dst, U& src, MaskReg& mask, REG_HERE) {
    static_assert(regimpl::kNames<T, U>, "Truncate: T is not the type of the registers");
    static_assert(!regimpl::kInteger<typename U::ActualT>, "Truncate: element type not supported on arch 3510");
    sim::InVectorFunction("Truncate", where).Spend(regimpl::ArithmeticCost<U>());
    regimpl::Apply<regimpl::Merging<mode>()>(dst, mask, REG_LANE((auto a), regimpl::Integral<roundMode>(a)), src);
}

// Shift distances: signed registers of the same width; a distance of the width or more shifts everything out.
#define REG_SHIFT(Name, Shifted)                                                                                           \
    template <typename T = DefaultType, typename D = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U,          \
              typename S, typename = IfRegisters<U, S>>                                                                    \
    REG_INLINE inline void Name(U& dst, U& src0, S& src1, MaskReg& mask, REG_HERE) {                                       \
        using Type = typename U::ActualT;                                                                                  \
        static_assert(regimpl::kNames<T, U> && regimpl::kNames<D, S>, #Name ": T is not the type of the registers");        \
        static_assert(regimpl::kInteger<Type> && regimpl::kInteger<typename S::ActualT> && U::kLanes == S::kLanes,           \
                      #Name ": needs integers of one width");                                                              \
        sim::InVectorFunction(#Name, where).Spend(regimpl::ArithmeticCost<U>());                                            \
        regimpl::Apply<regimpl::Merging<mode>()>(dst, mask, REG_LANE((auto a, auto b), regimpl::Shifted<Type>(a, b)), src0,   \
                                               src1);                                                                      \
    }                                                                                                                      \
    template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U, typename S,                        \
              typename = IfRegisters<U>, typename = std::enable_if_t<std::is_integral_v<S>>>                               \
    REG_INLINE inline void Name##s(U& dst, U& src, S scalar, MaskReg& mask, REG_HERE) {                                    \
        using Type = typename U::ActualT;                                                                                  \
        static_assert(regimpl::kNames<T, U> && regimpl::kInteger<Type>, #Name "s: needs integer registers of type T");      \
        sim::InVectorFunction(#Name "s", where).Spend(regimpl::ArithmeticCost<U>());                                        \
        const int32_t distance = int32_t(scalar);                                                                          \
        regimpl::Apply<regimpl::Merging<mode>()>(dst, mask, REG_LANE((auto a), regimpl::Shifted<Type>(a, distance)), src);    \
    }

REG_SHIFT(ShiftLeft, Left)
REG_SHIFT(ShiftRight, Right)

// 32 x 32 -> 64-bit product: low words to dst0, high words to dst1.
template <typename T = DefaultType, typename U, typename = IfRegisters<U>>
REG_INLINE inline void Mull(U& dst0, U& dst1, U& src0, U& src1, MaskReg& mask, REG_HERE) {
    using Type = typename U::ActualT;
    static_assert(regimpl::kNames<T, U> && regimpl::kInteger<Type> && sizeof(Type) == 4, "Mull: needs 32-bit integers");
    sim::InVectorFunction("Mull", where).Spend(regimpl::ArithmeticCost<U>());
    U high;
    regimpl::Apply<false>(high, mask, REG_LANE((auto a, auto b), regimpl::Product(a, b) >> 32), src0, src1);
    regimpl::Apply<false>(dst0, mask, REG_LANE((auto a, auto b), regimpl::Product(a, b)), src0, src1);
    dst1 = high;
}

// Add and subtract with a carry bit per lane; a subtraction's carry is 1 when nothing was borrowed.
#define REG_CARRY(Name, ...)                                                                                               \
    template <typename T = DefaultType, typename U, typename = IfRegisters<U>>                                             \
    REG_INLINE inline void Name(MaskReg& carry, U& dst, U& src0, U& src1, MaskReg& mask, REG_HERE) {                       \
        MaskReg none = regimpl::InitialCarry(#Name[0] == 'S');                                                              \
        Name(carry, dst, src0, src1, none, mask, where);                                                                   \
    }                                                                                                                      \
    template <typename T = DefaultType, typename U, typename = IfRegisters<U>>                                             \
    inline void Name(MaskReg& carry, U& dst, U& src0, U& src1, MaskReg& carryIn, MaskReg& mask, REG_HERE) {                \
        using Type = typename U::ActualT;                                                                                  \
        static_assert(regimpl::kNames<T, U> && regimpl::kInteger<Type> && sizeof(Type) == 4, #Name ": needs 32-bit integers"); \
        sim::InVectorFunction(#Name, where).Spend(regimpl::ArithmeticCost<U>());                                            \
        MaskReg out;                                                                                                       \
        alignas(64) Type result[U::kLanes];                                                                                \
        for (uint32_t i = 0; i < U::kLanes; ++i) {                                                                         \
            const uint64_t a = uint32_t(src0.lane[i]), b = uint32_t(src1.lane[i]), c = carryIn.Bit(i * U::kMaskStep);      \
            const uint64_t sum = __VA_ARGS__;                                                                              \
            result[i] = Type(sum);                                                                                         \
            out.SetBit(i * U::kMaskStep, mask.Bit(i * U::kMaskStep) && (sum >> 32 & 1));                                   \
        }                                                                                                                  \
        const sim::Taint joined = regimpl::Join(src0.taint, src1.taint);                                                         \
        regimpl::Commit(dst, result, mask, false);                                                                          \
        regimpl::SetTaint<U::kMaskStep>(dst.taint, joined, mask, false);                                                    \
        carry = out;                                                                                                       \
    }
REG_CARRY(AddC, a + b + c)
REG_CARRY(SubC, a + uint32_t(~b) + c)

#undef REG_BINARY
#undef REG_ACCUMULATE
#undef REG_SCALAR
#undef REG_UNARY
#undef REG_SHIFT
#undef REG_CARRY
#undef REG_LANE
#undef REG_HERE

}  // namespace AscendC::Reg
