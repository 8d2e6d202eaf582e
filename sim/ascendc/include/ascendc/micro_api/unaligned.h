// Unaligned loads and stores through a 32-byte staging register, and masks in UB (facts 6.4).
#pragma once

#include "ascendc/micro_api/load.h"
#include "ascendc/micro_api/store.h"

namespace AscendC::Reg {

namespace regimpl {

inline const void* BlockOf(const VectorFunction& function, const void* p) {
    return static_cast<const uint8_t*>(p) - function.AddressOf(p) % 32;
}

template <typename T, typename U>
inline void LoadAnywhere(U& dst, const T* p, const char* api, Location where) {
    static_assert(sizeof(T) == sizeof(typename U::ActualT) && U::kBytes == VECTOR_REG_WIDTH,
                  "LoadUnAlign: pointer and register have types of different width");
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend({1, 0, 1, 0});
    sim::SourceTaint taint;
    const uint8_t* data = function.Read(p, VECTOR_REG_WIDTH, sizeof(T), api, where, taint);
    TakeLanes(dst, data, taint, [] { return LoadSpread<LoadDist::DIST_NORM, sizeof(T)>(); }, 0);
}

template <typename T, typename U>
inline void LoadStaged(U& dst, UnalignRegForLoad& staging, const T* p, const char* api, Location where) {
    VectorFunction& function = sim::InVectorFunction(api, where);
    if (staging.block != BlockOf(function, p))
        function.Fail(sim::Rule::Argument, api, "ureg",
                      "the staging register does not hold the 32-byte block this load starts in: LoadUnAlignPre first", where);
    LoadAnywhere(dst, p, api, where);
    staging.block = BlockOf(function, p + U::kLanes);
}

inline void WriteRun(VectorFunction& function, uint8_t* p, const uint8_t* data, uint32_t bytes, const char* api, Location where) {
    const uint8_t* from = data;
    while (bytes > 0) {
        const uint32_t piece = bytes < 256 ? bytes : 256;
        uint8_t* out = function.Write(p, piece, 1, api, where, [piece](uint64_t* bits) {
            for (uint32_t i = 0; i < piece; ++i) bits[i / 64] |= 1ull << (i % 64);
        });
        std::memcpy(out, from, piece);
        p += piece, from += piece, bytes -= piece;
    }
}

// Appends `count` elements; full 32-byte blocks of UB are written, the rest waits in the staging register.
template <typename T, typename U>
inline void StoreStaged(T* p, const U& src, UnalignRegForStore& staging, uint32_t count, const char* api, Location where) {
    static_assert(sizeof(T) == sizeof(typename U::ActualT) && U::kBytes == VECTOR_REG_WIDTH,
                  "StoreUnAlign: pointer and register have types of different width");
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend({2, 0, 0, 1});
    if (count > U::kLanes)
        function.Fail(sim::Rule::Argument, api, "stride", "a register does not have that many elements", where);
    uint8_t* start = reinterpret_cast<uint8_t*>(p);
    if (staging.count != 0 && staging.next != start)
        function.Fail(sim::Rule::Argument, api, "ureg",
                      "the staging register holds bytes for another address: StoreUnAlignPost first", where);
    CheckUse<U::kMaskStep>(function, api, "src", src.taint, FirstLanes<U::kMaskStep>(count), where);
    uint8_t bytes[VECTOR_REG_WIDTH + 32];
    const uint32_t held = staging.count, total = held + count * uint32_t(sizeof(T));
    std::memcpy(bytes, staging.pending, held);
    std::memcpy(bytes + held, src.lane, count * sizeof(T));
    uint8_t* begin = start - held;
    const uint32_t tail = uint32_t((function.AddressOf(begin) + total) % 32);
    const uint32_t keep = tail < total ? tail : total;
    WriteRun(function, begin, bytes, total - keep, api, where);
    std::memcpy(staging.pending, bytes + total - keep, keep);
    staging.count = keep;
    staging.next = begin + total;
}

inline void FlushStaged(UnalignRegForStore& staging, const char* api, Location where) {
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend({2, 0, 0, 1});
    WriteRun(function, staging.next - staging.count, staging.pending, staging.count, api, where);
    staging.count = 0;
}

}  // namespace regimpl

#define REG_UNALIGNED(LoadPre, Load, Store, StorePost)                                                                     \
    template <typename T = DefaultType, typename P>                                                                        \
    inline void LoadPre(UnalignRegForLoad& ureg, P* p, sim::Location where = sim::Location::Here()) {                      \
        sim::VectorFunction& function = sim::InVectorFunction(#LoadPre, where);                                            \
        function.Spend({1, 0, 1, 0});                                                                                      \
        ureg.block = regimpl::BlockOf(function, p);                                                                         \
    }                                                                                                                      \
    template <typename T = DefaultType, PostLiteral post = PostLiteral::POST_MODE_UPDATE, typename U, typename P,          \
              typename = IfRegisters<U>>                                                                                   \
    inline void Load(U& dst, UnalignRegForLoad& ureg, P*& p, uint32_t stride, sim::Location where = sim::Location::Here()) { \
        regimpl::LoadStaged(dst, ureg, p, #Load, where);                                                                    \
        if (post == PostLiteral::POST_MODE_UPDATE) p += stride;                                                            \
    }                                                                                                                      \
    template <typename T = DefaultType, typename U, typename P, typename = IfRegisters<U>>                                 \
    inline void Load(U& dst, UnalignRegForLoad& ureg, P* p, sim::Location where = sim::Location::Here()) {                 \
        regimpl::LoadStaged(dst, ureg, p, #Load, where);                                                                    \
    }                                                                                                                      \
    template <typename T = DefaultType, PostLiteral post = PostLiteral::POST_MODE_UPDATE, typename U, typename P,          \
              typename = IfRegisters<U>>                                                                                   \
    inline void Store(P*& p, U& src, UnalignRegForStore& ureg, uint32_t stride, sim::Location where = sim::Location::Here()) { \
        regimpl::StoreStaged(p, src, ureg, stride, #Store, where);                                                          \
        if (post == PostLiteral::POST_MODE_UPDATE) p += stride;                                                            \
    }                                                                                                                      \
    /* As many elements as the last Squeeze counted, behind those stored so far (AR). */                                   \
    template <typename T = DefaultType, typename U, typename P, typename = IfRegisters<U>>                                 \
    inline void Store(P* p, U& src, UnalignRegForStore& ureg, sim::Location where = sim::Location::Here()) {               \
        sim::VectorFunction& function = sim::InVectorFunction(#Store, where);                                              \
        regimpl::StoreStaged(p + function.addressRegister / sizeof(P), src, ureg, function.storedLanes, #Store, where);     \
        function.addressRegister += function.storedLanes * sizeof(P);                                                      \
    }                                                                                                                      \
    template <typename T = DefaultType, PostLiteral post = PostLiteral::POST_MODE_UPDATE, typename P>                      \
    inline void StorePost(P*& p, UnalignRegForStore& ureg, int32_t stride, sim::Location where = sim::Location::Here()) {  \
        regimpl::FlushStaged(ureg, #StorePost, where);                                                                      \
        if (post == PostLiteral::POST_MODE_UPDATE) p += stride;                                                            \
    }                                                                                                                      \
    template <typename T = DefaultType, typename P>                                                                        \
    inline void StorePost(P* p, UnalignRegForStore& ureg, sim::Location where = sim::Location::Here()) {                   \
        regimpl::FlushStaged(ureg, #StorePost, where);                                                                      \
    }
REG_UNALIGNED(LoadUnAlignPre, LoadUnAlign, StoreUnAlign, StoreUnAlignPost)
REG_UNALIGNED(DataCopyUnAlignPre, DataCopyUnAlign, DataCopyUnAlign, DataCopyUnAlignPost)
#undef REG_UNALIGNED

// Any element address, without a staging register of the caller's.
template <typename T = DefaultType, typename U, typename P, typename = IfRegisters<U>>
inline void Load(U& dst, P* p, sim::Location where = sim::Location::Here()) {
    sim::InVectorFunction("Load", where).Spend({1, 0, 1, 0});
    regimpl::LoadAnywhere(dst, p, "Load", where);
}
template <typename T = DefaultType, typename U, typename P, typename = IfRegisters<U>>
inline void Store(P* p, U& src, uint32_t count, sim::Location where = sim::Location::Here()) {
    UnalignRegForStore staging;
    regimpl::StoreStaged(p, src, staging, count, "Store", where);
    regimpl::FlushStaged(staging, "Store", where);
}
template <typename T = DefaultType, typename U, typename P, typename = IfRegisters<U>>
inline void Store(P* p, U& src, sim::Location where = sim::Location::Here()) {
    Store(p, src, U::kLanes, where);
}

// --- masks in UB --------------------------------------------------------------------------------------------------------
namespace regimpl {

// DIST_NORM: 32 bytes. DIST_US: 16, each bit twice. DIST_DS: 64, every second bit.
template <MaskDist dist>
inline void LoadMask(MaskReg& dst, const void* p, const char* api, Location where) {
    static_assert(dist != MaskDist::DIST_PACK, "LoadAlign: DIST_PACK is for stores of masks");
    constexpr uint32_t bytes = dist == MaskDist::DIST_NORM ? 32 : dist == MaskDist::DIST_US ? 16 : 64;
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend({1, 0, 1, 0});
    sim::SourceTaint taint;
    const uint8_t* data = function.Read(p, bytes, bytes < 32 ? bytes : 32, api, where, taint);
    if (taint.origin != 0) function.Use(api, "src", taint.origin, where);
    for (uint32_t i = 0; i < 256; ++i) {
        const uint32_t bit = dist == MaskDist::DIST_NORM ? i : dist == MaskDist::DIST_US ? i / 2 : 2 * i;
        dst.SetBit(i, data[bit / 8] >> (bit % 8) & 1);
    }
}
// DIST_NORM: 32 bytes. DIST_PACK: every second bit, 16 bytes.
template <MaskDist dist>
inline void StoreMask(void* p, const MaskReg& src, const char* api, Location where) {
    static_assert(dist == MaskDist::DIST_NORM || dist == MaskDist::DIST_PACK, "StoreAlign: DIST_NORM or DIST_PACK");
    constexpr uint32_t bytes = dist == MaskDist::DIST_NORM ? 32 : 16;
    VectorFunction& function = sim::InVectorFunction(api, where);
    function.Spend({2, 0, 0, 1});
    uint8_t packed[bytes] = {};
    for (uint32_t i = 0; i < bytes * 8; ++i)
        packed[i / 8] |= uint8_t(src.Bit(dist == MaskDist::DIST_NORM ? i : 2 * i) << (i % 8));
    uint8_t* out = function.Write(p, bytes, bytes, api, where, [](uint64_t* bits) { bits[0] = (1ull << bytes) - 1; });
    std::memcpy(out, packed, bytes);
}

}  // namespace regimpl

#define REG_MASK_MEMORY(LoadName, StoreName)                                                                               \
    template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename P>                                   \
    inline void LoadName(MaskReg& dst, P* p, sim::Location where = sim::Location::Here()) {                                \
        regimpl::LoadMask<dist>(dst, p, #LoadName, where);                                                                  \
    }                                                                                                                      \
    template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename P>                                   \
    inline void LoadName(MaskReg& dst, P* p, AddrReg offset, sim::Location where = sim::Location::Here()) {                \
        regimpl::LoadMask<dist>(dst, p + offset.elements, #LoadName, where);                                                \
    }                                                                                                                      \
    template <typename T, PostLiteral post, MaskDist dist = MaskDist::DIST_NORM, typename P>                               \
    inline void LoadName(MaskReg& dst, P*& p, int32_t stride, sim::Location where = sim::Location::Here()) {               \
        regimpl::LoadMask<dist>(dst, post == PostLiteral::POST_MODE_UPDATE ? p : p + stride, #LoadName, where);             \
        if (post == PostLiteral::POST_MODE_UPDATE) p += stride;                                                            \
    }                                                                                                                      \
    template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename P>                                   \
    inline void StoreName(P* p, MaskReg& src, sim::Location where = sim::Location::Here()) {                               \
        regimpl::StoreMask<dist>(p, src, #StoreName, where);                                                                \
    }                                                                                                                      \
    template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename P>                                   \
    inline void StoreName(P* p, MaskReg& src, AddrReg offset, sim::Location where = sim::Location::Here()) {               \
        regimpl::StoreMask<dist>(p + offset.elements, src, #StoreName, where);                                              \
    }                                                                                                                      \
    template <typename T, PostLiteral post, MaskDist dist = MaskDist::DIST_NORM, typename P>                               \
    inline void StoreName(P*& p, MaskReg& src, int32_t stride, sim::Location where = sim::Location::Here()) {              \
        regimpl::StoreMask<dist>(post == PostLiteral::POST_MODE_UPDATE ? p : p + stride, src, #StoreName, where);           \
        if (post == PostLiteral::POST_MODE_UPDATE) p += stride;                                                            \
    }
REG_MASK_MEMORY(LoadAlign, StoreAlign)
REG_MASK_MEMORY(DataCopy, DataCopy)
#undef REG_MASK_MEMORY

}  // namespace AscendC::Reg
