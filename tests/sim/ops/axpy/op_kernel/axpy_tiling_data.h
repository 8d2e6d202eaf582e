#pragma once
#include <cstdint>

constexpr uint32_t kMaxTiles = 2;

struct AxpyTile {
    uint32_t elements;      // per tile, a multiple of 32 B
    uint32_t tilesPerCore;
};

// Plain struct shared by host and kernel.
struct AxpyTilingData {
    uint64_t total;         // elements of x
    AxpyTile tile;
    float alpha;
    int32_t spare[kMaxTiles * 2];
};
