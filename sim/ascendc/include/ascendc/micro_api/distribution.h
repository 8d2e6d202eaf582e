// How a load spreads the elements of UB over the lanes of a register, and a store gathers them (facts 6.4).
#pragma once

#include "ascendc/micro_api/lanes.h"

namespace AscendC::Reg::regimpl {

// Lane i, `laneBytes` wide, of register r is element Index(r, i), `elementBytes` wide, zero-extended.
struct Spread {
    enum Rule : uint8_t { Straight, First, Halved, Doubled, Block, Group, EvenOdd, BlockEvenOdd, Channel } rule;
    uint32_t elementBytes, laneBytes, bytes, alignment, registers = 1, divisor = 1;

    constexpr uint32_t Index(uint32_t r, uint32_t i) const {
        switch (rule) {
            case First: return 0;
            case Halved: return i / 2;
            case Doubled: return i * 2;
            case Block: return i % divisor;
            case Group: return i / divisor;
            case EvenOdd: return 2 * i + r;
            case BlockEvenOdd: return (i / divisor * 2 + r) * divisor + i % divisor;
            case Channel: return i % (256 / laneBytes / divisor) * divisor + i / (256 / laneBytes / divisor);
            default: return i;
        }
    }
};

template <LoadDist dist, uint32_t size>
constexpr Spread LoadSpread() {
    using D = LoadDist;
    constexpr uint32_t lanes = 256 / size;
    switch (dist) {
        case D::DIST_BRC_B8: case D::DIST_BRC_B16: case D::DIST_BRC_B32: return {Spread::First, size, size, size, size};
        case D::DIST_US_B8: case D::DIST_US_B16: return {Spread::Halved, size, size, 128, 32};
        case D::DIST_DS_B8: case D::DIST_DS_B16: return {Spread::Doubled, size, size, 512, 32};
        case D::DIST_UNPACK_B8: case D::DIST_UNPACK_B16: case D::DIST_UNPACK_B32:
            return {Spread::Straight, size, 2 * size, 128, 32};
        case D::DIST_UNPACK4_B8: return {Spread::Straight, size, 4 * size, 64, 32};
        case D::DIST_BLK: return {Spread::Block, size, size, 32, 32, 1, 32 / size};
        case D::DIST_E2B_B16: case D::DIST_E2B_B32:
            return {Spread::Group, size, size, lanes / (32 / size) * size, lanes / (32 / size) * size, 1, 32 / size};
        case D::DIST_BDINTLV: return {Spread::BlockEvenOdd, size, size, 512, 32, 2, 32 / size};
        case D::DIST_DINTLV_B8: case D::DIST_DINTLV_B16: case D::DIST_DINTLV_B32:
            return {Spread::EvenOdd, size, size, 512, 32, 2};
        case D::DIST_SPLT4CHN_B8: return {Spread::Channel, size, size, 256, 32, 1, 4};
        case D::DIST_SPLT2CHN_B8: case D::DIST_SPLT2CHN_B16: return {Spread::Channel, size, size, 256, 32, 1, 2};
        default: return {Spread::Straight, size, size, 256, 32};
    }
}
// Bytes of the element a distribution is named after; 0 when any will do.
constexpr uint32_t ElementBytes(LoadDist dist) {
    using D = LoadDist;
    switch (dist) {
        case D::DIST_BRC_B8: case D::DIST_US_B8: case D::DIST_DS_B8: case D::DIST_UNPACK_B8: case D::DIST_UNPACK4_B8:
        case D::DIST_DINTLV_B8: case D::DIST_SPLT4CHN_B8: case D::DIST_SPLT2CHN_B8: return 1;
        case D::DIST_BRC_B16: case D::DIST_US_B16: case D::DIST_DS_B16: case D::DIST_UNPACK_B16: case D::DIST_E2B_B16:
        case D::DIST_DINTLV_B16: case D::DIST_SPLT2CHN_B16: return 2;
        case D::DIST_BRC_B32: case D::DIST_UNPACK_B32: case D::DIST_E2B_B32: case D::DIST_DINTLV_B32: return 4;
        default: return 0;
    }
}

// Element Index(r, i), `elementBytes` wide, of UB is the low part of lane i of register r, `laneBytes` wide.
template <StoreDist dist, uint32_t size>
constexpr Spread StoreSpread() {
    using D = StoreDist;
    switch (dist) {
        case D::DIST_FIRST_ELEMENT_B8: case D::DIST_FIRST_ELEMENT_B16: case D::DIST_FIRST_ELEMENT_B32:
            return {Spread::First, size, size, size, size};
        case D::DIST_PACK_B16: return {Spread::Straight, 1, 2, 128, 32};
        case D::DIST_PACK_B32: return {Spread::Straight, 2, 4, 128, 32};
        case D::DIST_PACK_B64: return {Spread::Straight, 4, 8, 128, 32};
        case D::DIST_PACK4_B32: return {Spread::Straight, 1, 4, 64, 32};
        case D::DIST_INTLV_B8: case D::DIST_INTLV_B16: case D::DIST_INTLV_B32:
            return {Spread::EvenOdd, size, size, 512, 32, 2};
        case D::DIST_MRG4CHN_B8: return {Spread::Channel, size, size, 256, 32, 1, 4};
        case D::DIST_MRG2CHN_B8: case D::DIST_MRG2CHN_B16: return {Spread::Channel, size, size, 256, 32, 1, 2};
        default: return {Spread::Straight, size, size, 256, 32};
    }
}
constexpr uint32_t ElementBytes(StoreDist dist) {
    using D = StoreDist;
    switch (dist) {
        case D::DIST_NORM_B8: case D::DIST_FIRST_ELEMENT_B8: case D::DIST_INTLV_B8: case D::DIST_MRG4CHN_B8:
        case D::DIST_MRG2CHN_B8: return 1;
        case D::DIST_NORM_B16: case D::DIST_FIRST_ELEMENT_B16: case D::DIST_INTLV_B16: case D::DIST_MRG2CHN_B16: return 2;
        case D::DIST_NORM_B32: case D::DIST_FIRST_ELEMENT_B32: case D::DIST_INTLV_B32: return 4;
        default: return 0;
    }
}

}  // namespace AscendC::Reg::regimpl
