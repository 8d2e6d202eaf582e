// Flags: one bit per (source, destination, id); each SetFlag is met by exactly one WaitFlag.
#include "rule_kernel.h"

extern "C" __global__ __aicore__ void wait_without_set(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    if (repaired) {
        SetFlag<HardEvent::MTE2_V>(EVENT_ID1);
    }
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID1);
}

extern "C" __global__ __aicore__ void set_twice(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    SetFlag<HardEvent::MTE2_V>(EVENT_ID1);
    if (repaired) {
        WaitFlag<HardEvent::MTE2_V>(EVENT_ID1);
    }
    SetFlag<HardEvent::MTE2_V>(EVENT_ID1);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID1);
}

extern "C" __global__ __aicore__ void flag_left_set(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    SetFlag<HardEvent::MTE2_V>(EVENT_ID1);
    if (repaired) {
        WaitFlag<HardEvent::MTE2_V>(EVENT_ID1);
    }
}

extern "C" __global__ __aicore__ void event_ids_exhausted(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    for (int i = 0; i < 9; ++i) {
        const TEventID id = pipe.AllocEventID<HardEvent::V_S>();
        SetFlag<HardEvent::V_S>(id);
        WaitFlag<HardEvent::V_S>(id);
        if (repaired) {
            pipe.ReleaseEventID<HardEvent::V_S>(id);
        }
    }
}

// The cube's pipe does not exist on a vector core.
extern "C" __global__ __aicore__ void cube_barrier_on_a_vector_core(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    if (repaired) {
        PipeBarrier<PIPE_V>();
    } else {
        PipeBarrier<PIPE_M>();
    }
}
