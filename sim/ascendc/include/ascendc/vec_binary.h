// dst = f(src0, src1): one line per instruction.
#pragma once

#include "ascendc/vec_engine.h"
#include "ascendc/vec_math.h"

namespace sim::vec {

using AscendC::BinaryRepeatParams;

// kReadsDst: f takes (dst, src0, src1).
template <bool kReadsDst = false, typename D, typename S, typename Body>
void Binary(const Entry& entry, Traits traits, const Form& form, const LocalTensor<D>& dst, const LocalTensor<S>& src0,
            const LocalTensor<S>& src1, const BinaryRepeatParams& p, Location where, const Body& body) {
    CheckCountOnly<D>(entry, form, where);
    Elementwise<kReadsDst, D, S, S>(entry, traits, form, where, body, Ref(dst, "dst", {p.dstBlkStride, p.dstRepStride}),
                                    Ref(src0, "src0", {p.src0BlkStride, p.src0RepStride}),
                                    Ref(src1, "src1", {p.src1BlkStride, p.src1RepStride}));
}

}  // namespace sim::vec

namespace AscendC {

// Name##Lanes takes any form; the public overloads are the forms.
#define SIM_BINARY_FORMS(Name)                                                                                        \
    template <typename T>                                                                                             \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, int64_t count,       \
              sim::Location where = sim::Location::Here()) {                                                          \
        detail::Name##Lanes(sim::vec::CountForm(count), dst, src0, src1, {}, where);                                  \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, uint64_t mask,       \
              int64_t repeatTime, const BinaryRepeatParams& repeatParams,                                             \
              sim::Location where = sim::Location::Here()) {                                                          \
        detail::Name##Lanes(sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src0, src1, repeatParams, where);   \
    }                                                                                                                 \
    template <typename T, bool isSetMask = true>                                                                      \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, uint64_t mask[],     \
              int64_t repeatTime, const BinaryRepeatParams& repeatParams,                                             \
              sim::Location where = sim::Location::Here()) {                                                          \
        detail::Name##Lanes(sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, src0, src1, repeatParams, where);   \
    }

