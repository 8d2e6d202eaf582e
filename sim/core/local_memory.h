// The local memories of one core and their shadows. Pooled: a launch uses as many as it has cores running at once.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/core/shadow.h"
#include "sim/core/soc.h"
#include "sim/core/types.h"

namespace sim {

class LocalMemory {
public:
    // Bytes of a local memory of a chip; 0 for GM.
    static uint64_t Capacity(const SocSpec& soc, Memory memory);

    // From the pool, with unwritten contents: every byte is 0xFF (a NaN, or -1) when its memory is used first. One that the launch
    // does not use takes nothing of the host's memory.
    static std::unique_ptr<LocalMemory> Take(const SocSpec& soc);
    static void GiveBack(std::unique_ptr<LocalMemory> memory);

    ~LocalMemory();
    uint64_t Bytes(Memory memory) const { return bytes_[int(memory)]; }
    bool Locate(const void* pointer, Memory* memory, uint64_t* address) const;
    uint8_t* Use(Memory memory) {        // the first byte
        if (!used_[int(memory)]) Poison(memory);
        return base_[int(memory)];
    }
    Shadow& ShadowOf(Memory memory) { return *shadow_[int(memory)]; }
    void StartShadows();                // every byte becomes unwritten
    void ForgetIds();                   // before instruction ids wrap around

    uint32_t lastSequence = 0;      // of the launch that used the shadows last

private:
    explicit LocalMemory(const SocSpec& soc);
    void Poison(Memory memory);
    LocalMemory(const LocalMemory&) = delete;
    LocalMemory& operator=(const LocalMemory&) = delete;

    const SocSpec& soc_;
    void* mapping_ = nullptr;
    uint64_t mappingBytes_ = 0;
    uint8_t* base_[kMemories] = {};
    uint64_t bytes_[kMemories] = {};
    bool used_[kMemories] = {};
    std::unique_ptr<Shadow> shadow_[kMemories];
};

}  // namespace sim
