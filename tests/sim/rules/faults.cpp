// The kernel's own scalar code goes wrong.
#include "rule_kernel.h"

extern "C" __global__ __aicore__ void null_pointer(GM_ADDR x, GM_ADDR y, bool repaired) {
    volatile float* pointer = repaired ? reinterpret_cast<volatile float*>(x) : nullptr;
    (void)*pointer;
}

extern "C" __global__ __aicore__ void division_by_zero(GM_ADDR x, GM_ADDR y, bool repaired) {
    volatile int rows = 64, cores = repaired ? 1 : 0;
    volatile int share = rows / cores;
    (void)share;
}

// Ends on the device only by the watchdog.
extern "C" __global__ __aicore__ void never_ends(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    do {
        PipeBarrier<PIPE_V>();
    } while (!repaired);
}

// Every barrier is a line of the record from which the timeline is made.
extern "C" __global__ __aicore__ void never_ends_with_a_record(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    do {
        PipeBarrier<PIPE_MTE2>();
    } while (!repaired);
}

// The device has no process to leave: whatever would end the host's ends the kernel only.
extern "C" __global__ __aicore__ void calls_exit(GM_ADDR x, GM_ADDR y, bool repaired) {
    if (!repaired) {
        exit(3);
    }
}

extern "C" __global__ __aicore__ void calls_abort(GM_ADDR x, GM_ADDR y, bool repaired) {
    if (!repaired) {
        abort();
    }
}

extern "C" __global__ __aicore__ void throws_an_exception(GM_ADDR x, GM_ADDR y, bool repaired) {
    PipeBarrier<PIPE_V>();
    if (!repaired) {
        throw 1;
    }
}

inline void Refuses(bool repaired) noexcept {
    if (!repaired) {
        throw 1;
    }
}
extern "C" __global__ __aicore__ void throws_through_noexcept(GM_ADDR x, GM_ADDR y, bool repaired) {
    PipeBarrier<PIPE_V>();
    Refuses(repaired);
}

__attribute__((noinline)) int Descend(volatile int depth) {
    volatile char frame[4096];
    frame[0] = char(depth);
    return depth == 0 ? frame[0] : Descend(depth - 1) + frame[0];
}
extern "C" __global__ __aicore__ void recursion_without_end(GM_ADDR x, GM_ADDR y, bool repaired) {
    volatile int result = Descend(repaired ? 4 : 1 << 30);
    (void)result;
}

extern "C" __global__ __aicore__ void array_larger_than_the_stack(GM_ADDR x, GM_ADDR y, bool repaired) {
    if (!repaired) {
        volatile char frame[64 << 20];
        frame[0] = 1;
    }
}
