// Instructions that are not lane to lane: Compare, Select, gathers, reductions, and copies between GM and UB.
#include "vector_step.h"

enum class Op : int64_t {
    Compare, CompareScalar, CompareRegister, Select, SelectScalar, SelectRegister,
    GatherMask, GatherMaskBits, Gather, Gatherb, Transpose,
    WholeReduceSum, WholeReduceMax, WholeReduceMin, RepeatReduceSum,
    BlockReduceSum, BlockReduceMax, BlockReduceMin, PairReduceSum, ReduceSum, ReduceMax, ReduceMin,
    CopyIn, CopyOut, CopyUb, CopyInBlocks, CopyOutBlocks, CopyUbBlocks, PadIn, PadOut, PadInShort, PadOutShort,
    PadInCompact, PadOutCompact
};

// What the scalar unit got, at address[3].
template <typename T>
void Keep(const Step& step, T value) {
    PipeBarrier<PIPE_V>();
    Duplicate(At<T>(step.address[3]), value, 32 / int64_t(sizeof(T)));
}

template <typename T>
void RunBits(Step& step) {
    const LocalTensor<T> dst = At<T>(step.address[0]), src0 = At<T>(step.address[1]), src1 = At<T>(step.address[2]);
    const LocalTensor<uint8_t> bits = At<uint8_t>(step.address[0]), selMask = At<uint8_t>(step.address[3]);
    const BinaryRepeatParams binary(step.block[0], step.block[1], step.block[2], step.repeat[0], step.repeat[1], step.repeat[2]);
    const UnaryRepeatParams unary(step.block[0], step.block[1], step.repeat[0], step.repeat[1]);
    const T scalar = ScalarOf<T>(step);
    const CMPMODE compare = CMPMODE(step.mode);
    const SELMODE select = SELMODE(step.mode);
    switch (Op(step.op)) {
        case Op::Compare:
            return InForm(step, [&] { Compare(bits, src0, src1, compare, step.count); },
                          [&](auto mask) { Compare(bits, src0, src1, compare, mask, step.repeats, binary); });
        case Op::CompareScalar:
            return InForm(step, [&] { CompareScalar(bits, src0, scalar, compare, step.count); },
                          [&](auto mask) { CompareScalar(bits, src0, scalar, compare, mask, step.repeats, unary); });
        case Op::CompareRegister:
            Compare(src0, src1, compare, uint64_t(step.mask), binary);
            PipeBarrier<PIPE_V>();
            return GetCmpMask(bits);
        case Op::Select:
            return InForm(step, [&] { Select(dst, selMask, src0, src1, select, step.count); },
                          [&](auto mask) { Select(dst, selMask, src0, src1, select, mask, step.repeats, binary); });
        case Op::SelectScalar:
            return InForm(step, [&] { Select(dst, selMask, src0, scalar, select, step.count); },
                          [&](auto mask) { Select(dst, selMask, src0, scalar, select, mask, step.repeats, binary); });
        case Op::SelectRegister:
            SetCmpMask(selMask);
            PipeBarrier<PIPE_V>();
            SetRegister<T>(step);
            return Select(dst, src0, src1, step.repeats, binary);
        default: return;
    }
}

template <typename T>
void RunGather(Step& step) {
    using Word = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
    const LocalTensor<T> dst = At<T>(step.address[0]), src = At<T>(step.address[1]);
    const LocalTensor<uint32_t> offsets = At<uint32_t>(step.address[2]);
    const GatherMaskParams params(step.block[1], step.repeats, step.repeat[1], step.repeat[2]);
    uint64_t kept = 0;
    switch (Op(step.op)) {
        case Op::GatherMask:
            GatherMask(dst, src, uint8_t(step.mode), step.mask != 0, uint32_t(step.mask), params, kept);
            return Keep(step, uint32_t(kept));
        case Op::GatherMaskBits:
            GatherMask(dst, src, At<Word>(step.address[2]), step.mask != 0, uint32_t(step.mask), params, kept);
            return Keep(step, uint32_t(kept));
        case Op::Gather:  // mode: srcBaseAddr
            return InForm(step, [&] { Gather(dst, src, offsets, uint32_t(step.mode), step.count); }, [&](auto mask) {
                Gather(dst, src, offsets, uint32_t(step.mode), mask, step.repeats, step.repeat[0]);
            });
        case Op::Gatherb:
            return Gatherb(At<Word>(step.address[0]), At<Word>(step.address[1]), offsets, step.repeats,
                           {step.block[0], step.repeat[0]});
        case Op::Transpose: return Transpose(At<Word>(step.address[0]), At<Word>(step.address[1]));
        default: return;
    }
}

#define REDUCE(Name, ...)                                                                                             \
    case Op::Name:                                                                                                    \
        return InForm(step, [] {}, [&](auto mask) { Name(dst, src, __VA_ARGS__ step.repeat[0], step.block[1], step.repeat[1]); });
