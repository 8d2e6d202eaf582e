// Element-wise and block-wise indexed access to UB (facts 6.4).
#pragma once

#include "ascendc/micro_api/lanes.h"

namespace AscendC::Reg {

namespace regimpl {

template <typename T, typename U, typename V>
inline void GatherLanes(U& dst, const T* base, const V& index, const MaskReg& mask, const char* api, Location where) {
    static_assert(std::is_unsigned_v<typename V::ActualT>, "Gather: the index is an unsigned element number");
    static_assert(U::kLanes == V::kLanes && (sizeof(T) == sizeof(typename U::ActualT) ||
                                             (sizeof(T) == 1 && sizeof(typename U::ActualT) == 2)),
                  "Gather: index and data have the same width (8-bit data goes into 16-bit lanes)");
    constexpr uint32_t step = U::kMaskStep;
    VectorFunction& function = sim::InVectorFunction(api, where);
    RegCost cost = SlowCost<U>(sizeof(typename U::ActualT) == 2 ? 64 : 32);
    cost.slots = 2;
    function.Spend(cost);
    CheckUse<step>(function, api, "index", index.taint, mask, where);
    Uint<sizeof(typename U::ActualT)> result[U::kLanes] = {};
    Taint taint;
    for (uint32_t i = 0; i < U::kLanes; ++i) {
        if (!mask.Bit(i * step)) continue;
        sim::SourceTaint source;
        const uint8_t* data = function.Read(base + index.lane[i], sizeof(T), sizeof(T), api, where, source);
        std::memcpy(&result[i], data, sizeof(T));
        if (source.origin == 0) continue;
        taint.origin = source.origin;
        taint.word[i * step / 64] |= 1ull << (i * step % 64);
    }
    std::memcpy(dst.lane, result, sizeof result);
    dst.taint = taint.Any() ? SpreadTaint<step>(taint) : Taint{};
}

template <typename T, typename U, typename V>
inline void GatherBlocks(U& dst, const T* base, const V& index, const MaskReg& mask, const char* api, Location where) {
    static_assert(std::is_same_v<typename V::ActualT, uint32_t>, "GatherB: the index is a uint32_t byte offset per block");
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend({2, 4, 0, 0});
    if (index.taint.word[0] & 0xffffffff) function.Use(api, "index", index.taint.origin, where);   // lanes 0 .. 7
    ReadBlocks(dst, mask, function, api, where,
               [&](uint32_t block) { return reinterpret_cast<const uint8_t*>(base) + index.lane[block]; });
}

// Two lanes with one index: reported, because which of them wins is not defined.
template <typename T, typename U, typename V>
inline void ScatterLanes(T* base, const U& src, const V& index, const MaskReg& mask, const char* api, Location where) {
    static_assert(std::is_unsigned_v<typename V::ActualT>, "Scatter: the index is an unsigned element number");
    static_assert(U::kLanes == V::kLanes && sizeof(T) == sizeof(typename U::ActualT), "Scatter: index and data have the same width");
    constexpr uint32_t step = U::kMaskStep;
    VectorFunction& function = sim::InVectorFunction(api, where);
    RegCost cost = SlowCost<U>(sizeof(T) == 2 ? 64 : 32);
    cost.slots = 2;
    function.Spend(cost);
    CheckUse<step>(function, api, "index", index.taint, mask, where);
    CheckUse<step>(function, api, "src", src.taint, mask, where);
    for (uint32_t i = 0; i < U::kLanes; ++i) {
        if (!mask.Bit(i * step)) continue;
        uint8_t* out = function.Write(base + index.lane[i], sizeof(T), sizeof(T), api, where,
                                      [](uint64_t* bits) { bits[0] = (1ull << sizeof(T)) - 1; });
        std::memcpy(out, &src.lane[i], sizeof(T));
    }
}

}  // namespace regimpl

#define REG_INDEXED(Load, LoadBlock, Store)                                                                                \
    template <typename T = DefaultType, typename U, typename P, typename V, typename = IfRegisters<U, V>>                  \
    inline void Load(U& dst, P* base, V& index, MaskReg& mask, sim::Location where = sim::Location::Here()) {              \
        regimpl::GatherLanes(dst, base, index, mask, #Load, where);                                                         \
    }                                                                                                                      \
    template <typename T = DefaultType, typename U, typename P, typename V, typename = IfRegisters<U, V>>                  \
    inline void LoadBlock(U& dst, P* base, V& index, MaskReg& mask, sim::Location where = sim::Location::Here()) {         \
        regimpl::GatherBlocks(dst, base, index, mask, #LoadBlock, where);                                                   \
    }                                                                                                                      \
    template <typename T = DefaultType, typename U, typename P, typename V, typename = IfRegisters<U, V>>                  \
    inline void Store(P* base, U& src, V& index, MaskReg& mask, sim::Location where = sim::Location::Here()) {             \
        regimpl::ScatterLanes(base, src, index, mask, #Store, where);                                                       \
    }
REG_INDEXED(Gather, GatherB, Scatter)
REG_INDEXED(DataCopyGather, DataCopyGatherB, DataCopyScatter)
#undef REG_INDEXED

}  // namespace AscendC::Reg
