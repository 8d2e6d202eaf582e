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
