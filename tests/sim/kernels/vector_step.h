// What the vector kernels share. A step is one API call on a UB filled with an image from GM; what UB holds afterwards goes
// back to GM, so a call that writes too much or too little shows. Everything is a run-time value: one build runs all steps.
#pragma once

#include "kernel_operator.h"

using namespace AscendC;

enum class Type : int64_t { i8, u8, i16, u16, i32, u32, i64, u64, half, bf16, f32 };
enum class Form : int64_t { Count, Mask, Bits, Register };  // Register: isSetMask = false after SetVectorMask

struct Step {  // the same as STEP in tests/sim/vector_reference.py
    int64_t op;          // index into the enum Op of the kernel file
    Type type, from;     // of dst and of the sources
    Form form;
    bool counter;        // mask forms in counter mode
    uint8_t padding[7];
    int64_t count, mask;
    uint64_t bits[2];
    int64_t repeats;
    int64_t address[4];  // bytes in UB: dst, src0, src1, and what the op says
    int64_t block[3];    // strides of dst, src0, src1
    int64_t repeat[3];
    uint64_t scalar;     // bits of an element
    int64_t mode;        // RoundMode, CMPMODE, SELMODE, ReduceOrder, ...
};

inline TBuf<>* gBuffer = nullptr;
inline uint32_t gBytes = 0;

// From `address` to the end of the image.
template <typename T>
LocalTensor<T> At(int64_t address) {
    return gBuffer->GetWithOffset<T>((gBytes - uint32_t(address)) / sizeof(T), uint32_t(address));
}
template <typename T>
T ScalarOf(const Step& step) {
    T value;
    __builtin_memcpy(&value, &step.scalar, sizeof value);
    return value;
}

// images and results: `count` times `bytes`.
template <typename Call>
void RunSteps(GM_ADDR images, GM_ADDR results, GM_ADDR steps, uint32_t count, uint32_t bytes, Call call) {
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, bytes);
    gBuffer = &buffer;
    gBytes = bytes;
    GlobalTensor<uint8_t> in, out;
    in.SetGlobalBuffer((__gm__ uint8_t*)images);
    out.SetGlobalBuffer((__gm__ uint8_t*)results);
    for (uint32_t i = 0; i < count; ++i) {
        Step step = ((__gm__ Step*)steps)[i];
        LocalTensor<uint8_t> ub = buffer.Get<uint8_t>();
        DataCopy(ub, in[uint64_t(i) * bytes], bytes);
        PipeBarrier<PIPE_ALL>();
        if (step.counter) SetMaskCount();
        call(step);
        SetMaskNorm();
        ResetMask();
        PipeBarrier<PIPE_ALL>();
        DataCopy(out[uint64_t(i) * bytes], ub, bytes);
        PipeBarrier<PIPE_ALL>();
    }
}

// byCount(), or byMask(mask or bit mask). On the 950 the steps use the count form only: half the code to compile.
template <typename ByCount, typename ByMask>
void InForm(Step& step, ByCount byCount, [[maybe_unused]] ByMask byMask) {
    if (step.form == Form::Count) return byCount();
#if __NPU_ARCH__ == 2201
    if (step.form == Form::Mask) byMask(uint64_t(step.mask));
    else byMask(step.bits);
#endif
}
// For Form::Register: fills the mask register.
template <typename T>
void SetRegister(const Step& step) {
    if (step.counter) SetVectorMask<T, MaskMode::COUNTER>(step.mask);
    else SetVectorMask<T, MaskMode::NORMAL>(step.bits[1], step.bits[0]);
}

// call(T{}) with the type a step names: on the 910B the types it has, on the 950 a few that it adds.
template <typename Call>
void WithType(Type type, Call call) {
    switch (type) {
        case Type::f32: return call(float{});
#if __NPU_ARCH__ == 2201
        case Type::half: return call(half{});
        case Type::i16: return call(int16_t{});
        case Type::u16: return call(uint16_t{});
        case Type::i32: return call(int32_t{});
#else
        case Type::u8: return call(uint8_t{});
        case Type::i64: return call(int64_t{});
        case Type::bf16: return call(bfloat16_t{});
#endif
        case Type::u32: return call(uint32_t{});
        default: return;
    }
}
