// The fills below are most of the checker's work: let the compiler vectorise them.
#pragma GCC optimize("O3")
#include "sim/core/shadow.h"

#include <algorithm>
#include <cstring>

namespace sim {
namespace {

// Length of the run of equal ids at the start of ids[0, count). Accesses usually cover what one instruction accessed before,
// so the whole range being equal is tried first.
uint64_t EqualRun(const InstructionId* ids, uint64_t count) {
    if (std::memcmp(ids, ids + 1, (count - 1) * sizeof *ids) == 0) return count;
    uint64_t run = 1;
    while (ids[run] == ids[0]) ++run;
    return run;
}

// First id of ids[0, count) that `view` does not know to be complete; count if there is none.
uint64_t FirstUnknown(const InstructionId* ids, uint64_t count, const Clock& view) {
    for (uint64_t i = 0; i < count;) {
        if (!view.Knows(ids[i])) return i;
        i += EqualRun(ids + i, count - i);
    }
    return count;
}

}  // namespace

void Shadow::StartLaunch() {
    if (written_) std::memset(written_.get(), 0, writtenEnd_);
    writtenEnd_ = 0;
}

void Shadow::ForgetIds() {
    if (writer_) std::fill_n(writer_.get(), bytes_, 0);
    for (auto& reader : reader_)
        if (reader) std::fill_n(reader.get(), bytes_, 0);
}

void Shadow::MarkUnwritten(uint64_t begin, uint64_t bytes) {
    if (written_) std::memset(written_.get() + begin, 0, bytes);
}

uint64_t Shadow::FirstUnwritten(uint64_t begin, uint64_t bytes) const {
    if (!written_) return begin;
    const void* hole = std::memchr(written_.get() + begin, 0, bytes);
    return hole == nullptr ? begin + bytes : uint64_t(static_cast<const uint8_t*>(hole) - written_.get());
}

uint64_t Shadow::FirstUnorderedWrite(uint64_t begin, uint64_t bytes, const Clock& view) const {
    return begin + (writer_ ? FirstUnknown(writer_.get() + begin, bytes, view) : bytes);
}

uint64_t Shadow::FirstUnorderedRead(Pipe reader, uint64_t begin, uint64_t bytes, const Clock& view) const {
    const auto& ids = reader_[int(reader)];
    return begin + (ids ? FirstUnknown(ids.get() + begin, bytes, view) : bytes);
}

void Shadow::Extent(InstructionId id, bool writes, uint64_t* begin, uint64_t* end) const {
    const InstructionId* ids = writes ? writer_.get() : reader_[int(PipeOf(id))].get();
    *begin = uint64_t(std::find(ids, ids + bytes_, id) - ids);
    *end = bytes_;
    while (*end > *begin && ids[*end - 1] != id) --*end;
}

void Shadow::RecordRead(uint64_t begin, uint64_t bytes, InstructionId id) {
    auto& reader = reader_[int(PipeOf(id))];
    Make(reader);
    std::fill_n(reader.get() + begin, bytes, id);
}

void Shadow::RecordWrite(uint64_t begin, uint64_t bytes, InstructionId id) {
    Make(writer_);
    std::fill_n(writer_.get() + begin, bytes, id);
    Make(written_);
    std::memset(written_.get() + begin, 1, bytes);
    writtenEnd_ = std::max(writtenEnd_, begin + bytes);
}

}  // namespace sim
