// Lane-wise instructions: dst = f(src0, src1), f(src0, scalar), f(src0), and those that fill. All forms of one table share
// their macro, so one instruction of each also runs with the lanes of the mask register.
#include "vector_step.h"

enum class Op : int64_t {
    Add, Sub, Mul, Div, Max, Min, And, Or, AddRelu, SubRelu, FusedMulAdd, FusedMulAddRelu, MulAddDst,
    Adds, Muls, Maxs, Mins, Subs, Divs, Ands, Ors, LeakyRelu, ShiftLeft, ShiftRight, Axpy,
    Exp, Ln, Sqrt, Rsqrt, Reciprocal, Abs, Relu, Not,
    Duplicate, CreateVecIndex, Brcb, Copy
};

#define BINARY(Name)                                                                     \
    case Op::Name:                                                                       \
        return InForm(step, [&] { Name(dst, src0, src1, step.count); }, [&](auto mask) { \
            Name(dst, src0, src1, mask, step.repeats, binary);                           \
        });
#define SCALAR(Name)                                                                       \
    case Op::Name:                                                                         \
        return InForm(step, [&] { Name(dst, src0, scalar, step.count); }, [&](auto mask) { \
            Name(dst, src0, scalar, mask, step.repeats, unary);                            \
        });
#define UNARY(Name)                                                                \
    case Op::Name:                                                                 \
        return InForm(step, [&] { Name(dst, src0, step.count); }, [&](auto mask) { \
            Name(dst, src0, mask, step.repeats, unary);                            \
        });
#define SHIFT(Name) /* mode: roundEn */                                                    \
    case Op::Name:                                                                         \
        return InForm(step, [&] { Name(dst, src0, scalar, step.count); }, [&](auto mask) { \
            Name(dst, src0, scalar, mask, step.repeats, unary, step.mode != 0);            \
        });

template <typename T>
void Run(Step& step) {
    const LocalTensor<T> dst = At<T>(step.address[0]), src0 = At<T>(step.address[1]), src1 = At<T>(step.address[2]);
    const BinaryRepeatParams binary(step.block[0], step.block[1], step.block[2], step.repeat[0], step.repeat[1], step.repeat[2]);
    const UnaryRepeatParams unary(step.block[0], step.block[1], step.repeat[0], step.repeat[1]);
    const T scalar = ScalarOf<T>(step);
    if (step.form == Form::Register) {
        SetRegister<T>(step);
        switch (Op(step.op)) {
            case Op::Add: return Add<T, false>(dst, src0, src1, MASK_PLACEHOLDER, step.repeats, binary);
            case Op::Muls: return Muls<T, false>(dst, src0, scalar, MASK_PLACEHOLDER, step.repeats, unary);
            case Op::Abs: return Abs<T, false>(dst, src0, MASK_PLACEHOLDER, step.repeats, unary);
            case Op::Duplicate:
                return Duplicate<T, false>(dst, scalar, MASK_PLACEHOLDER, step.repeats, step.block[0], step.repeat[0]);
            default: return;
        }
    }
    switch (Op(step.op)) {
        BINARY(Add) BINARY(Sub) BINARY(Mul) BINARY(Div) BINARY(Max) BINARY(Min) BINARY(And) BINARY(Or)
        BINARY(AddRelu) BINARY(SubRelu) BINARY(FusedMulAdd) BINARY(FusedMulAddRelu)
        SCALAR(Adds) SCALAR(Muls) SCALAR(Maxs) SCALAR(Mins) SCALAR(Subs) SCALAR(Divs) SCALAR(Ands) SCALAR(Ors)
        SCALAR(LeakyRelu) SHIFT(ShiftLeft) SHIFT(ShiftRight)
        UNARY(Exp) UNARY(Ln) UNARY(Sqrt) UNARY(Rsqrt) UNARY(Reciprocal) UNARY(Abs) UNARY(Relu) UNARY(Not)
        case Op::Duplicate:
            return InForm(step, [&] { Duplicate(dst, scalar, step.count); }, [&](auto mask) {
                Duplicate(dst, scalar, mask, step.repeats, step.block[0], step.repeat[0]);
            });
        case Op::CreateVecIndex:
            return InForm(step, [&] { CreateVecIndex(dst, scalar, step.count); }, [&](auto mask) {
                CreateVecIndex(dst, scalar, mask, step.repeats, step.block[0], step.repeat[0]);
            });
        case Op::Brcb: return Brcb(dst, src0, step.repeats, {step.block[0], step.repeat[0]});
        case Op::Copy:
            return InForm(step, [] {}, [&](auto mask) {
                Copy(dst, src0, mask, step.repeats,
                                              {step.block[0], step.block[1], step.repeat[0], step.repeat[1]});
            });
        default: break;
    }
}

// dst of T, sources of S: equal, or float and half.
template <typename T, typename S>
void RunMixed(Step& step) {
    const LocalTensor<T> dst = At<T>(step.address[0]);
    const LocalTensor<S> src0 = At<S>(step.address[1]), src1 = At<S>(step.address[2]);
    const S scalar = ScalarOf<S>(step);
    const BinaryRepeatParams binary(step.block[0], step.block[1], step.block[2], step.repeat[0], step.repeat[1], step.repeat[2]);
    const UnaryRepeatParams unary(step.block[0], step.block[1], step.repeat[0], step.repeat[1]);
    if (Op(step.op) == Op::MulAddDst)
        InForm(step, [&] { MulAddDst(dst, src0, src1, step.count); }, [&](auto mask) {
            MulAddDst(dst, src0, src1, mask, step.repeats, binary);
        });
    else
        InForm(step, [&] { Axpy(dst, src0, scalar, step.count); }, [&](auto mask) {
            Axpy(dst, src0, scalar, mask, step.repeats, unary);
        });
}

extern "C" __global__ __aicore__ void lanes(GM_ADDR images, GM_ADDR results, GM_ADDR steps, uint32_t count, uint32_t bytes) {
    RunSteps(images, results, steps, count, bytes, [](Step& step) {
        if (Op(step.op) != Op::MulAddDst && Op(step.op) != Op::Axpy)
            return WithType(step.type, [&](auto t) { Run<decltype(t)>(step); });
        if (step.type != step.from) return RunMixed<float, half>(step);
        WithType(step.type, [&](auto t) { RunMixed<decltype(t), decltype(t)>(step); });
    });
}
