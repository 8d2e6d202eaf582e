// What is known about every byte of one local memory: written or not, by which instruction last, and by which instruction of
// each pipe read last.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "sim/core/order.h"
#include "sim/core/types.h"

namespace sim {

class Shadow {
public:
    explicit Shadow(uint64_t bytes) : bytes_(bytes) {}

    void StartLaunch();        // every byte becomes unwritten; ids stay, Order::Start makes them old
    void ForgetIds();          // before ids wrap around
    void MarkUnwritten(uint64_t begin, uint64_t bytes);

    // First unwritten byte of [begin, begin+bytes), or its end.
    uint64_t FirstUnwritten(uint64_t begin, uint64_t bytes) const;

    // First byte of [begin, begin+bytes) whose last write, or last read by `reader`, `view` does not know to be complete; its
    // end if there is none.
    uint64_t FirstUnorderedWrite(uint64_t begin, uint64_t bytes, const Clock& view) const;
    uint64_t FirstUnorderedRead(Pipe reader, uint64_t begin, uint64_t bytes, const Clock& view) const;
    InstructionId LastWrite(uint64_t at) const { return writer_[at]; }
    InstructionId LastRead(Pipe reader, uint64_t at) const { return reader_[int(reader)][at]; }
    // Smallest extent that holds every byte whose last access of that kind was this instruction.
    void Extent(InstructionId id, bool writes, uint64_t* begin, uint64_t* end) const;

    void RecordRead(uint64_t begin, uint64_t bytes, InstructionId id);
    void RecordWrite(uint64_t begin, uint64_t bytes, InstructionId id);

private:
    struct Free { void operator()(void* memory) const { std::free(memory); } };
    template <typename T>
    using Zeroed = std::unique_ptr<T[], Free>;   // from calloc: the pages that no kernel touches take no memory of the host
    template <typename T>
    void Make(Zeroed<T>& array) const {
        if (!array) array.reset(static_cast<T*>(std::calloc(bytes_, sizeof(T))));
        if (!array) throw std::bad_alloc();
    }

    uint64_t bytes_;
    uint64_t writtenEnd_ = 0;              // nothing was written in this launch from here on
    Zeroed<uint8_t> written_;
    Zeroed<InstructionId> writer_;
    Zeroed<InstructionId> reader_[kPipes];   // by pipe, made when the pipe first reads this memory
};

}  // namespace sim
