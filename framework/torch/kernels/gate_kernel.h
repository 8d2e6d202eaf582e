// gate = act(gate) * up in float32, rounded once.
#pragma once

#include "simd.h"

namespace custom_ops::native::KERNEL_ISA {

// x (1 + tanh(y)) / 2 = x sigmoid(2 y), y = sqrt(2 / pi) (x + 0.044715 x^3)
static inline Float GeluTanh(Float x) { return x * Sigmoid(1.5957691216f * (x + 0.044715f * x * x * x)); }

template <typename T, typename Act>
static void GateOf(T* gate, const T* up, int64_t elements, const Act& act) {
    for (int64_t i = 0; i < elements; i += kLanes) {
        const int64_t count = elements - i < kLanes ? elements - i : kLanes;
        StoreFirst(gate + i, act(LoadFirst(gate + i, count)) * LoadFirst(up + i, count), count);
    }
}

template <typename T>
static void GateWith(Activation activation, void* gate, const void* up, int64_t elements) {
    T* to = static_cast<T*>(gate);
    const T* factor = static_cast<const T*>(up);
    switch (activation) {
        case Activation::kSilu: return GateOf(to, factor, elements, Silu);
        case Activation::kGeluTanh: return GateOf(to, factor, elements, GeluTanh);
    }
}

void GateTokens(Element element, Activation activation, void* gate, const void* up, int64_t elements) {
    WithElement(element, [&](auto type) { GateWith<decltype(type)>(activation, gate, up, elements); });
}

}  // namespace custom_ops::native::KERNEL_ISA
