// Parameter structs of the cube. As in params.h, fields are wider than the device's, so that a value that does not fit is seen.
#pragma once

#include "ascendc/params.h"

namespace AscendC {

// ND -> NZ while copying GM -> L1. Matrices of nValue rows x dValue columns; C0 = 32 bytes of elements.
struct Nd2NzParams {  // uint16_t
    constexpr Nd2NzParams() = default;
    constexpr Nd2NzParams(sim::Wide matrices, sim::Wide n, sim::Wide d, sim::Wide srcMatrixStride, sim::Wide srcD,
                          sim::Wide dstC0Stride, sim::Wide dstNStride, sim::Wide dstMatrixStride)
        : ndNum(matrices), nValue(n), dValue(d), srcNdMatrixStride(srcMatrixStride), srcDValue(srcD), dstNzC0Stride(dstC0Stride),
          dstNzNStride(dstNStride), dstNzMatrixStride(dstMatrixStride) {}
    int64_t ndNum = 1, nValue = 0, dValue = 0;
    int64_t srcNdMatrixStride = 0, srcDValue = 0;      // elements: matrix to matrix, row to row
    int64_t dstNzC0Stride = 0, dstNzNStride = 1;       // 32-byte blocks: C0 column to C0 column, row to row
    int64_t dstNzMatrixStride = 0;                     // elements
};

// Fractals of 512 bytes, in the order of memory.
struct LoadData2DParams {  // uint16_t startIndex, srcStride, dstGap; uint8_t repeatTimes
    constexpr LoadData2DParams() = default;
    constexpr LoadData2DParams(sim::Wide start, sim::Wide repeats, sim::Wide src, sim::Wide sidValue, sim::Wide gap, bool transpose,
                               sim::Wide mode)
        : startIndex(start), repeatTimes(repeats), srcStride(src), sid(sidValue), dstGap(gap), ifTranspose(transpose), addrMode(mode) {}
    int64_t startIndex = 0, repeatTimes = 0;
    int64_t srcStride = 0;    // fractals, start to start
    int64_t sid = 0;
    int64_t dstGap = 0;       // fractals, end to start
    bool ifTranspose = false;
    int64_t addrMode = 0;
};

// Arch 3510: an mStep x kStep rectangle of fractals of an NZ matrix.
struct LoadData2DParamsV2 {
    constexpr LoadData2DParamsV2() = default;
    constexpr LoadData2DParamsV2(sim::Wide mStart, sim::Wide kStart, sim::Wide m, sim::Wide k, sim::Wide src, sim::Wide dst,
                                 bool transpose, sim::Wide sidValue)
        : mStartPosition(mStart), kStartPosition(kStart), mStep(m), kStep(k), srcStride(src), dstStride(dst), ifTranspose(transpose),
          sid(sidValue) {}
    int64_t mStartPosition = 0, kStartPosition = 0;   // 16 rows, 32 bytes
    int64_t mStep = 0, kStep = 0;
    int64_t srcStride = 0, dstStride = 0;             // 512 bytes, from one column of fractals to the next
    bool ifTranspose = false;
    int64_t sid = 0;
};

struct LoadData2dTransposeParams {  // as LoadData2DParams, in square blocks of fractals
    constexpr LoadData2dTransposeParams() = default;
    constexpr LoadData2dTransposeParams(sim::Wide start, sim::Wide repeats, sim::Wide src, sim::Wide gap, sim::Wide fractalGap)
        : startIndex(start), repeatTimes(repeats), srcStride(src), dstGap(gap), dstFracGap(fractalGap) {}
    int64_t startIndex = 0, repeatTimes = 0, srcStride = 0, dstGap = 0, dstFracGap = 0, addrMode = 0;
};

struct MmadParams {  // uint16_t m, n, k: 0..4095
    constexpr MmadParams() = default;
    constexpr MmadParams(sim::Wide rows, sim::Wide columns, sim::Wide depth, bool bias, sim::Wide offset, bool sparse, bool weightOffset,
                         bool smask)
        : m(rows), n(columns), k(depth), isBias(bias), fmOffset(offset), enSsparse(sparse), enWinogradA(weightOffset), enWinogradB(smask) {}
    constexpr MmadParams(sim::Wide rows, sim::Wide columns, sim::Wide depth, sim::Wide flag, bool source, bool initial)
        : m(rows), n(columns), k(depth), unitFlag(flag), cmatrixSource(source), cmatrixInitVal(initial) {}
    int64_t m = 0, n = 0, k = 0;
    bool isBias = false;            // older spelling: the L0C matrix holds the initial values
    int64_t fmOffset = 0;
    bool enSsparse = false, enWinogradA = false, enWinogradB = false;
    int64_t unitFlag = 0;           // 0 off, 2 more to come, 3 last Mmad of this L0C matrix
    bool kDirectionAlign = false;   // float: k padded to 16 in L0
    bool cmatrixSource = false;     // initial values from C2
    bool cmatrixInitVal = true;     // start from 0
    bool disableGemv = false;       // 3510: m = 1 is laid out as a matrix
};

enum QuantMode_t : uint8_t {
    NoQuant, F322F16, F322BF16, DEQF16, VDEQF16, QF322B8_PRE, VQF322B8_PRE, REQ8, VREQ8
};
enum class CO2Layout : uint8_t { NZ, ROW_MAJOR, COLUMN_MAJOR };
struct FixpipeConfig {
    CO2Layout format;
    bool isToUB = false;
};
inline constexpr FixpipeConfig CFG_NZ{CO2Layout::NZ}, CFG_ROW_MAJOR{CO2Layout::ROW_MAJOR}, CFG_COLUMN_MAJOR{CO2Layout::COLUMN_MAJOR};

struct FixpipeParamsV220 {
    constexpr FixpipeParamsV220() = default;
    constexpr FixpipeParamsV220(sim::Wide n, sim::Wide m, sim::Wide src, sim::Wide dst, bool relu)
        : nSize(n), mSize(m), srcStride(src), dstStride(dst), reluEn(relu) {}
    constexpr FixpipeParamsV220(sim::Wide n, sim::Wide m, sim::Wide src, sim::Wide dst, bool relu, QuantMode_t quant, uint64_t scalar,
                                sim::Wide nd, sim::Wide srcNd, sim::Wide dstNd, sim::Wide flag)
        : nSize(n), mSize(m), srcStride(src), dstStride(dst), quantPre(quant), deqScalar(scalar), ndNum(nd), srcNdStride(srcNd),
          dstNdStride(dstNd), reluEn(relu), unitFlag(flag) {}
    int64_t nSize = 0, mSize = 0;
    int64_t srcStride = 0;          // rows: one column of fractals to the next, 16 elements each
    int64_t dstStride = 0;          // row major: elements, row to row; NZ: 32-byte blocks, column of fractals to the next
    QuantMode_t quantPre = NoQuant;
    uint64_t deqScalar = 0;         // bits of a float
    int64_t ndNum = 1, srcNdStride = 0, dstNdStride = 0;   // matrices; fractals of L0C and elements from one to the next
    bool reluEn = false;
    int64_t unitFlag = 0;
    bool isChannelSplit = false;    // NZ float: columns of 8 elements
};

#if __NPU_ARCH__ == 3510
template <CO2Layout format = CO2Layout::ROW_MAJOR>
struct FixpipeParamsC310 {
    int64_t nSize = 0, mSize = 0, srcStride = 0;
    int64_t dstStride = 0;          // elements
    QuantMode_t quantPre = NoQuant;
    uint64_t deqScalar = 0;
    bool reluEn = false;
    int64_t unitFlag = 0;
    int64_t dualDstCtl = 0, subBlockId = 0;
    bool isChannelSplit = false;
    struct { int64_t ndNum = 1, srcNdStride = 0, dstNdStride = 0; } params;
};
template <CO2Layout format = CO2Layout::ROW_MAJOR>
using FixpipeParamsArch3510 = FixpipeParamsC310<format>;
#endif

}  // namespace AscendC
