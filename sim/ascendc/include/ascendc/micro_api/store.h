// Register -> UB (facts 6.4). StoreAlign and its older name DataCopy.
#pragma once

#include "ascendc/micro_api/distribution.h"
#include "ascendc/micro_api/mask.h"

namespace AscendC::Reg {

namespace regimpl {

template <uint32_t lanes, typename Element, typename Lane>
REG_LOOP void LowParts(Element* dst, const Lane* lane) {
    for (uint32_t i = 0; i < lanes; ++i) dst[i] = Element(lane[i]);
}

// Bytes of UB that the active lanes of all `registers` go to.
inline void ElementBits(const Spread& spread, const MaskReg& mask, uint32_t registers, uint64_t* bits) {
    const uint32_t lanes = spread.rule == Spread::First ? 1 : VECTOR_REG_WIDTH / spread.laneBytes;
    if (spread.rule == Spread::Straight) {
        const int32_t prefix = spread.laneBytes == 1   ? PrefixLanes<1>(mask)
                               : spread.laneBytes == 2 ? PrefixLanes<2>(mask)
                               : spread.laneBytes == 4 ? PrefixLanes<4>(mask)
                                                       : PrefixLanes<8>(mask);
        if (prefix >= 0) {
            uint32_t left = uint32_t(prefix) * spread.elementBytes;
            for (; left >= 64; left -= 64) *bits++ = ~0ull;
            if (left != 0) *bits = (1ull << left) - 1;
            return;
        }
    }
    for (uint32_t i = 0; i < lanes; ++i) {
        if (!mask.Bit(i * spread.laneBytes)) continue;
        for (uint32_t r = 0; r < registers; ++r) {
            const uint32_t first = spread.Index(r, i) * spread.elementBytes;
            for (uint32_t byte = first; byte < first + spread.elementBytes; ++byte) bits[byte / 64] |= 1ull << (byte % 64);
        }
    }
}

template <StoreDist dist, uint32_t size>
inline void PutLanes(uint8_t* out, const uint8_t* lanesOf, const MaskReg& mask, uint32_t r) {
    constexpr Spread spread = StoreSpread<dist, size>();
    using Lane = Uint<spread.laneBytes>;
    using Element = Uint<spread.elementBytes>;
    constexpr uint32_t lanes = VECTOR_REG_WIDTH / spread.laneBytes;
    const Lane* lane = reinterpret_cast<const Lane*>(lanesOf);
    if constexpr (spread.rule == Spread::First) {
        std::memcpy(out, lane, sizeof(Element));
    } else {
        if constexpr (spread.rule == Spread::Straight) {
            const int32_t prefix = PrefixLanes<spread.laneBytes>(mask);
            if (prefix >= 0) {
                if constexpr (sizeof(Lane) == sizeof(Element)) {
                    std::memcpy(out, lane, uint32_t(prefix) * sizeof(Element));
                } else {
                    alignas(64) Element packed[lanes];
                    LowParts<lanes>(packed, lane);
                    std::memcpy(out, packed, uint32_t(prefix) * sizeof(Element));
                }
                return;
            }
        }
        for (uint32_t i = 0; i < lanes; ++i) {
            if (!mask.Bit(i * spread.laneBytes)) continue;
            const Element element = Element(lane[i]);
            std::memcpy(out + spread.Index(r, i) * sizeof(Element), &element, sizeof element);
        }
    }
}

template <typename Named, StoreDist dist, typename T, typename U>
REG_INLINE inline void CheckStoreTypes() {
    static_assert(kPoints<Named, T>, "StoreAlign: T is not the type the pointer points to");
    static_assert(sizeof(T) == sizeof(typename U::ActualT) || dist == StoreDist::DIST_PACK_B16 ||
                  dist == StoreDist::DIST_PACK_B32 || dist == StoreDist::DIST_PACK_B64 || dist == StoreDist::DIST_PACK4_B32,
                  "StoreAlign: pointer and register have types of different width");
    static_assert(ElementBytes(dist) == 0 || ElementBytes(dist) == sizeof(T), "StoreAlign: StoreDist is for another width");
}

template <typename Named, StoreDist dist, typename T, typename... U>
REG_INLINE inline void StoreRegisters(T* p, const MaskReg& given, const char* api, Location where, const U&... src) {
    (CheckStoreTypes<Named, dist, T, U>(), ...);
    constexpr Spread spread = StoreSpread<dist, sizeof(T)>();
    static_assert(spread.registers == sizeof...(U), "StoreAlign: this StoreDist takes another number of registers");
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend({2, 0, 0, spread.registers});
    const MaskReg mask = spread.rule == Spread::First ? FirstLanes<spread.laneBytes>(1) : given;
    if constexpr ((U::kBytes + ...) > spread.registers * VECTOR_REG_WIDTH) {   // a pair of registers: 64 lanes of 64 bits
        static_assert(dist == StoreDist::DIST_NORM, "StoreAlign: a register pair is stored with DIST_NORM");
        (CheckUse<U::kMaskStep>(function, api, "src", src.taint, mask, where), ...);
        const Spread wide{Spread::Straight, 8, 4, 512, 32};
        uint8_t* out = function.Write(p, 512, 32, api, where, [&](uint64_t* bits) { ElementBits(wide, mask, 1, bits); });
        for (uint32_t i = 0; i < 64; ++i)
            if (mask.Bit(i * 4)) (std::memcpy(out + i * 8, &src.lane[i], 8), ...);
    } else {
        (CheckUse<spread.laneBytes>(function, api, "src", src.taint, mask, where), ...);
        uint8_t* out = function.Write(p, spread.bytes, spread.alignment, api, where,
                                      [&](uint64_t* bits) { ElementBits(spread, mask, spread.registers, bits); });
        uint32_t r = 0;
        (PutLanes<dist, sizeof(T)>(out, reinterpret_cast<const uint8_t*>(src.lane), mask, r++), ...);
    }
}

template <typename T, typename U>
inline void StoreBlocks(T* p, const U& src, uint32_t stride, const MaskReg& mask, const char* api, Location where) {
    static_assert(sizeof(T) == sizeof(typename U::ActualT), "StoreAlign: pointer and register have types of different width");
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend({4, 0, 0, 2});
    CheckUse<U::kMaskStep>(function, api, "src", src.taint, mask, where);
    const MaskReg bytes = WholeLanes<U::kMaskStep>(mask);
    for (uint32_t block = 0; block < 8; ++block) {
        const uint32_t active = uint32_t(bytes.word[block / 2] >> (block % 2 * 32));
        if (active == 0) continue;
        uint8_t* out = function.Write(reinterpret_cast<uint8_t*>(p) + block * stride * 32, 32, 32, api, where,
                                      [&](uint64_t* bits) { bits[0] = active; });
        for (uint32_t i = 0; i < 32; ++i)
            if (active >> i & 1) out[i] = reinterpret_cast<const uint8_t*>(src.lane)[block * 32 + i];
    }
}

}  // namespace regimpl

#define REG_STORE(Name)                                                                                                    \
    template <typename T = DefaultType, StoreDist dist = StoreDist::DIST_NORM, typename U, typename P,                     \
              typename = IfRegisters<U>>                                                                                   \
    REG_INLINE inline void Name(P* p, U& src, MaskReg& mask, sim::Location where = sim::Location::Here()) {                \
        regimpl::StoreRegisters<T, dist>(p, mask, #Name, where, src);                                                       \
    }                                                                                                                      \
    template <typename T = DefaultType, StoreDist dist = StoreDist::DIST_NORM, typename U, typename P,                     \
              typename = IfRegisters<U>>                                                                                   \
    REG_INLINE inline void Name(P* p, U& src, AddrReg offset, MaskReg& mask,                                               \
                                sim::Location where = sim::Location::Here()) {                                             \
        regimpl::StoreRegisters<T, dist>(p + offset.elements, mask, #Name, where, src);                                     \
    }                                                                                                                      \
    template <typename T, PostLiteral post, StoreDist dist = StoreDist::DIST_NORM, typename U, typename P,                 \
              typename = IfRegisters<U>>                                                                                   \
    REG_INLINE inline void Name(P*& p, U& src, int32_t stride, MaskReg& mask,                                              \
                                sim::Location where = sim::Location::Here()) {                                             \
        regimpl::StoreRegisters<T, dist>(post == PostLiteral::POST_MODE_UPDATE ? p : p + stride, mask, #Name, where, src);  \
        if (post == PostLiteral::POST_MODE_UPDATE) p += stride;                                                            \
    }                                                                                                                      \
    template <typename T, StoreDist dist, typename U, typename P, typename = IfRegisters<U>>                               \
    REG_INLINE inline void Name(P* p, U& src0, U& src1, MaskReg& mask, sim::Location where = sim::Location::Here()) {      \
        regimpl::StoreRegisters<T, dist>(p, mask, #Name, where, src0, src1);                                                \
    }                                                                                                                      \
    template <typename T, StoreDist dist, typename U, typename P, typename = IfRegisters<U>>                               \
    REG_INLINE inline void Name(P* p, U& src0, U& src1, AddrReg offset, MaskReg& mask,                                     \
                                sim::Location where = sim::Location::Here()) {                                             \
        regimpl::StoreRegisters<T, dist>(p + offset.elements, mask, #Name, where, src0, src1);                              \
    }                                                                                                                      \
    template <typename T, DataCopyMode mode, typename U, typename P, typename = IfRegisters<U>>                            \
    inline void Name(P* p, U& src, uint32_t blockStride, MaskReg& mask, sim::Location where = sim::Location::Here()) {     \
        regimpl::StoreBlocks(p, src, blockStride, mask, #Name, where);                                                      \
    }                                                                                                                      \
    template <typename T, DataCopyMode mode, PostLiteral post, typename U, typename P, typename = IfRegisters<U>>          \
    inline void Name(P*& p, U& src, uint32_t blockStride, uint32_t repeatStride, MaskReg& mask,                            \
                     sim::Location where = sim::Location::Here()) {                                                        \
        regimpl::StoreBlocks(p, src, blockStride, mask, #Name, where);                                                      \
        if (post == PostLiteral::POST_MODE_UPDATE) p += repeatStride * 32 / sizeof(P);                                     \
    }
REG_STORE(StoreAlign)
REG_STORE(DataCopy)
#undef REG_STORE

}  // namespace AscendC::Reg
