// DataCopy, DataCopyPad: GM -> UB on MTE2, UB -> GM on MTE3, UB -> UB on V.
#pragma once

#include "ascendc/dma.h"

namespace sim::dma {

// DataCopy: whole 32-byte blocks. A rest would silently not be copied by the device.
template <typename Dst, typename Src>
void CopyCount(const Dst& dst, const Src& src, int64_t count, Location where) {
    using T = typename Src::PrimType;
    CheckField("DataCopy", Rule::Argument, "count", count, 0, UINT32_MAX, " elements", where);
    const int64_t bytes = count * int64_t(sizeof(T));
    if (bytes % ONE_BLK_SIZE != 0)
        Core::Current().Fail(Rule::Alignment, "DataCopy", "count",
                             std::to_string(count) + " elements of " + DtypeName<T>() + " are " + std::to_string(bytes) +
                                 " bytes, not a multiple of 32: the device would not copy the last " +
                                 std::to_string(bytes % ONE_BLK_SIZE) + "; use DataCopyPad", where);
    if (bytes == 0) return;
    Blocks blocks;
    blocks.bytes = bytes;
    Issue("DataCopy", EndOf(dst, "dst"), EndOf(src, "src"), blocks, where);
}
template <typename Dst, typename Src>
void CopyStrided(const Dst& dst, const Src& src, const AscendC::DataCopyParams& p, Location where) {
    CheckField("DataCopy", Rule::RepeatLimit, "blockCount", p.blockCount, 0, 4095, "", where);
    CheckField("DataCopy", Rule::RepeatLimit, "blockLen", p.blockLen, 0, UINT16_MAX, " blocks of 32 bytes", where);
    CheckField("DataCopy", Rule::StrideLimit, "srcStride", p.srcStride, 0, UINT16_MAX, " blocks of 32 bytes", where);
    CheckField("DataCopy", Rule::StrideLimit, "dstStride", p.dstStride, 0, UINT16_MAX, " blocks of 32 bytes", where);
    if (p.blockCount == 0 || p.blockLen == 0) return;
    Blocks blocks;
    blocks.count = p.blockCount;
    blocks.bytes = p.blockLen * ONE_BLK_SIZE;
    blocks.srcPitch = (p.blockLen + p.srcStride) * ONE_BLK_SIZE;
    blocks.dstPitch = (p.blockLen + p.dstStride) * ONE_BLK_SIZE;
    Issue("DataCopy", EndOf(dst, "dst"), EndOf(src, "src"), blocks, where);
}

#if __NPU_ARCH__ == 3510
inline constexpr int64_t kMaxGmStride = int64_t(1) << 40;
inline constexpr bool kNegativeGmStride = true;  // down to -blockLen
#else
inline constexpr int64_t kMaxGmStride = UINT32_MAX;
inline constexpr bool kNegativeGmStride = false;
#endif

// Blocks of DataCopyPad without padding; limits of blockLen differ between the two parameter structs.
template <typename T>
Blocks PadBlocks(const AscendC::DataCopyExtParams& p, int64_t maxLen, int64_t maxGmStride, bool in, Location where) {
    CheckField("DataCopyPad", Rule::RepeatLimit, "blockCount", p.blockCount, 0, 4095, "", where);
    CheckField("DataCopyPad", Rule::RepeatLimit, "blockLen", p.blockLen, 0, maxLen, " bytes", where);
    const int64_t gmStride = in ? p.srcStride : p.dstStride, ubStride = in ? p.dstStride : p.srcStride;
    CheckField("DataCopyPad", Rule::StrideLimit, in ? "srcStride" : "dstStride", gmStride,
               kNegativeGmStride && maxLen > UINT16_MAX ? -p.blockLen : 0, maxGmStride, " bytes", where);
    CheckField("DataCopyPad", Rule::StrideLimit, in ? "dstStride" : "srcStride", ubStride, 0, UINT16_MAX,
               " blocks of 32 bytes", where);
    if (p.blockLen % int64_t(sizeof(T)) != 0)
        Core::Current().Fail(Rule::Argument, "DataCopyPad", "blockLen", "blockLen counts bytes: " + std::to_string(p.blockLen) +
                             " is not a multiple of the " + std::to_string(sizeof(T)) + " bytes of " + DtypeName<T>(), where);
    Blocks blocks;
    blocks.count = p.blockCount;
    blocks.bytes = p.blockLen;
    blocks.elementBytes = sizeof(T);
    (in ? blocks.srcPitch : blocks.dstPitch) = p.blockLen + gmStride;
    (in ? blocks.dstPitch : blocks.srcPitch) = int64_t(AlignUp(uint64_t(p.blockLen), ONE_BLK_SIZE)) + ubStride * ONE_BLK_SIZE;
    return blocks;
}

template <typename T>
void SetPadding(Blocks& blocks, const AscendC::DataCopyPadExtParams<T>& pad, int64_t ubStride, Location where) {
    Core& core = Core::Current();
    constexpr int64_t kMost = ONE_BLK_SIZE / int64_t(sizeof(T));
    CheckField("DataCopyPad", Rule::Argument, "leftPadding", pad.leftPadding, 0, kMost, " elements", where);
    CheckField("DataCopyPad", Rule::Argument, "rightPadding", pad.rightPadding, 0, kMost, " elements", where);
    const bool any = pad.leftPadding != 0 || pad.rightPadding != 0;
    if (!pad.isPad && any)
        core.Fail(Rule::Argument, "DataCopyPad", "padParams", "isPad is false, leftPadding and rightPadding must be 0 then",
                  where);
    std::memcpy(blocks.value, &pad.paddingValue, sizeof(T));
    uint64_t bits = 0;
    std::memcpy(&bits, blocks.value, sizeof bits);
    if (sizeof(T) == 8 && pad.isPad && bits != 0)
        core.Fail(Rule::Argument, "DataCopyPad", "paddingValue", "paddingValue of a 64-bit type must be 0", where);
    blocks.left = pad.leftPadding * int64_t(sizeof(T));
    blocks.right = pad.rightPadding * int64_t(sizeof(T));
    blocks.fill = !pad.isPad ? Fill::Undefined : any ? Fill::Value : Fill::First;
    blocks.dstPitch = blocks.Padded(blocks.bytes) + ubStride * ONE_BLK_SIZE;
}

template <AscendC::PaddingMode mode>
void SetMode(Blocks& blocks, bool in, int64_t ubStride, Location where) {
    if constexpr (mode == AscendC::PaddingMode::Compact) {
        if (ubStride != 0)
            Core::Current().Fail(Rule::StrideLimit, "DataCopyPad", in ? "dstStride" : "srcStride",
                                 "the UB stride must be 0 in Compact mode, blocks are side by side", where);
        blocks.packed = true;
        (in ? blocks.dstPitch : blocks.srcPitch) = blocks.bytes;
    }
#if __NPU_ARCH__ == 3510
    if (Core::Current().framework)
        blocks.loops = FrameworkState::Current().loops[int(in ? AscendC::DataCopyMVType::OUT_TO_UB : AscendC::DataCopyMVType::UB_TO_OUT)];
#else
    static_assert(mode == AscendC::PaddingMode::Normal, "PaddingMode::Compact exists on arch 3510 only");
#endif
}

template <AscendC::PaddingMode mode, typename T>
void PadIn(const AscendC::LocalTensor<T>& dst, const AscendC::GlobalTensor<T>& src, const AscendC::DataCopyExtParams& p,
           const AscendC::DataCopyPadExtParams<T>& pad, int64_t maxLen, int64_t maxGmStride, Location where) {
    Blocks blocks = PadBlocks<T>(p, maxLen, maxGmStride, true, where);
    SetPadding(blocks, pad, p.dstStride, where);
    SetMode<mode>(blocks, true, p.dstStride, where);
    if (blocks.count != 0 && blocks.bytes != 0) Issue("DataCopyPad", EndOf(dst, "dst"), EndOf(src, "src"), blocks, where);
}
template <AscendC::PaddingMode mode, typename T>
void PadOut(const AscendC::GlobalTensor<T>& dst, const AscendC::LocalTensor<T>& src, const AscendC::DataCopyExtParams& p,
            int64_t maxLen, int64_t maxGmStride, Location where) {
    Blocks blocks = PadBlocks<T>(p, maxLen, maxGmStride, false, where);
    SetMode<mode>(blocks, false, p.srcStride, where);
    if (blocks.count != 0 && blocks.bytes != 0) Issue("DataCopyPad", EndOf(dst, "dst"), EndOf(src, "src"), blocks, where);
}
inline AscendC::DataCopyExtParams Extended(const AscendC::DataCopyParams& p) {
    return {p.blockCount, p.blockLen, p.srcStride, p.dstStride, 0};
}
inline constexpr int64_t kMaxBlockLen = (1 << 21) - 1;

}  // namespace sim::dma

