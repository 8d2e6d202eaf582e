#include "sim/core/gm.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace sim {
namespace {

uint64_t AddressOf(const void* pointer) { return uint64_t(reinterpret_cast<uintptr_t>(pointer)); }

}  // namespace

GmTensors::GmTensors(const std::vector<GmBuffer>& buffers) {
    for (const GmBuffer& buffer : buffers) {
        if (buffer.data == nullptr) continue;
        const uint64_t begin = AddressOf(buffer.data);
        const bool startsWritten = buffer.role != GmRole::Output && buffer.role != GmRole::Workspace;
        tensors_.push_back({buffer.name, begin, begin + buffer.bytes, startsWritten, buffer.role == GmRole::Input});
    }
    // An output that shares memory with an input is written when the launch starts, and the input may be written.
    for (GmTensor& tensor : tensors_)
        for (const GmTensor& other : tensors_) {
            if (other.begin >= tensor.end || tensor.begin >= other.end) continue;
            if (other.startsWritten) tensor.startsWritten = true;
            if (!other.readOnly) tensor.readOnly = false;
        }
}

const GmTensor* GmTensors::Find(uint64_t address, uint64_t bytes) const {
    const GmTensor* found = nullptr;
    for (const GmTensor& tensor : tensors_) {
        if (address < tensor.begin || address >= tensor.end) continue;
        if (address + bytes <= tensor.end) return &tensor;
        found = &tensor;
    }
    return found;
}

const GmTensor* GmTensors::EndingBefore(uint64_t address) const {
    constexpr uint64_t kNear = 1 << 20;
    const GmTensor* found = nullptr;
    for (const GmTensor& tensor : tensors_) {
        if (tensor.end > address || address - tensor.end >= kNear) continue;
        if (found == nullptr || tensor.end > found->end) found = &tensor;
    }
    return found;
}

