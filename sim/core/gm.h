// Global memory during a launch: the tensors it was given, and what each core did to their bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/foreign.h"
#include "sim/core/intervals.h"
#include "sim/core/launch.h"
#include "sim/core/order.h"
#include "sim/core/sites.h"

namespace sim {

struct GmTensor {
    std::string name;
    uint64_t begin, end;        // host addresses
    bool startsWritten;
    bool readOnly;              // an input, and no output shares its memory
    uint64_t Bytes() const { return end - begin; }
};

class GmTensors {
public:
    explicit GmTensors(const std::vector<GmBuffer>& buffers);
    // The tensor an address belongs to; null if none. `bytes` at it should fit when several share memory.
    const GmTensor* Find(uint64_t address, uint64_t bytes = 1) const;
    // For messages: the tensor that ends closest before the address, null if none is near.
    const GmTensor* EndingBefore(uint64_t address) const;
    const std::vector<GmTensor>& All() const { return tensors_; }

private:
    std::vector<GmTensor> tensors_;
};

// Addresses as the device would have them, where memory that the host placed at random starts on a line of L2. Tensors that share
// memory go on sharing it.
class GmPlaces {
public:
    explicit GmPlaces(const GmTensors& tensors);
    uint64_t Of(uint64_t address) const;

private:
    struct Stretch { uint64_t begin, end, place; };
    std::vector<Stretch> stretches_;   // by begin
};

// What touched a byte last: the line; in a mixed kernel also the instruction and the event up to which it knew of other cores.
struct GmTouch {
    SiteIndex site;
    InstructionId id, event;
    bool operator==(const GmTouch& o) const { return site == o.site && id == o.id && event == o.event; }
};

// Bytes that one core touched between two meetings of all cores; in a mixed kernel, between two cross-core events.
struct EpochLog {
    uint32_t meeting = 0;
    IntervalMap<GmTouch> reads, writes, atomics;
    bool Empty() const { return reads.Empty() && writes.Empty() && atomics.Empty(); }
};

class GmCore {
public:
    enum class Kind { Read, Write, Atomic };

    // First part of [begin, end) whose last write, or last read by `reader`, `view` does not know to be complete.
    struct Unordered {
        InstructionId id = 0;
        uint64_t begin = 0, end = 0;      // empty: none
    };
    Unordered FirstUnorderedWrite(uint64_t begin, uint64_t end, const Clock& view) const;
    Unordered FirstUnorderedRead(Pipe reader, uint64_t begin, uint64_t end, const Clock& view) const;
    void Record(uint64_t begin, uint64_t end, Kind kind, InstructionId id, SiteIndex site, const Clock& view);
    // First byte of [begin, end) that neither this core nor, before the last meeting, any other has written; or `end`.
    uint64_t FirstUnwritten(uint64_t begin, uint64_t end, const IntervalMap<bool>& writtenBefore) const;
    // What this core wrote since the last meeting becomes known to all.
    void Publish(IntervalMap<bool>* written) const;
    void ForgetIds() {               // before instruction ids wrap around
        writer_.ids.Clear();
        for (History& reader : reader_) reader.ids.Clear();
    }
    // `met`: all cores of the launch are here.
    void EndEpoch(bool met) {
        const uint32_t meeting = epoch_.meeting + met;
        if (!epoch_.Empty()) epochs_.push_back(std::move(epoch_));
        epoch_ = EpochLog();
        epoch_.meeting = meeting;
    }
    void KeepInstructions() { keepInstructions_ = true; }   // of a mixed kernel
    std::vector<EpochLog> TakeEpochs() {
        EndEpoch(false);
        return std::move(epochs_);
    }

private:
    struct History {
        IntervalMap<InstructionId> ids;
        size_t compactAt = 1 << 14;      // intervals at which completed ones are dropped
    };
    bool keepInstructions_ = false;
    History writer_, reader_[kPipes];
    EpochLog epoch_;
    std::vector<EpochLog> epochs_;
};

// Two cores that touched the same bytes of GM, one of them writing, and neither knew the other to be done.
struct CoreConflict {
    struct Side {
        uint32_t core;
        SiteIndex site;
        GmCore::Kind kind;
        InstructionId id, event;
    };
    Side first, second;
    uint64_t begin, end;        // host addresses of the first occurrence
    uint64_t times;
};
// One entry per pair of source lines and kinds. All are indexed by core.
std::vector<CoreConflict> FindCoreConflicts(const std::vector<std::vector<EpochLog>>& epochs, const std::vector<Sites>& sites,
                                            const std::vector<ForeignLog>& learnt);

}  // namespace sim