namespace AscendC {

template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, sim::Wide count, sim::Location where = sim::Location::Here()) {
    sim::dma::CopyCount(dst, src, count, where);
}
template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, sim::Wide count, sim::Location where = sim::Location::Here()) {
    sim::dma::CopyCount(dst, src, count, where);
}
template <typename T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, sim::Wide count, sim::Location where = sim::Location::Here()) {
    sim::dma::CopyCount(dst, src, count, where);
}
template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& repeatParams,
              sim::Location where = sim::Location::Here()) {
    sim::dma::CopyStrided(dst, src, repeatParams, where);
}
template <typename T>
void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& repeatParams,
              sim::Location where = sim::Location::Here()) {
    sim::dma::CopyStrided(dst, src, repeatParams, where);
}
template <typename T>
void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& repeatParams,
              sim::Location where = sim::Location::Here()) {
    sim::dma::CopyStrided(dst, src, repeatParams, where);
}

template <typename T, PaddingMode mode = PaddingMode::Normal>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& dataCopyParams,
                 const DataCopyPadExtParams<T>& padParams, sim::Location where = sim::Location::Here()) {
    sim::dma::PadIn<mode>(dst, src, dataCopyParams, padParams, sim::dma::kMaxBlockLen, sim::dma::kMaxGmStride, where);
}
template <typename T, PaddingMode mode = PaddingMode::Normal>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& dataCopyParams,
                 sim::Location where = sim::Location::Here()) {
    sim::dma::PadOut<mode>(dst, src, dataCopyParams, sim::dma::kMaxBlockLen, sim::dma::kMaxGmStride, where);
}
// The 16-bit structs: every field, the GM stride in bytes too, holds 0 to 65535.
template <typename T, PaddingMode mode = PaddingMode::Normal>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& dataCopyParams,
                 const DataCopyPadParams& padParams, sim::Location where = sim::Location::Here()) {
    DataCopyPadExtParams<T> pad;
    pad.isPad = padParams.isPad;
    pad.leftPadding = padParams.leftPadding;
    pad.rightPadding = padParams.rightPadding;
    std::memcpy(&pad.paddingValue, &padParams.paddingValue, sizeof(T));
    sim::dma::PadIn<mode>(dst, src, sim::dma::Extended(dataCopyParams), pad, UINT16_MAX, UINT16_MAX, where);
}
template <typename T, PaddingMode mode = PaddingMode::Normal>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& dataCopyParams,
                 sim::Location where = sim::Location::Here()) {
    sim::dma::PadOut<mode>(dst, src, sim::dma::Extended(dataCopyParams), UINT16_MAX, UINT16_MAX, where);
}

