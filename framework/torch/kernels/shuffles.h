// Rows of vectors turned into columns: n interleaved planes, and square blocks.
#pragma once

#include <utility>

#include "simd.h"

namespace custom_ops::native::KERNEL_ISA {

// Lane indices of two vectors a, b for __builtin_shufflevector: 0 .. kLanes - 1 of a, kLanes .. 2 kLanes - 1 of b.

// Of n vectors in a row, element c * n + j belongs in lane c of plane j. Vector `from` brings those it has, the others stay.
constexpr int DeinterleaveLane(int n, int j, int from, int lane) {
    const int position = lane * n + j, vector = position / kLanes;
    return vector == from ? kLanes + position % kLanes : vector == 0 && from == 1 ? position % kLanes : lane;
}
// The other way round: element i of vector `s` is lane (s * kLanes + i) / n of plane (s * kLanes + i) % n.
constexpr int InterleaveLane(int n, int s, int from, int lane) {
    const int position = s * kLanes + lane, plane = position % n;
    return plane == from ? kLanes + position / n : plane == 0 && from == 1 ? position / n : lane;
}

template <int n, int j, int from, int... lane>
static inline Float DeinterleaveStep(Float planes, Float vector, std::integer_sequence<int, lane...>) {
    return __builtin_shufflevector(planes, vector, DeinterleaveLane(n, j, from, lane)...);
}
template <int n, int j, int... from>
static inline Float DeinterleaveOne(const Float* vectors, std::integer_sequence<int, from...>) {
    Float plane = vectors[0];
    ((plane = DeinterleaveStep<n, j, from + 1>(plane, vectors[from + 1], std::make_integer_sequence<int, kLanes>())), ...);
    return plane;
}
template <int n, int... j>
static inline void DeinterleaveAll(const Float* vectors, Float* planes, std::integer_sequence<int, j...>) {
    ((planes[j] = DeinterleaveOne<n, j>(vectors, std::make_integer_sequence<int, n - 1>())), ...);
}
template <int n, int s, int from, int... lane>
static inline Float InterleaveStep(Float vector, Float plane, std::integer_sequence<int, lane...>) {
    return __builtin_shufflevector(vector, plane, InterleaveLane(n, s, from, lane)...);
}
template <int n, int s, int... from>
static inline Float InterleaveOne(const Float* planes, std::integer_sequence<int, from...>) {
    Float vector = planes[0];
    ((vector = InterleaveStep<n, s, from + 1>(vector, planes[from + 1], std::make_integer_sequence<int, kLanes>())), ...);
    return vector;
}
template <int n, int... s>
static inline void InterleaveAll(const Float* planes, Float* vectors, std::integer_sequence<int, s...>) {
    ((vectors[s] = InterleaveOne<n, s>(planes, std::make_integer_sequence<int, n - 1>())), ...);
}

// [count, n] with count <= kLanes -> n planes, zeros in the lanes from count on.
template <int n, typename T>
static inline void Deinterleave(const T* from, int64_t count, Float* planes) {
    T padded[n * kLanes];
    if (count < kLanes) {
        std::memset(static_cast<void*>(padded), 0, sizeof(padded));
        std::memcpy(static_cast<void*>(padded), from, count * n * sizeof(T));
        from = padded;
    }
    Float vectors[n];
    for (int s = 0; s < n; ++s) vectors[s] = Load(from + s * kLanes);
    DeinterleaveAll<n>(vectors, planes, std::make_integer_sequence<int, n>());
}
template <int n, typename T>
static inline void Interleave(const Float* planes, int64_t count, T* to) {
    Float vectors[n];
    InterleaveAll<n>(planes, vectors, std::make_integer_sequence<int, n>());
    T padded[n * kLanes];
    T* target = count < kLanes ? padded : to;
    for (int s = 0; s < n; ++s) Store(target + s * kLanes, vectors[s]);
    if (count < kLanes) std::memcpy(static_cast<void*>(to), padded, count * n * sizeof(T));
}

// The same for an n at run time, element by element.
template <typename T>
static inline void DeinterleaveAny(int n, const T* from, int64_t count, Float* planes) {
    for (int j = 0; j < n; ++j) {
        planes[j] = Float{};
        for (int64_t c = 0; c < count; ++c) planes[j][c] = ToFloat(from[c * n + j]);
    }
}
template <typename T>
static inline void InterleaveAny(int n, const Float* planes, int64_t count, T* to) {
    for (int j = 0; j < n; ++j) {
        T plane[kLanes];
        Store(plane, planes[j]);
        for (int64_t c = 0; c < count; ++c) to[c * n + j] = plane[c];
    }
}

// Blocks of `size` lanes off the diagonal change places between rows i and i + size.
constexpr int TransposeLane(int size, bool upper, int lane) {
    const bool second = lane & size;
    return upper ? (second ? kLanes + lane : lane + size) : (second ? kLanes + lane - size : lane);
}
template <int size, int... lane>
static inline void TransposeStep(Float* rows, std::integer_sequence<int, lane...>) {
    for (int i = 0; i < kLanes; ++i) {
        if (i & size) continue;
        const Float a = rows[i], b = rows[i + size];
        rows[i] = __builtin_shufflevector(a, b, TransposeLane(size, false, lane)...);
        rows[i + size] = __builtin_shufflevector(a, b, TransposeLane(size, true, lane)...);
    }
}
template <int size = kLanes / 2>
static inline void TransposeSquare(Float* rows) {
    TransposeStep<size>(rows, std::make_integer_sequence<int, kLanes>());
    if constexpr (size > 1) TransposeSquare<size / 2>(rows);
}

// from [channels, fromStride] -> to [tokens, toStride]
template <typename T>
static void Transpose(const T* from, int64_t fromStride, int64_t channels, int64_t tokens, T* to, int64_t toStride) {
    for (int64_t token = 0; token < tokens; token += kLanes) {
        const int64_t tokenCount = tokens - token < kLanes ? tokens - token : kLanes;
        for (int64_t channel = 0; channel < channels; channel += kLanes) {
            const int64_t channelCount = channels - channel < kLanes ? channels - channel : kLanes;
            Float rows[kLanes] = {};
            for (int64_t i = 0; i < channelCount; ++i) rows[i] = LoadFirst(from + (channel + i) * fromStride + token, tokenCount);
            TransposeSquare(rows);
            for (int64_t i = 0; i < tokenCount; ++i) StoreFirst(to + (token + i) * toStride + channel, rows[i], channelCount);
        }
    }
}

}  // namespace custom_ops::native::KERNEL_ISA
