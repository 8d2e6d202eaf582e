// Operands of vector instructions: element types, strides, and the bytes a strided, masked access touches.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "ascendc/local_tensor.h"
#include "ascendc/types.h"
#include "sim/core/core.h"

namespace sim::vec {

using AscendC::LocalTensor;
using sim::Bits;

inline constexpr uint32_t kBlockBytes = 32;
inline constexpr uint32_t kRepeatBytes = 256;
inline constexpr uint32_t kBlocksPerRepeat = 8;

// --- element types -----------------------------------------------------------------------------------------------
using Types = uint32_t;  // set of element types
inline constexpr Types kI8 = 1, kU8 = 2, kI16 = 4, kU16 = 8, kI32 = 16, kU32 = 32, kI64 = 64, kU64 = 128, kHalf = 256,
                       kBf16 = 512, kFloat = 1024;
inline constexpr Types kInts = 255, kAllTypes = 2047;

template <typename T>
constexpr Types TypeOf() {
    if constexpr (std::is_same_v<T, half>) return kHalf;
    else if constexpr (std::is_same_v<T, bfloat16_t>) return kBf16;
    else if constexpr (std::is_same_v<T, float>) return kFloat;
    else if constexpr (std::is_integral_v<T>) return (std::is_signed_v<T> ? 1u : 2u) << (2 * __builtin_ctz(sizeof(T)));
    else return 0;
}

// Messages: out of line and printf-style, since every kernel compiles them.
__attribute__((format(printf, 1, 2), noinline, cold)) inline std::string Text(const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

__attribute__((noinline, cold)) inline std::string TypeNames(Types types) {
    static constexpr const char* kNames[] = {"int8_t",  "uint8_t",  "int16_t", "uint16_t",   "int32_t", "uint32_t",
                                             "int64_t", "uint64_t", "half",    "bfloat16_t", "float"};
    std::string text;
    for (uint32_t i = 0; i < std::size(kNames); ++i)
        if (types >> i & 1) (text += text.empty() ? "" : ", ") += kNames[i];
    return text;
}

#if __NPU_ARCH__ == 3510
inline constexpr bool kRegbase = true;
inline constexpr const char* kArchName = "arch 3510";
#else
inline constexpr bool kRegbase = false;
inline constexpr const char* kArchName = "arch 2201";
#endif

// Lanes are computed in float for the 16-bit float types and in the type itself otherwise. One add, subtract, multiply,
// divide or square root in float, rounded once more to half or bfloat16, equals the correctly rounded 16-bit result
// (24 >= 2 * 11 + 2 significand bits); other functions may differ from it at near-ties.
#define SIM_INLINE __attribute__((always_inline))
#if defined(__clang__)
#define SIM_LOOP
#define SIM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
// The kernel is built with -O2, whose cost model leaves loops of unknown length scalar. errno and FP exception flags do
// not exist on the device.
#define SIM_LOOP __attribute__((optimize("O3", "no-math-errno", "no-trapping-math")))
#define SIM_INDEPENDENT _Pragma("GCC ivdep")
#endif

template <typename T>
SIM_INLINE inline auto Widen(T value) {
    if constexpr (std::is_same_v<T, half>) return FloatOfHalf(Bits<uint16_t>(value));
    else if constexpr (std::is_same_v<T, bfloat16_t>) return FloatOfBfloat16(Bits<uint16_t>(value));
    else return value;
}
template <typename T, typename V>
SIM_INLINE inline T Narrow(V value) {
    if constexpr (std::is_same_v<T, V>) return value;
    else if constexpr (std::is_same_v<T, half>) return Bits<half>(HalfOfFloat(static_cast<float>(value)));
    else if constexpr (std::is_same_v<T, bfloat16_t>) return Bits<bfloat16_t>(Bfloat16OfFloat(static_cast<float>(value)));
    else return static_cast<T>(value);
}

// Loops read and write 16-bit floats as integers; may_alias, because other code uses their own types.
typedef uint16_t __attribute__((may_alias)) Word16;
template <typename T> struct StoredAs { typedef T Type; };
template <> struct StoredAs<half> { typedef Word16 Type; };
template <> struct StoredAs<bfloat16_t> { typedef Word16 Type; };
template <typename T> using Stored = typename StoredAs<T>::Type;
template <typename T>
SIM_INLINE inline auto LoadLane(Stored<T> stored) {
    if constexpr (std::is_same_v<T, half>) return FloatOfHalf(stored);
    else if constexpr (std::is_same_v<T, bfloat16_t>) return FloatOfBfloat16(stored);
    else return stored;
}
template <typename T, typename V>
SIM_INLINE inline Stored<T> StoreLane(V value) {
    if constexpr (std::is_same_v<T, V> && (std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>)) return Bits<uint16_t>(value);
    else if constexpr (std::is_same_v<T, half>) return HalfOfFloat(static_cast<float>(value));
    else if constexpr (std::is_same_v<T, bfloat16_t>) return Bfloat16OfFloat(static_cast<float>(value));
    else return static_cast<T>(value);
}

// --- lanes and strides --------------------------------------------------------------------------------------------
// Strides of one operand, in 32-byte blocks: between the blocks of a repeat and between repeats.
struct Stride {
    int64_t block = 1;
    int64_t repeat = 8;
};

// Active lanes of a call: `repeats` repeats with the same lanes, except that the last may be shorter (counter mode).
struct Lanes {
    uint32_t perRepeat = 0;      // lanes a full repeat has
    uint32_t repeats = 0;        // 0: the call does nothing
    uint32_t active = 0;         // the first `active` lanes of each repeat, unless `irregular`
    uint32_t activeInLast = 0;
    bool contiguous = false;     // count form: strides do not exist
    bool irregular = false;      // the lanes of `bits`
    uint64_t bits[2] = {0, 0};

    uint32_t Active(uint32_t repeat) const { return repeat + 1 == repeats ? activeInLast : active; }
    uint64_t Total() const { return repeats == 0 ? 0 : uint64_t(repeats - 1) * active + activeInLast; }
    bool Has(uint32_t lane) const { return bits[lane >> 6] >> (lane & 63) & 1; }
    // Number of lanes up to and including the last active one.
    uint32_t Reach(uint32_t repeat) const {
        if (!irregular) return Active(repeat);
        return bits[1] ? 128 - __builtin_clzll(bits[1]) : 64 - __builtin_clzll(bits[0]);
    }
};

// Bytes from the start of a repeat to a lane of an operand with `size`-byte elements.
SIM_INLINE inline int64_t LaneOffset(uint32_t lane, uint32_t size, int64_t blockStride) {
    const uint32_t perBlock = kBlockBytes / size;
    return int64_t(lane / perBlock) * blockStride * kBlockBytes + int64_t(lane % perBlock) * size;
}

// --- regions ------------------------------------------------------------------------------------------------------
class RegionList {
public:
    explicit RegionList(Operand& operand) : operand_(operand) {}
    void Add(const Region& region) {
        if (region.run == 0 || region.count0 == 0 || region.count1 == 0) return;
        if (empty_) operand_.region = region;
        else operand_.more.push_back(region);
        empty_ = false;
    }
    // Lanes [first, end) of `repeats` repeats.
    void AddLanes(uint64_t start, uint32_t first, uint32_t end, uint32_t repeats, uint32_t size, Stride stride) {
        const int64_t repeatBytes = stride.repeat * kBlockBytes;
        const uint32_t count1 = repeatBytes == 0 ? 1 : repeats;
        if (stride.block == 1) {
            const uint64_t run = uint64_t(end - first) * size;
            if (first == 0 && int64_t(run) == repeatBytes) Add({start, run * count1});
            else Add({start + uint64_t(first) * size, run, 1, count1, 0, repeatBytes});
            return;
        }
        const uint32_t perBlock = kBlockBytes / size;
        const auto part = [&](uint32_t from, uint32_t to) {  // within one block
            Add({start + uint64_t(LaneOffset(from, size, stride.block)), uint64_t(to - from) * size, 1, count1, 0,
                 repeatBytes});
        };
        if (first % perBlock != 0) {
            const uint32_t stop = first / perBlock * perBlock + perBlock;
            part(first, stop < end ? stop : end);
            first = stop;
        }
        if (first >= end) return;
        const uint32_t blocks = (end - first) / perBlock;
        Add({start + uint64_t(LaneOffset(first, size, stride.block)), kBlockBytes, stride.block == 0 && blocks ? 1 : blocks,
             count1, stride.block * kBlockBytes, repeatBytes});
        if ((end - first) % perBlock != 0) part(first + blocks * perBlock, end);
    }

private:
    Operand& operand_;
    bool empty_ = true;
};

// One tensor argument without its type, so that everything but the lane loops is compiled once per kernel.
struct TensorRef {
    const char* name;       // the API's parameter name
    Memory memory;
    uint64_t address, end;  // of the tensor's first byte, of its buffer
    uint32_t size;          // bytes per element
    Stride stride;
    bool packed = false;    // one bit per lane, a repeat's bits side by side; stride.repeat is in bytes

    int64_t RepeatBytes() const { return packed ? stride.repeat : stride.repeat * kBlockBytes; }
    // Bytes from the start of a repeat to the end of its last active lane (block strides are not negative).
    int64_t SpanOf(const Lanes& lanes, uint32_t repeat) const {
        const uint32_t reach = lanes.Reach(repeat);
        if (packed) return (reach + 7) / 8;
        return reach == 0 ? 0 : LaneOffset(reach - 1, size, stride.block) + size;
    }
};
template <typename T>
TensorRef Ref(const LocalTensor<T>& tensor, const char* name, Stride stride = {}) {
    return {name, tensor.Where(), tensor.Address(), tensor.End(), uint32_t(sizeof(T)), stride};
}

// A tensor of one bit per lane; the bits of a repeat lie `bytesPerRepeat` behind those of the one before (0: all use the same).
inline TensorRef Packed(TensorRef bits, uint32_t bytesPerRepeat) {
    bits.size = 1;
    bits.stride = {1, int64_t(bytesPerRepeat)};
    bits.packed = true;
    return bits;
}

// Adds the operand to the instruction and returns it, for its regions and alignment.
inline Operand& AddOperand(Instruction& instruction, const TensorRef& tensor, Access access, const Region& region = {}) {
    instruction.operands.push_back({tensor.name, access, tensor.memory, kBlockBytes, tensor.address, tensor.end, region, {}});
    return instruction.operands.back();
}

inline void AddLanesOperand(Instruction& instruction, const TensorRef& tensor, Access access, const Lanes& lanes) {
    if (lanes.repeats == 0) return;
    Operand& operand = AddOperand(instruction, tensor, access);
    // The tensor has to start on a block; the first lane of a bit mask may lie inside one.
    if (lanes.irregular && tensor.address % kBlockBytes == 0) operand.alignment = static_cast<uint16_t>(tensor.size);
    RegionList regions(operand);
    const uint64_t start = tensor.address;
    if (lanes.contiguous) {
        regions.Add({start, lanes.Total() * tensor.size});
    } else if (!lanes.irregular) {
        const bool shorter = lanes.activeInLast != lanes.active;
        regions.AddLanes(start, 0, lanes.active, lanes.repeats - shorter, tensor.size, tensor.stride);
        if (shorter)
            regions.AddLanes(start + uint64_t((lanes.repeats - 1) * tensor.RepeatBytes()), 0, lanes.activeInLast, 1,
                             tensor.size, tensor.stride);
    } else {
        for (uint32_t lane = 0; lane < lanes.perRepeat;) {
            uint32_t end = lane;
            while (end < lanes.perRepeat && lanes.Has(end)) ++end;
            if (end > lane) regions.AddLanes(start, lane, end, lanes.repeats, tensor.size, tensor.stride);
            lane = end + 1;
        }
    }
}

}  // namespace sim::vec