#if __NPU_ARCH__ == 3510
// Two outer loops around every later DataCopyPad of one direction.
inline void SetLoopModePara(const LoopModeParams& p, DataCopyMVType type, sim::Location where = sim::Location::Here()) {
    constexpr int64_t kMost = (1 << 21) - 1;
    sim::dma::CheckField("SetLoopModePara", sim::Rule::RepeatLimit, "loop1Size", p.loop1Size, 1, kMost, "", where);
    sim::dma::CheckField("SetLoopModePara", sim::Rule::RepeatLimit, "loop2Size", p.loop2Size, 1, kMost, "", where);
    const bool in = type == DataCopyMVType::OUT_TO_UB;
    for (int64_t stride : {in ? p.loop1DstStride : p.loop1SrcStride, in ? p.loop2DstStride : p.loop2SrcStride})
        if (stride % ONE_BLK_SIZE != 0)
            sim::Core::Current().Fail(sim::Rule::StrideLimit, "SetLoopModePara", "", "UB loop stride " + std::to_string(stride) +
                                      " bytes is not a multiple of 32", where);
    sim::FrameworkState::Current().loops[int(type)] = p;
}
inline void ResetLoopModePara(DataCopyMVType type) { sim::FrameworkState::Current().loops[int(type)] = {}; }
#endif

}  // namespace AscendC
