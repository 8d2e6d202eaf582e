// Cast of every type pair of the arch, with the round mode as a run-time value.
#include "vector_step.h"

template <typename T, typename S>
void Run(Step& step) {
    const LocalTensor<T> dst = At<T>(step.address[0]);
    const LocalTensor<S> src = At<S>(step.address[1]);
    const RoundMode mode = RoundMode(step.mode);
    const UnaryRepeatParams params(step.block[0], step.block[1], step.repeat[0], step.repeat[1]);
    if constexpr (std::is_same_v<T, half> && std::is_same_v<S, int32_t>) SetDeqScale(ScalarOf<half>(step));
    InForm(step, [&] { Cast(dst, src, mode, step.count); },
           [&](auto mask) { Cast(dst, src, mode, mask, step.repeats, params); });
}

#define TO(to, T) \
    case Type::to: return Run<T, S>(step);
#define FROM(from, T, ...)                    \
    case Type::from: {                        \
        using S = T;                          \
        switch (step.type) {                  \
            __VA_ARGS__ default : return;     \
        }                                     \
    }

extern "C" __global__ __aicore__ void cast(GM_ADDR images, GM_ADDR results, GM_ADDR steps, uint32_t count, uint32_t bytes) {
    RunSteps(images, results, steps, count, bytes, [](Step& step) {
        switch (step.from) {
#if __NPU_ARCH__ == 2201
            FROM(i8, int8_t, TO(half, half))
            FROM(u8, uint8_t, TO(half, half))
            FROM(i16, int16_t, TO(half, half) TO(f32, float))
            FROM(i32, int32_t, TO(i16, int16_t) TO(half, half) TO(f32, float) TO(i64, int64_t))
            FROM(i64, int64_t, TO(i32, int32_t) TO(f32, float))
            FROM(half, half, TO(i8, int8_t) TO(u8, uint8_t) TO(i16, int16_t) TO(i32, int32_t) TO(f32, float) TO(bf16, bfloat16_t))
            FROM(bf16, bfloat16_t, TO(f32, float) TO(i32, int32_t) TO(half, half))
            FROM(f32, float, TO(half, half) TO(bf16, bfloat16_t) TO(i16, int16_t) TO(i32, int32_t) TO(i64, int64_t) TO(f32, float))
#else
            FROM(i8, int8_t, TO(i16, int16_t) TO(i32, int32_t))
            FROM(u8, uint8_t, TO(u16, uint16_t) TO(u32, uint32_t))
            FROM(i16, int16_t, TO(u8, uint8_t) TO(u32, uint32_t))
            FROM(u16, uint16_t, TO(u8, uint8_t) TO(u32, uint32_t))
            FROM(u32, uint32_t, TO(u8, uint8_t) TO(u16, uint16_t) TO(i16, int16_t))
            FROM(half, half, TO(bf16, bfloat16_t))
            FROM(bf16, bfloat16_t, TO(half, half))
#endif
            default: return;
        }
    });
}
