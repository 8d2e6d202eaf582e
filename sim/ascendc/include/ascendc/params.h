// Parameter structs of the API. Constructors take, and fields keep, 64-bit values: a stride of 300 that the device would
// silently cut to its 8-bit field is seen by the range checks as the 300 it is.
#pragma once

#include "ascendc/types.h"

namespace sim {

// Any integer, also inside braces where a plain int64_t parameter would be a narrowing error.
struct Wide {
    int64_t value;
    template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number> || std::is_enum_v<Number>>>
    constexpr Wide(Number number) : value(static_cast<int64_t>(number)) {}
    constexpr operator int64_t() const { return value; }
};

}  // namespace sim

namespace AscendC {

// Field widths on the device are in the comments.
struct BinaryRepeatParams {  // uint8_t
    constexpr BinaryRepeatParams() = default;
    constexpr BinaryRepeatParams(sim::Wide dstBlk, sim::Wide src0Blk, sim::Wide src1Blk, sim::Wide dstRep,
                                 sim::Wide src0Rep, sim::Wide src1Rep)
        : dstBlkStride(dstBlk), src0BlkStride(src0Blk), src1BlkStride(src1Blk), dstRepStride(dstRep),
          src0RepStride(src0Rep), src1RepStride(src1Rep) {}
    int64_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1;
    int64_t dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
};

struct UnaryRepeatParams {  // block strides uint16_t, repeat strides uint8_t
    constexpr UnaryRepeatParams() = default;
    constexpr UnaryRepeatParams(sim::Wide dstBlk, sim::Wide srcBlk, sim::Wide dstRep, sim::Wide srcRep,
                                bool half = false)
        : dstBlkStride(dstBlk), srcBlkStride(srcBlk), dstRepStride(dstRep), srcRepStride(srcRep), halfBlock(half) {}
    int64_t dstBlkStride = 1, srcBlkStride = 1, dstRepStride = 8, srcRepStride = 8;
    bool halfBlock = false;
};

struct BrcbRepeatParams {  // uint16_t
    constexpr BrcbRepeatParams() = default;
    constexpr BrcbRepeatParams(sim::Wide dstBlk, sim::Wide dstRep) : dstBlkStride(dstBlk), dstRepStride(dstRep) {}
    int64_t dstBlkStride = 1, dstRepStride = 8;
};

struct GatherRepeatParams {  // uint8_t
    constexpr GatherRepeatParams() = default;
    constexpr GatherRepeatParams(sim::Wide dstBlk, sim::Wide dstRep) : dstBlkStride(dstBlk), dstRepStride(dstRep) {}
    int64_t dstBlkStride = 1, dstRepStride = 8;
};

struct CopyRepeatParams {  // uint16_t
    constexpr CopyRepeatParams() = default;
    constexpr CopyRepeatParams(sim::Wide dstBlk, sim::Wide srcBlk, sim::Wide dstRepeat, sim::Wide srcRepeat)
        : dstStride(dstBlk), srcStride(srcBlk), dstRepeatSize(dstRepeat), srcRepeatSize(srcRepeat) {}
    int64_t dstStride = 1, srcStride = 1, dstRepeatSize = 8, srcRepeatSize = 8;
};

struct GatherMaskParams {  // uint8_t, uint16_t, uint16_t, uint8_t
    constexpr GatherMaskParams() = default;
    constexpr GatherMaskParams(sim::Wide src0Block, sim::Wide repeats, sim::Wide src0Repeat, sim::Wide src1Repeat)
        : src0BlockStride(src0Block), repeatTimes(repeats), src0RepeatStride(src0Repeat), src1RepeatStride(src1Repeat) {}
    int64_t src0BlockStride = 1, repeatTimes = 0, src0RepeatStride = 8, src1RepeatStride = 8;
};

// DataCopy: blockLen and both gaps in 32-byte blocks. DataCopyPad: blockLen in bytes, the gap on the GM side in bytes.
struct DataCopyParams {  // uint16_t
    constexpr DataCopyParams() = default;
    constexpr DataCopyParams(sim::Wide count, sim::Wide len, sim::Wide src, sim::Wide dst)
        : blockCount(count), blockLen(len), srcStride(src), dstStride(dst) {}
    int64_t blockCount = 1, blockLen = 0;
    union { int64_t srcStride = 0; int64_t srcGap; };
    union { int64_t dstStride = 0; int64_t dstGap; };
};

struct DataCopyPadParams {  // bool, uint8_t, uint8_t, uint64_t
    constexpr DataCopyPadParams() = default;
    constexpr DataCopyPadParams(bool pad, sim::Wide left, sim::Wide right, sim::Wide value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(static_cast<uint64_t>(value.value)) {}
    bool isPad = false;
    int64_t leftPadding = 0, rightPadding = 0;  // elements
    uint64_t paddingValue = 0;                  // bits of an element
};

struct DataCopyExtParams {  // uint16_t, then uint32_t (950: the strides int64_t)
    constexpr DataCopyExtParams() = default;
    constexpr DataCopyExtParams(sim::Wide count, sim::Wide len, sim::Wide src, sim::Wide dst, sim::Wide reserved)
        : blockCount(count), blockLen(len), srcStride(src), dstStride(dst), rsv(reserved) {}
    int64_t blockCount = 1;
    int64_t blockLen = 0;                  // bytes
    int64_t srcStride = 0, dstStride = 0;  // end of a block to the next start: bytes in GM, 32-byte blocks in UB
    int64_t rsv = 0;
};

template <typename T>
struct DataCopyPadExtParams {  // bool, uint8_t, uint8_t, T
    constexpr DataCopyPadExtParams() = default;
    template <typename Value>
    constexpr DataCopyPadExtParams(bool pad, sim::Wide left, sim::Wide right, Value value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(static_cast<T>(value)) {}
    bool isPad = false;
    int64_t leftPadding = 0, rightPadding = 0;  // elements
    T paddingValue{};
};

struct LoopModeParams {  // uint32_t sizes, uint64_t strides
    int64_t loop1Size = 1, loop2Size = 1;
    int64_t loop1SrcStride = 0, loop1DstStride = 0, loop2SrcStride = 0, loop2DstStride = 0;  // bytes, start to start
};

struct ShapeInfo {
    ShapeInfo() = default;
    ShapeInfo(uint8_t dims, const uint32_t sizes[]) : shapeDim(dims) {
        for (int i = 0; i < dims && i < 8; ++i) shape[i] = sizes[i];
    }
    uint8_t shapeDim = 0;
    uint32_t shape[8] = {};
    DataFormat dataFormat = DataFormat::ND;
};

}  // namespace AscendC
