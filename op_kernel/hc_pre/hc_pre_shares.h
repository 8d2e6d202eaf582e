// Equal shares, and the tiles of a share of K.
#pragma once

#include "../common/rows_copy.h"
#include "hc_pre_tiling_data.h"

namespace hc {

constexpr uint32_t kUnit = 16;  // columns of K, tokens of a block

// [first, first + count) of `total`, in units of 16: share `index`; the last may end early.
struct Span {
    uint32_t first = 0, count = 0;
    __aicore__ inline Span(const HcPreShares& shares, uint32_t index, uint32_t total) {
        if (index >= shares.count) return;
        const uint32_t shorter = shares.count - shares.longer;
        const uint32_t units = shares.units + (index >= shorter ? 1 : 0);
        first = (index * shares.units + (index > shorter ? index - shorter : 0)) * kUnit;
        count = Min(units * kUnit, total - first);
    }
    __aicore__ inline Span(uint32_t begin, uint32_t size) : first(begin), count(size) {}

    // In whole units; the second half may be shorter.
    __aicore__ inline Span Half(bool second) const {
        const uint32_t half = Min(count, CeilDiv(CeilDiv(count, kUnit), 2) * kUnit);
        return second ? Span(first + half, count - half) : Span(first, half);
    }
};

}  // namespace hc
