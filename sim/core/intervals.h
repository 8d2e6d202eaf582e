// Values on ranges of 64-bit addresses, for memories too large for a value per byte.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace sim {

template <typename Value>
class IntervalMap {
public:
    struct Interval {
        uint64_t end;
        Value value;
    };
    using Map = std::map<uint64_t, Interval>;   // by begin; disjoint; neighbours that touch have different values

    bool Empty() const { return map_.empty(); }
    size_t Size() const { return map_.size(); }
    void Clear() { map_.clear(); }
    const Map& Intervals() const { return map_; }

    void Assign(uint64_t begin, uint64_t end, Value value) {
        if (begin >= end) return;
        auto next = map_.lower_bound(begin);
        if (next != map_.begin()) {
            auto previous = std::prev(next);
            Interval& before = previous->second;
            if (before.end > begin) {
                if (before.value == value && before.end >= end) return;   // already so
                if (before.end > end) next = map_.emplace_hint(next, end, Interval{before.end, before.value});
                before.end = begin;
            }
            if (before.end == begin && before.value == value) {           // grow the one before
                begin = previous->first;
                next = map_.erase(previous);
            }
        }
        while (next != map_.end() && next->first < end) {                 // covered, or covered up to `end`
            const Interval covered = next->second;
            next = map_.erase(next);
            if (covered.end > end) next = map_.emplace_hint(next, end, covered);
        }
        if (next != map_.end() && next->first == end && next->second.value == value) {
            end = next->second.end;
            next = map_.erase(next);
        }
        map_.emplace_hint(next, begin, Interval{end, value});
    }

    // visit(begin, end, value) for the parts inside [begin, end), in order, until it returns true.
    template <typename Visit>
    bool Find(uint64_t begin, uint64_t end, Visit&& visit) const {
        auto it = map_.upper_bound(begin);
        if (it != map_.begin() && std::prev(it)->second.end > begin) --it;
        for (; it != map_.end() && it->first < end; ++it)
            if (visit(it->first < begin ? begin : it->first, it->second.end > end ? end : it->second.end, it->second.value))
                return true;
        return false;
    }

    // First address of [begin, end) that has no value, or `end`.
    uint64_t FirstGap(uint64_t begin, uint64_t end) const {
        Find(begin, end, [&](uint64_t from, uint64_t to, const Value&) {
            if (from > begin) return true;
            begin = to;
            return false;
        });
        return begin;
    }

    template <typename Drop>  // drop(value): forget the interval
    void EraseIf(Drop&& drop) {
        for (auto it = map_.begin(); it != map_.end();) it = drop(it->second.value) ? map_.erase(it) : std::next(it);
    }

private:
    Map map_;
};

}  // namespace sim