GmPlaces::GmPlaces(const GmTensors& tensors) {
    constexpr uint64_t kLine = 512;
    for (const GmTensor& tensor : tensors.All()) stretches_.push_back({tensor.begin, tensor.end, 0});
    std::sort(stretches_.begin(), stretches_.end(), [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
    size_t kept = 0;
    for (const Stretch& stretch : stretches_) {
        const bool shares = kept > 0 && stretch.begin < stretches_[kept - 1].end;
        if (shares) stretches_[kept - 1].end = std::max(stretches_[kept - 1].end, stretch.end);
        else stretches_[kept++] = stretch;
    }
    stretches_.resize(kept);
    uint64_t place = 0;
    for (Stretch& stretch : stretches_) {
        stretch.place = place;
        place += (stretch.end - stretch.begin + kLine - 1) / kLine * kLine;
    }
}

uint64_t GmPlaces::Of(uint64_t address) const {
    auto after = std::upper_bound(stretches_.begin(), stretches_.end(), address, [](uint64_t a, const Stretch& s) { return a < s.begin; });
    return after == stretches_.begin() ? address : address - std::prev(after)->begin + std::prev(after)->place;
}

namespace {

GmCore::Unordered FirstUnknown(const IntervalMap<InstructionId>& map, uint64_t begin, uint64_t end, const Clock& view) {
    GmCore::Unordered found;
    map.Find(begin, end, [&](uint64_t from, uint64_t to, InstructionId id) {
        if (view.Knows(id)) return false;
        found = {id, from, to};
        return true;
    });
    return found;
}

}  // namespace

GmCore::Unordered GmCore::FirstUnorderedWrite(uint64_t begin, uint64_t end, const Clock& view) const {
    return FirstUnknown(writer_.ids, begin, end, view);
}

GmCore::Unordered GmCore::FirstUnorderedRead(Pipe reader, uint64_t begin, uint64_t end, const Clock& view) const {
    return FirstUnknown(reader_[int(reader)].ids, begin, end, view);
}

void GmCore::Record(uint64_t begin, uint64_t end, Kind kind, InstructionId id, SiteIndex site, const Clock& view) {
    const bool reads = kind == Kind::Read;
    // A scalar read is complete before the scalar unit issues anything else.
    if (!reads || PipeOf(id) != Pipe::S) {
        History& history = reads ? reader_[int(PipeOf(id))] : writer_;
        history.ids.Assign(begin, end, id);
        if (history.ids.Size() >= history.compactAt) {
            // What this pipe knows to be complete. A pipe that knows less and touches the bytes later is not reported.
            history.ids.EraseIf([&](InstructionId old) { return view.Knows(old); });
            history.compactAt = std::max(history.compactAt, 2 * history.ids.Size());
        }
    }
    const GmTouch touch = keepInstructions_ ? GmTouch{site, id, view.Event()} : GmTouch{site, 0, 0};
    (reads ? epoch_.reads : kind == Kind::Write ? epoch_.writes : epoch_.atomics).Assign(begin, end, touch);
}

uint64_t GmCore::FirstUnwritten(uint64_t begin, uint64_t end, const IntervalMap<bool>& writtenBefore) const {
    for (uint64_t at = begin;;) {
        uint64_t next = writtenBefore.FirstGap(at, end);
        next = epoch_.writes.FirstGap(next, end);
        next = epoch_.atomics.FirstGap(next, end);
        if (next == at) return at;
        at = next;
    }
}

void GmCore::Publish(IntervalMap<bool>* written) const {
    for (const auto* map : {&epoch_.writes, &epoch_.atomics})
        for (const auto& [begin, interval] : map->Intervals()) written->Assign(begin, interval.end, true);
}

namespace {

struct Touch {
    uint64_t begin, end;
    CoreConflict::Side side;
};

bool Conflicts(const Touch& a, const Touch& b) {
    using Kind = GmCore::Kind;
    return a.side.core != b.side.core && !(a.side.kind == Kind::Atomic && b.side.kind == Kind::Atomic) &&
           !(a.side.kind == Kind::Read && b.side.kind == Kind::Read);
}

// Touches of one epoch that can be part of a conflict: all writes, and the reads of bytes that some core writes.
std::vector<Touch> Candidates(const std::vector<std::vector<EpochLog>>& epochs, uint32_t meeting) {
    std::vector<Touch> touches;
    IntervalMap<bool> written;
    const auto add = [&](uint32_t core, GmCore::Kind kind, const IntervalMap<GmTouch>& map) {
        for (const auto& [begin, interval] : map.Intervals())
            touches.push_back({begin, interval.end, {core, interval.value.site, kind, interval.value.id, interval.value.event}});
    };
    for (uint32_t core = 0; core < epochs.size(); ++core) {
        for (const EpochLog& log : epochs[core]) {
            if (log.meeting != meeting) continue;
            add(core, GmCore::Kind::Write, log.writes);
            add(core, GmCore::Kind::Atomic, log.atomics);
        }
    }
    for (const Touch& touch : touches) written.Assign(touch.begin, touch.end, true);
    for (uint32_t core = 0; core < epochs.size() && !written.Empty(); ++core) {
        for (const EpochLog& log : epochs[core]) {
            if (log.meeting != meeting) continue;
            for (const auto& [begin, interval] : log.reads.Intervals())
                if (written.Find(begin, interval.end, [](uint64_t, uint64_t, bool) { return true; }))
                    touches.push_back({begin, interval.end,
                                       {core, interval.value.site, GmCore::Kind::Read, interval.value.id, interval.value.event}});
        }
    }
    std::sort(touches.begin(), touches.end(), [](const Touch& a, const Touch& b) {
        return std::tie(a.begin, a.side.core, a.side.kind, a.end) < std::tie(b.begin, b.side.core, b.side.kind, b.end);
    });
    return touches;
}

}  // namespace

std::vector<CoreConflict> FindCoreConflicts(const std::vector<std::vector<EpochLog>>& epochs, const std::vector<Sites>& sites,
                                            const std::vector<ForeignLog>& learnt) {
    const auto ordered = [&](const CoreConflict::Side& a, const CoreConflict::Side& b) {   // id 0: not a mixed kernel
        return a.id != 0 && (learnt[b.core].At(b.event).Knows(a.core, a.id) || learnt[a.core].At(a.event).Knows(b.core, b.id));
    };
    constexpr uint64_t kEnough = 100000;   // overlapping pairs after which counting them says nothing more
    using Line = std::pair<int, GmCore::Kind>;
    std::map<std::pair<Line, Line>, size_t> known;
    std::vector<CoreConflict> conflicts;
    uint64_t pairs = 0;
    uint32_t meetings = 0;
    for (const auto& core : epochs)
        for (const EpochLog& log : core) meetings = std::max(meetings, log.meeting + 1);
    for (uint32_t meeting = 0; meeting < meetings && pairs < kEnough; ++meeting) {
        std::vector<Touch> open;           // touches that reach past the current begin
        for (const Touch& touch : Candidates(epochs, meeting)) {
            size_t kept = 0;
            for (size_t i = 0; i < open.size(); ++i)
                if (open[i].end > touch.begin) open[kept++] = open[i];
            open.resize(kept);
            for (const Touch& earlier : open) {
                if (!Conflicts(earlier, touch) || ordered(earlier.side, touch.side) || ++pairs >= kEnough) continue;
                const auto line = [&](const Touch& t) { return Line(sites[t.side.core][t.side.site].where.line, t.side.kind); };
                const auto [it, isNew] = known.try_emplace(std::minmax(line(earlier), line(touch)), conflicts.size());
                if (isNew) conflicts.push_back({earlier.side, touch.side, touch.begin, std::min(earlier.end, touch.end), 0});
                ++conflicts[it->second].times;
            }
            open.push_back(touch);
        }
    }
    return conflicts;
}

}  // namespace sim