#define EXTREME(Name)                                                                                                 \
    case Op::Name:                                                                                                    \
        return InForm(step, [] {}, [&](auto mask) {                                                                   \
            Name(dst, src, mask, step.repeats, step.repeat[0], step.block[1], step.repeat[1], ReduceOrder(step.mode)); \
        });
#define TOTAL(Name, ...) /* mode: calIndex */                                                                         \
    case Op::Name:                                                                                                    \
        return InForm(step, [&] { Name(dst, src, tmp, step.count __VA_ARGS__); },                                     \
                      [&](auto mask) { Name(dst, src, tmp, mask, step.repeats, step.repeat[1] __VA_ARGS__); });

template <typename T>
void RunReduce(Step& step) {
    const LocalTensor<T> dst = At<T>(step.address[0]), src = At<T>(step.address[1]), tmp = At<T>(step.address[2]);
    switch (Op(step.op)) {
        REDUCE(WholeReduceSum, mask, step.repeats,)
        EXTREME(WholeReduceMax) EXTREME(WholeReduceMin)
        case Op::RepeatReduceSum:
            return RepeatReduceSum(dst, src, step.repeats, step.mask, 0, step.block[1], step.repeat[0], step.repeat[1]);
        REDUCE(BlockReduceSum, step.repeats, mask,)
        REDUCE(BlockReduceMax, step.repeats, mask,)
        REDUCE(BlockReduceMin, step.repeats, mask,)
        REDUCE(PairReduceSum, step.repeats, mask,)
        TOTAL(ReduceSum) TOTAL(ReduceMax, , step.mode != 0) TOTAL(ReduceMin, , step.mode != 0)
        default: return;
    }
}

// Blocks of a copy: repeats times count bytes; repeat: the strides of dst and src; block: left and right padding; the GM end
// is an address in `gm`.
template <typename T>
void RunCopy(Step& step, GM_ADDR gm) {
    const Op op = Op(step.op);
    const bool in = op == Op::CopyIn || op == Op::CopyInBlocks || op == Op::PadIn || op == Op::PadInShort || op == Op::PadInCompact;
    const bool out = op == Op::CopyOut || op == Op::CopyOutBlocks || op == Op::PadOut || op == Op::PadOutShort || op == Op::PadOutCompact;
    GlobalTensor<T> global;
    global.SetGlobalBuffer((__gm__ T*)(gm + (in ? step.address[1] : out ? step.address[0] : 0)));
    const LocalTensor<T> dst = At<T>(out ? 0 : step.address[0]), src = At<T>(in ? 0 : step.address[1]);
    const DataCopyParams blocks(step.repeats, step.count, step.repeat[1], step.repeat[0]);
    const DataCopyExtParams bytes(step.repeats, step.count, step.repeat[1], step.repeat[0], 0);
    const DataCopyPadExtParams<T> pad(step.mode != 0, step.block[0], step.block[1], ScalarOf<T>(step));
    switch (op) {
        case Op::CopyIn: return DataCopy(dst, global, step.count);
        case Op::CopyOut: return DataCopy(global, src, step.count);
        case Op::CopyUb: return DataCopy(dst, src, step.count);
        case Op::CopyInBlocks: return DataCopy(dst, global, blocks);
        case Op::CopyOutBlocks: return DataCopy(global, src, blocks);
        case Op::CopyUbBlocks: return DataCopy(dst, src, blocks);
        case Op::PadIn: return DataCopyPad(dst, global, bytes, pad);
        case Op::PadOut: return DataCopyPad(global, src, bytes);
        case Op::PadInShort:
            return DataCopyPad(dst, global, blocks, DataCopyPadParams(step.mode != 0, step.block[0], step.block[1], step.scalar));
        case Op::PadOutShort: return DataCopyPad(global, src, blocks);
#if __NPU_ARCH__ == 3510
        case Op::PadInCompact: return DataCopyPad<T, PaddingMode::Compact>(dst, global, bytes, pad);
        case Op::PadOutCompact: return DataCopyPad<T, PaddingMode::Compact>(global, src, bytes);
#endif
        default: return;
    }
}

extern "C" __global__ __aicore__ void moves(GM_ADDR images, GM_ADDR results, GM_ADDR steps, GM_ADDR gm, uint32_t count,
                                            uint32_t bytes) {
    RunSteps(images, results, steps, count, bytes, [gm](Step& step) {
        if (Op(step.op) >= Op::CopyIn) {
            if (step.type == Type::u8) RunCopy<uint8_t>(step, gm);
            else if (step.type == Type::i16) RunCopy<int16_t>(step, gm);
            else RunCopy<float>(step, gm);
            return;
        }
        const auto run = [&](auto t) {
            using T = decltype(t);
            if (Op(step.op) <= Op::SelectRegister) RunBits<T>(step);
            else if (Op(step.op) <= Op::Transpose) RunGather<T>(step);
            else RunReduce<T>(step);
        };
        if (step.type == Type::f32) run(float{});
        else if (step.type == Type::i32) run(int32_t{});
#if __NPU_ARCH__ == 2201
        else if (step.type == Type::half) run(half{});
#endif
    });
}
