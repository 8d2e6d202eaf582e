// Memory of a thread that is kept from call to call: fresh pages would cost a decode step more than its arithmetic.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

#include "simd.h"

namespace custom_ops::native::KERNEL_ISA {

// Hands out consecutive aligned pieces of one block.
class Workspace {
public:
    // Everything that was handed out before becomes free.
    void Begin(int64_t bytes) {
        used_ = 0;
        if (bytes <= capacity_) return;
        std::free(data_);
        capacity_ = RoundUp(bytes);
        data_ = static_cast<char*>(std::aligned_alloc(kAlignment, capacity_));
        if (!data_) {
            capacity_ = 0;
            throw std::bad_alloc();
        }
    }
    ~Workspace() { std::free(data_); }

    template <typename T>
    static int64_t Bytes(int64_t elements) { return RoundUp(elements * static_cast<int64_t>(sizeof(T))); }

    template <typename T>
    T* Take(int64_t elements) {
        T* taken = reinterpret_cast<T*>(data_ + used_);
        used_ += Bytes<T>(elements);
        return taken;
    }

private:
    static constexpr int64_t kAlignment = 64;
    static int64_t RoundUp(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

    char* data_ = nullptr;
    int64_t capacity_ = 0, used_ = 0;
};

static inline Workspace& ThreadWorkspace() {
    static thread_local Workspace workspace;
    return workspace;
}

}  // namespace custom_ops::native::KERNEL_ISA