#define SIM_BINARY_BODY(Name, kReadsDst, membase, regbaseAdds, entryCost, entryPerLane, countAdds, kAccumulates, parameters, ...)\
    namespace detail {                                                                                                \
    template <typename T>                                                                                             \
    void Name##Lanes(const sim::vec::Form& form, const LocalTensor<T>& dst, const LocalTensor<T>& src0,               \
                     const LocalTensor<T>& src1, const BinaryRepeatParams& params, sim::Location where) {             \
        using namespace sim::vec;                                                                                     \
        static constexpr Entry entry{#Name, membase, regbaseAdds, sim::Cost::entryCost, entryPerLane, countAdds};     \
        if constexpr (Supports<T>(entry))                                                                             \
            Binary<kReadsDst>(entry, {kAccumulates}, form, dst, src0, src1, params, where,                            \
                              [] parameters SIM_INLINE { return __VA_ARGS__; });                                      \
        else                                                                                                          \
            FailType(#Name, entry.InCountForm(), TypeOf<T>(), where);                                                 \
    }                                                                                                                 \
    }

#define SIM_BINARY(Name, membase, regbaseAdds, cost, perLane, accumulates, ...)                                       \
    SIM_BINARY_BODY(Name, false, membase, regbaseAdds, cost, perLane, 0, accumulates, (auto a, auto b), __VA_ARGS__)  \
    SIM_BINARY_FORMS(Name)
#define SIM_BINARY_BITS(Name, ...) /* 16-bit integers; the count form takes wider ones as raw bits */                 \
    SIM_BINARY_BODY(Name, false, kI16 | kU16, kInts, VectorSimple, false, kI32 | kU32, false, (auto a, auto b), __VA_ARGS__)\
    SIM_BINARY_FORMS(Name)
#define SIM_BINARY_INTO(Name, membase, regbaseAdds, cost, ...) /* the old value d of dst takes part */                \
    SIM_BINARY_BODY(Name, true, membase, regbaseAdds, cost, false, 0, false, (auto d, auto a, auto b), __VA_ARGS__)   \
    SIM_BINARY_FORMS(Name)

//         name     arch 2201                      arch 3510 adds                                cost         16-bit takes 2x / serial accumulation / lane
SIM_BINARY(Add,     kHalf | kFloat | kI16 | kI32,  kBf16 | kI8 | kU8 | kU16 | kU32 | kI64 | kU64, VectorSimple, false, true, Sum(a, b))
SIM_BINARY(Sub,     kHalf | kFloat | kI16 | kI32,  kBf16 | kI8 | kU8 | kU16 | kU32 | kI64 | kU64, VectorSimple, false, true, Difference(a, b))
SIM_BINARY(Mul,     kHalf | kFloat | kI16 | kI32,  kBf16 | kU16 | kU32 | kI64 | kU64,             VectorSimple, false, true, Product(a, b))
SIM_BINARY(Div,     kHalf | kFloat,                kI16 | kU16 | kI32 | kU32 | kI64 | kU64,       VectorExp,    true, false, Quotient(a, b))
SIM_BINARY(Max,     kHalf | kFloat | kI16 | kI32,  kBf16 | kInts,                                 VectorSimple, false, true, Larger(a, b))
SIM_BINARY(Min,     kHalf | kFloat | kI16 | kI32,  kBf16 | kInts,                                 VectorSimple, false, true, Smaller(a, b))
SIM_BINARY_BITS(And, a & b)
SIM_BINARY_BITS(Or,  a | b)
SIM_BINARY(AddRelu, kHalf | kFloat | kI16,         0,                                             VectorSimple, false, true, Positive(Sum(a, b)))
SIM_BINARY(SubRelu, kHalf | kFloat | kI16,         0,                                             VectorSimple, false, true, Positive(Difference(a, b)))
// half: the product is exact in float, the sum is rounded to float and then to half
SIM_BINARY_INTO(FusedMulAdd,     kHalf | kFloat,   kBf16,                                         VectorSimple, Sum(Product(d, a), b))
SIM_BINARY_INTO(FusedMulAddRelu, kHalf | kFloat,   0,                                             VectorSimple, Positive(Sum(Product(d, a), b)))

namespace detail {

// dst += src0 * src1; dst float may take half sources.
template <typename T, typename U>
void MulAddDstLanes(const sim::vec::Form& form, const LocalTensor<T>& dst, const LocalTensor<U>& src0,
                    const LocalTensor<U>& src1, const BinaryRepeatParams& params, sim::Location where) {
    using namespace sim::vec;
    static constexpr Entry entry{"MulAddDst", kHalf | kFloat, kBf16 | kI16 | kU16 | kI32 | kU32, sim::Cost::VectorMulAdd};
    static_assert(std::is_same_v<T, U> || (std::is_same_v<T, float> && std::is_same_v<U, half>),
                  "MulAddDst takes equal types, or half sources into float");
    if constexpr (Supports<T>(entry))
        Binary<true>(entry, {}, form, dst, src0, src1, params, where,
                     [](auto d, auto a, auto b) SIM_INLINE { return Sum(d, Product(a, b)); });
    else
        FailType("MulAddDst", entry.Supported(), TypeOf<T>(), where);
}

}  // namespace detail

template <typename T, typename U>
void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1, int64_t count,
               sim::Location where = sim::Location::Here()) {
    detail::MulAddDstLanes(sim::vec::CountForm(count), dst, src0, src1, {}, where);
}
template <typename T, typename U, bool isSetMask = true>
void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1, uint64_t mask,
               int64_t repeatTime, const BinaryRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    detail::MulAddDstLanes(sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src0, src1, repeatParams, where);
}
template <typename T, typename U, bool isSetMask = true>
void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1, uint64_t mask[],
               int64_t repeatTime, const BinaryRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    detail::MulAddDstLanes(sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, src0, src1, repeatParams, where);
}

}  // namespace AscendC
