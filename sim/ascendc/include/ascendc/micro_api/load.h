// UB -> register (facts 6.4). LoadAlign and its older name DataCopy.
#pragma once

#include "ascendc/micro_api/distribution.h"

namespace AscendC::Reg {

namespace regimpl {

template <uint32_t lanes, Spread::Rule rule, uint32_t laneBytes, uint32_t divisor, typename Lane, typename Element>
REG_LOOP void SpreadLanes(Lane* dst, const Element* source, uint32_t r) {
    constexpr Spread spread{rule, sizeof(Element), laneBytes, 0, 0, 1, divisor};
    for (uint32_t i = 0; i < lanes; ++i) dst[i] = source[spread.Index(r, i)];
}

// Lanes of register r out of the bytes that a load has read.
template <typename S, typename U>
REG_INLINE inline void TakeLanes(U& dst, const uint8_t* data, const sim::SourceTaint& taint, S spreadOf, uint32_t r) {
    constexpr Spread spread = spreadOf();
    using Lane = Uint<spread.laneBytes>;
    using Element = Uint<spread.elementBytes>;
    constexpr uint32_t lanes = VECTOR_REG_WIDTH / spread.laneBytes;
    if constexpr (spread.rule == Spread::Straight && spread.laneBytes == spread.elementBytes)
        std::memcpy(dst.lane, data, VECTOR_REG_WIDTH);
    else
        SpreadLanes<lanes, spread.rule, spread.laneBytes, spread.divisor>(reinterpret_cast<Lane*>(dst.lane),
                                                                          reinterpret_cast<const Element*>(data), r);
    dst.taint = Taint{};
    if (__builtin_expect(taint.origin != 0, 0)) {
        dst.taint.origin = taint.origin;
        for (uint32_t i = 0; i < lanes; ++i) {
            const uint32_t element = spread.Index(r, i) * spread.elementBytes;
            for (uint32_t b = 0; b < spread.elementBytes; ++b)   // zero-extension is never tainted
                if (taint.Has(element + b)) {
                    const uint32_t bit = i * spread.laneBytes + b;
                    dst.taint.word[bit / 64] |= 1ull << (bit % 64);
                }
        }
    }
}

template <typename Named, LoadDist dist, typename T, typename U>
REG_INLINE inline void CheckLoadTypes() {
    static_assert(kPoints<Named, T>, "LoadAlign: T is not the type the pointer points to");
    static_assert(sizeof(T) == sizeof(typename U::ActualT), "LoadAlign: pointer and register have types of different width");
    static_assert(ElementBytes(dist) == 0 || ElementBytes(dist) == sizeof(T), "LoadAlign: LoadDist is for another width");
}

template <typename Named, LoadDist dist, typename T, typename U>
REG_INLINE inline void LoadOne(U& dst, const T* p, const char* api, Location where) {
    CheckLoadTypes<Named, dist, T, U>();
    constexpr Spread spread = LoadSpread<dist, sizeof(T)>();
    static_assert(spread.registers == 1, "LoadAlign: this LoadDist fills two registers");
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend({1, 0, spread.bytes > 256 ? 2 : 1, 0});
    sim::SourceTaint taint;
    if constexpr (U::kBytes == VECTOR_REG_WIDTH) {
        const uint8_t* data = function.Read(p, spread.bytes, spread.alignment, api, where, taint);
        TakeLanes(dst, data, taint, [] { return LoadSpread<dist, sizeof(T)>(); }, 0);
    } else {   // a pair of registers: 64 lanes of 64 bits
        static_assert(dist == LoadDist::DIST_NORM, "LoadAlign: a register pair is loaded with DIST_NORM");
        std::memcpy(dst.lane, function.Read(p, U::kBytes, 32, api, where, taint), U::kBytes);
        dst.taint = Taint{};
        if (taint.origin != 0) {
            dst.taint.origin = taint.origin;
            for (uint32_t bit = 0; bit < 256; ++bit)
                if (taint.Has(2 * bit) || taint.Has(2 * bit + 1)) dst.taint.word[bit / 64] |= 1ull << (bit % 64);
        }
    }
}

template <typename Named, LoadDist dist, typename T, typename U>
REG_INLINE inline void LoadTwo(U& dst0, U& dst1, const T* p, const char* api, Location where) {
    CheckLoadTypes<Named, dist, T, U>();
    constexpr Spread spread = LoadSpread<dist, sizeof(T)>();
    static_assert(spread.registers == 2, "LoadAlign: this LoadDist fills one register");
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend({2, 0, 2, 0});
    sim::SourceTaint taint;
    const uint8_t* data = function.Read(p, spread.bytes, spread.alignment, api, where, taint);
    TakeLanes(dst0, data, taint, [] { return LoadSpread<dist, sizeof(T)>(); }, 0);
    TakeLanes(dst1, data, taint, [] { return LoadSpread<dist, sizeof(T)>(); }, 1);
}

// Eight blocks of 32 bytes, `stride` blocks apart.
template <typename T, typename U>
inline void LoadBlocks(U& dst, const T* p, uint32_t stride, const MaskReg& mask, const char* api, Location where) {
    static_assert(sizeof(T) == sizeof(typename U::ActualT), "LoadAlign: pointer and register have types of different width");
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend({2, 0, 2, 0});
    ReadBlocks(dst, mask, function, api, where,
               [&](uint32_t block) { return reinterpret_cast<const uint8_t*>(p) + block * stride * 32; });
}

}  // namespace regimpl

// One name of the family; the older spelling has the same forms.
#define REG_LOAD(Name)                                                                                                     \
    template <typename T = DefaultType, LoadDist dist = LoadDist::DIST_NORM, typename U, typename P,                       \
              typename = IfRegisters<U>>                                                                                   \
    REG_INLINE inline void Name(U& dst, P* p, sim::Location where = sim::Location::Here()) {                               \
        regimpl::LoadOne<T, dist>(dst, p, #Name, where);                                                                    \
    }                                                                                                                      \
    template <typename T = DefaultType, LoadDist dist = LoadDist::DIST_NORM, typename U, typename P,                       \
              typename = IfRegisters<U>>                                                                                   \
    REG_INLINE inline void Name(U& dst, P* p, AddrReg offset, sim::Location where = sim::Location::Here()) {               \
        regimpl::LoadOne<T, dist>(dst, p + offset.elements, #Name, where);                                                  \
    }                                                                                                                      \
    template <typename T, PostLiteral post, LoadDist dist = LoadDist::DIST_NORM, typename U, typename P,                   \
              typename = IfRegisters<U>>                                                                                   \
    REG_INLINE inline void Name(U& dst, P*& p, int32_t stride, sim::Location where = sim::Location::Here()) {              \
        regimpl::LoadOne<T, dist>(dst, post == PostLiteral::POST_MODE_UPDATE ? p : p + stride, #Name, where);               \
        if (post == PostLiteral::POST_MODE_UPDATE) p += stride;                                                            \
    }                                                                                                                      \
    template <typename T, LoadDist dist, typename U, typename P, typename = IfRegisters<U>>                                \
    REG_INLINE inline void Name(U& dst0, U& dst1, P* p, sim::Location where = sim::Location::Here()) {                     \
        regimpl::LoadTwo<T, dist>(dst0, dst1, p, #Name, where);                                                             \
    }                                                                                                                      \
    template <typename T, LoadDist dist, typename U, typename P, typename = IfRegisters<U>>                                \
    REG_INLINE inline void Name(U& dst0, U& dst1, P* p, AddrReg offset, sim::Location where = sim::Location::Here()) {     \
        regimpl::LoadTwo<T, dist>(dst0, dst1, p + offset.elements, #Name, where);                                           \
    }                                                                                                                      \
    template <typename T, PostLiteral post, LoadDist dist, typename U, typename P, typename = IfRegisters<U>>              \
    REG_INLINE inline void Name(U& dst0, U& dst1, P*& p, int32_t stride, sim::Location where = sim::Location::Here()) {    \
        regimpl::LoadTwo<T, dist>(dst0, dst1, post == PostLiteral::POST_MODE_UPDATE ? p : p + stride, #Name, where);        \
        if (post == PostLiteral::POST_MODE_UPDATE) p += stride;                                                            \
    }                                                                                                                      \
    template <typename T, DataCopyMode mode, typename U, typename P, typename = IfRegisters<U>>                            \
    inline void Name(U& dst, P* p, uint32_t blockStride, MaskReg& mask, sim::Location where = sim::Location::Here()) {     \
        regimpl::LoadBlocks(dst, p, blockStride, mask, #Name, where);                                                       \
    }                                                                                                                      \
    template <typename T, DataCopyMode mode, PostLiteral post, typename U, typename P, typename = IfRegisters<U>>          \
    inline void Name(U& dst, P*& p, uint32_t blockStride, uint32_t repeatStride, MaskReg& mask,                            \
                     sim::Location where = sim::Location::Here()) {                                                        \
        regimpl::LoadBlocks(dst, p, blockStride, mask, #Name, where);                                                       \
        if (post == PostLiteral::POST_MODE_UPDATE) p += repeatStride * 32 / sizeof(P);                                     \
    }
REG_LOAD(LoadAlign)
REG_LOAD(DataCopy)
#undef REG_LOAD

// Offset of a load or store inside up to four loops, in elements.
template <typename T>
inline AddrReg CreateAddrReg(uint32_t index0, uint32_t stride0, uint32_t index1 = 0, uint32_t stride1 = 0,
                             uint32_t index2 = 0, uint32_t stride2 = 0, uint32_t index3 = 0, uint32_t stride3 = 0) {
    return {index0 * stride0 + index1 * stride1 + index2 * stride2 + index3 * stride3};
}

}  // namespace AscendC::Reg
