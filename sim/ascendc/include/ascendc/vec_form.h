// The forms of a vector call (count, contiguous mask, bit mask; normal and counter mode) and the checks they share.
#pragma once

#include "ascendc/operand.h"

namespace sim::vec {

// One line of the API tables: name, element types, cost class.
struct Entry {
    const char* name;
    Types membase;      // element types on arch 2201
    Types regbaseAdds;  // further ones on arch 3510
    Cost cost = Cost::VectorSimple;
    // Cycles per repeat grow with the lanes for the slow units (Exp: 32 per cycle for half and float): work is then
    // counted twice for 16-bit types.
    bool perLane = false;
    Types countAdds = 0;  // further types in the count form only

    constexpr Types InCountForm() const { return Supported() | countAdds; }
    constexpr Types Supported() const { return kRegbase ? membase | regbaseAdds : membase; }
};

struct Form {
    enum Kind : uint8_t { kCount, kMask, kBits } kind;
    bool setMask;        // false: lanes come from the mask register
    int64_t elements;    // count, or contiguous mask
    uint64_t words[2];   // bit mask
    int64_t repeats;
};
inline Form CountForm(int64_t count) { return {Form::kCount, true, count, {0, 0}, 0}; }
inline Form MaskForm(uint64_t mask, int64_t repeats, bool setMask) {
    return {Form::kMask, setMask, int64_t(mask), {0, 0}, repeats};
}
inline Form BitsForm(const uint64_t* mask, int64_t repeats, bool setMask) {
    return {Form::kBits, setMask, 0, {setMask ? mask[0] : 0, setMask ? mask[1] : 0}, repeats};
}

[[noreturn]] __attribute__((noinline, cold)) inline void FailType(const char* name, Types supported, Types got,
                                                                  Location where) {
    Core::Current().Fail(Rule::Dtype, name, "",
                         Text("%s is not supported on %s, supported are: %s", got ? TypeNames(got).c_str() : "this type",
                              kArchName, supported ? TypeNames(supported).c_str() : "none"),
                         where);
}

// T may only be used in the count form.
template <typename T>
void CheckCountOnly(const Entry& entry, const Form& form, Location where) {
    if ((entry.countAdds & TypeOf<T>()) != 0 && form.kind != Form::kCount)
        FailType(entry.name, entry.Supported(), TypeOf<T>(), where);
}

// Asked at compile time: the body need not compile for other types.
template <typename T>
constexpr bool Supports(const Entry& entry) {
    return (entry.InCountForm() & TypeOf<T>()) != 0;
}

inline void CheckField(Core& core, Rule rule, const char* name, const char* operand, const char* field, int64_t value,
                       int64_t limit, Location where) {
    if (uint64_t(value) <= uint64_t(limit)) return;
    core.Fail(rule, name, operand,
              Text("%s is %lld, the field holds 0 to %lld and the device would use %lld", field, (long long)value,
                   (long long)limit, (long long)(value & limit)),
              where);
}
inline void CheckRepeats(Core& core, const char* name, int64_t repeats, Location where) {
    CheckField(core, Rule::RepeatLimit, name, "", "repeatTime", repeats, 255, where);
}
inline void CheckStride(Core& core, const char* name, const char* operand, Stride stride, int64_t blockLimit,
                        int64_t repeatLimit, Location where) {
    CheckField(core, Rule::StrideLimit, name, operand, "block stride", stride.block, blockLimit, where);
    CheckField(core, Rule::StrideLimit, name, operand, "repeat stride", stride.repeat, repeatLimit, where);
}
inline void CheckCount(Core& core, const char* name, int64_t count, Location where) {
    if (count >= 0 && count <= INT32_MAX) return;
    core.Fail(Rule::Argument, name, "", Text("count is %lld, it must be 0 to 2147483647", (long long)count), where);
}

// Word 0 or 1 of the bit mask of the first `lanes` lanes.
inline uint64_t PrefixWord(int64_t lanes, int word) {
    lanes -= 64 * word;
    return lanes <= 0 ? 0 : lanes >= 64 ? ~0ull : (1ull << lanes) - 1;
}

// Lanes of `total` consecutive elements.
inline Lanes LanesOfCount(int64_t total, uint32_t perRepeat) {
    Lanes lanes;
    lanes.perRepeat = lanes.active = perRepeat;
    lanes.repeats = uint32_t((total + perRepeat - 1) / perRepeat);
    lanes.activeInLast = lanes.repeats == 0 ? 0 : uint32_t(total - int64_t(lanes.repeats - 1) * perRepeat);
    if (lanes.repeats == 1) lanes.active = lanes.activeInLast;
    return lanes;
}

inline Lanes LanesOfBits(Core& core, const char* name, uint64_t low, uint64_t high, int64_t repeats, uint32_t perRepeat,
                         bool fromRegister, Location where) {
    const uint64_t lowLimit = PrefixWord(perRepeat, 0);
    if (fromRegister) {  // lanes beyond the type's do not exist
        low &= lowLimit;
        if (perRepeat <= 64) high = 0;
    }
    if ((perRepeat <= 64 && high != 0) || (low & ~lowLimit) != 0)
        core.Fail(Rule::MaskLimit, name, "mask",
                  Text("the bit mask names lanes beyond the %u of a repeat; mask[1] must be 0 for 32-bit and 64-bit types",
                       perRepeat),
                  where);
    if ((low | high) == 0) core.Fail(Rule::MaskLimit, name, "mask", "both words of the bit mask are 0", where);
    Lanes lanes;
    lanes.perRepeat = perRepeat;
    lanes.repeats = uint32_t(repeats);
    const uint32_t count = uint32_t(__builtin_popcountll(low) + __builtin_popcountll(high));
    lanes.active = lanes.activeInLast = count;
    lanes.irregular = low != PrefixWord(count, 0) || high != PrefixWord(count, 1);
    lanes.bits[0] = low;
    lanes.bits[1] = high;
    return lanes;
}

// Turns the form of a call into its lanes, checks it and leaves the mask register as the device would.
// `perRepeat`: 256 bytes of the widest operand.
inline Lanes Resolve(Core& core, const char* name, const Form& form, uint32_t perRepeat, Location where) {
    if (form.kind == Form::kCount) {
        CheckCount(core, name, form.elements, where);
        // The count form runs in counter mode and restores normal mode with a full mask.
        if (!kRegbase) core.mask = {};
        Lanes lanes = LanesOfCount(form.elements, perRepeat);
        lanes.contiguous = true;
        return lanes;
    }
    CheckRepeats(core, name, form.repeats, where);
    if (perRepeat > 128)
        core.Fail(Rule::Dtype, name, "", "8-bit types are supported in the count form only", where);
    if (core.mask.counter) {  // the mask is the number of elements, repeatTime is ignored
        if (form.setMask) core.mask.count = form.kind == Form::kBits ? form.words[0] : uint64_t(form.elements);
        CheckCount(core, name, int64_t(core.mask.count), where);
        return LanesOfCount(int64_t(core.mask.count), perRepeat);
    }
    if (!form.setMask)
        return LanesOfBits(core, name, core.mask.low, core.mask.high, form.repeats, perRepeat, true, where);
    if (form.kind == Form::kBits) {
        core.mask.low = form.words[0];
        core.mask.high = form.words[1];
        return LanesOfBits(core, name, form.words[0], form.words[1], form.repeats, perRepeat, false, where);
    }
    const uint64_t mask = uint64_t(form.elements);
    if (mask > perRepeat)
        core.Fail(Rule::MaskLimit, name, "mask",
                  Text("mask is %llu, a repeat of this type has %u lanes", (unsigned long long)mask, perRepeat), where);
    core.mask.low = PrefixWord(int64_t(mask), 0);
    core.mask.high = PrefixWord(int64_t(mask), 1);
    Lanes lanes;
    lanes.perRepeat = perRepeat;
    lanes.repeats = mask == 0 ? 0 : uint32_t(form.repeats);
    lanes.active = lanes.activeInLast = uint32_t(mask);
    return lanes;
}

// --- overlap --------------------------------------------------------------------------------------------------------
// Do the active blocks of `a` in one repeat and of `b`, `distance` bytes further, touch a common byte?
inline bool RepeatsTouch(const Lanes& lanes, const TensorRef& a, uint32_t repeatA, const TensorRef& b, uint32_t repeatB,
                         int64_t distance) {
    const auto visit = [&lanes](const TensorRef& f, uint32_t repeat, auto&& fn) {
        const uint32_t perBlock = kBlockBytes / f.size, reach = lanes.Reach(repeat);
        if (f.packed) return reach != 0 && fn(0, f.SpanOf(lanes, repeat));
        for (uint32_t lane = 0; lane < reach; lane += perBlock) {
            uint32_t first = lane, end = lane + perBlock < reach ? lane + perBlock : reach;
            if (lanes.irregular) {
                while (first < end && !lanes.Has(first)) ++first;
                while (end > first && !lanes.Has(end - 1)) --end;
            }
            if (first < end && fn(LaneOffset(first, f.size, f.stride.block), int64_t(end - first) * f.size)) return true;
        }
        return false;
    };
    return visit(a, repeatA, [&](int64_t beginA, int64_t bytesA) {
        return visit(b, repeatB, [&](int64_t beginB, int64_t bytesB) {
            return beginA < distance + beginB + bytesB && distance + beginB < beginA + bytesA;
        });
    });
}

// dst and src of one repeat must be disjoint or start at the same byte with the same strides (a narrower dst may start at
// the first byte of src), and dst of a repeat must not feed a later repeat, which the hardware has already fetched.
inline void CheckOverlap(Core& core, const char* name, const Lanes& lanes, const TensorRef& dst, const TensorRef& src,
                         Location where) {
    if (lanes.repeats == 0 || dst.memory != src.memory) return;
    const uint32_t last = lanes.repeats - 1;
    const auto end = [&](const TensorRef& f) {
        const int64_t full = last == 0 ? 0 : (last - 1) * f.RepeatBytes() + f.SpanOf(lanes, 0);
        const int64_t tail = last * f.RepeatBytes() + f.SpanOf(lanes, last);
        return int64_t(f.address) + (full > tail ? full : tail);
    };
    if (end(dst) <= int64_t(src.address) || end(src) <= int64_t(dst.address)) return;

    const bool sameShape = dst.size == src.size && dst.stride.block == src.stride.block && dst.packed == src.packed;
    const bool sameRepeat = dst.RepeatBytes() == src.RepeatBytes();
    const bool elements = !dst.packed && !src.packed;
    if (dst.address == src.address && sameShape && sameRepeat && dst.RepeatBytes() >= dst.SpanOf(lanes, 0)) return;

    const int64_t apart = int64_t(src.address) - int64_t(dst.address);
    const int64_t dstBytes = dst.RepeatBytes(), srcBytes = src.RepeatBytes();
    // With equal repeat strides only the distance between repeats counts: repeat 0 stands for all.
    const uint32_t writers = sameRepeat ? 1 : lanes.repeats;
    for (uint32_t w = 0; w < writers; ++w) {
        uint32_t r = w, stop = last;
        if (srcBytes > 0) {  // readers that can reach [begin, begin + span) of the writer
            const int64_t begin = w * dstBytes - apart;
            const int64_t lowest = begin - src.SpanOf(lanes, 0) + 1, highest = begin + dst.SpanOf(lanes, w) - 1;
            if (highest < 0) continue;
            if (lowest > 0 && uint32_t((lowest + srcBytes - 1) / srcBytes) > r)
                r = uint32_t((lowest + srcBytes - 1) / srcBytes);
            if (highest / srcBytes < stop) stop = uint32_t(highest / srcBytes);
        } else if (stop > w + 1) {
            stop = w + 1;
        }
        for (; r <= stop; ++r) {
            const int64_t distance = apart + r * srcBytes - w * dstBytes;
            if (r == w && distance == 0 && (sameShape || (elements && dst.size < src.size && dst.stride.block <= src.stride.block)))
                continue;
            if (!RepeatsTouch(lanes, dst, w, src, r, distance)) continue;
            core.Fail(Rule::Overlap, name, dst.name,
                      r == w && distance == 0 ? Text("%s and %s start at the same byte with different %s", dst.name, src.name,
                                                     !elements ? "layouts: one holds a bit per lane"
                                                     : dst.size > src.size ? "element sizes: a wider dst overtakes src"
                                                                           : "strides")
                      : r == w ? Text("%s and %s partly overlap in a repeat, %s starts %lld bytes further", dst.name, src.name,
                                    distance < 0 ? dst.name : src.name, (long long)(distance < 0 ? -distance : distance))
                             : Text("%s of repeat %u overlaps %s of repeat %u, which the device reads before it is written",
                                    dst.name, w, src.name, r),
                      where);
        }
    }
}

// For instructions that read bytes of their own choice: what they write must not be among them.
inline void CheckDisjoint(Core& core, const char* name, const Operand& written, const Operand& read, Location where) {
    if (written.memory != read.memory) return;
    const auto visit = [](const Operand& operand, auto&& fn) {
        operand.region.ForEachRun(fn);
        for (const Region& region : operand.more) region.ForEachRun(fn);
    };
    visit(written, [&](uint64_t to, uint64_t toBytes) {
        visit(read, [&](uint64_t from, uint64_t fromBytes) {
            if (to < from + fromBytes && from < to + toBytes)
                core.Fail(Rule::Overlap, name, written.name,
                          Text("%s and %s must not overlap, both hold UB byte 0x%04llX", written.name, read.name,
                               (unsigned long long)(to > from ? to : from)),
                          where);
        });
    });
}

}  // namespace sim::vec
