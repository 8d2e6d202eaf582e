// What the rule kernels share. Each entry takes `repaired`: false runs the smallest kernel that breaks one rule, true the
// same kernel with the one line that mends it.
#pragma once

#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kLanes = 64;                       // float lanes of one 256-byte repeat
constexpr uint32_t kBytes = kLanes * sizeof(float);

inline GlobalTensor<float> Gm(GM_ADDR address) {
    GlobalTensor<float> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(address));
    return tensor;
}

// MTE2 fills `local` and V may use it afterwards.
inline void Load(LocalTensor<float> local, GM_ADDR address, uint32_t count = kLanes) {
    DataCopy(local, Gm(address), count);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
}

// MTE3 writes `local` out after everything V has done so far.
inline void Store(GM_ADDR address, LocalTensor<float> local, uint32_t count = kLanes) {
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(Gm(address), local, count);
}
