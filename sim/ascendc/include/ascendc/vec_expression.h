// dst = a + b on whole tensors: the count form over all elements of dst (of src0 for comparisons).
#pragma once

#include "ascendc/vec_binary.h"
#include "ascendc/vec_compare.h"

namespace AscendC {

// Operators have no room for a caller's location: messages name the instruction only.
#define SIM_EXPRESSION(op, Name)                                                                                      \
    namespace detail {                                                                                                \
    template <typename S>                                                                                             \
    struct Name##Expression {                                                                                         \
        LocalTensor<S> src0, src1;                                                                                    \
        template <typename T>                                                                                         \
        void AssignTo(const LocalTensor<T>& dst) const { Name(dst, src0, src1, dst.GetSize(), sim::Location{}); }     \
    };                                                                                                                \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    detail::Name##Expression<T> operator op(const LocalTensor<T>& src0, const LocalTensor<T>& src1) {                 \
        return {src0, src1};                                                                                          \
    }
SIM_EXPRESSION(+, Add)
SIM_EXPRESSION(-, Sub)
SIM_EXPRESSION(*, Mul)
SIM_EXPRESSION(/, Div)
SIM_EXPRESSION(|, Or)
SIM_EXPRESSION(&, And)

#define SIM_COMPARISON(op, mode)                                                                                      \
    namespace detail {                                                                                                \
    template <typename S>                                                                                             \
    struct Compare##mode##Expression {                                                                                \
        LocalTensor<S> src0, src1;                                                                                    \
        template <typename T>                                                                                         \
        void AssignTo(const LocalTensor<T>& dst) const {                                                              \
            Compare(dst, src0, src1, CMPMODE::mode, src0.GetSize(), sim::Location{});                                 \
        }                                                                                                             \
    };                                                                                                                \
    }                                                                                                                 \
    template <typename T>                                                                                             \
    detail::Compare##mode##Expression<T> operator op(const LocalTensor<T>& src0, const LocalTensor<T>& src1) {        \
        return {src0, src1};                                                                                          \
    }
SIM_COMPARISON(<, LT)
SIM_COMPARISON(>, GT)
SIM_COMPARISON(==, EQ)
SIM_COMPARISON(<=, LE)
SIM_COMPARISON(>=, GE)
SIM_COMPARISON(!=, NE)

}  // namespace AscendC
