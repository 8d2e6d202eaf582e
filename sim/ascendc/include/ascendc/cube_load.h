// Into the cube: GM -> L1 with ND -> NZ on MTE2, L1 -> L0A and L0B on MTE1.
#pragma once

#include "ascendc/cube_params.h"
#include "ascendc/data_copy.h"

namespace sim::cube {

using AscendC::GlobalTensor;
using AscendC::LocalTensor;

inline constexpr int64_t kFractal = 512;   // bytes: 16 rows of 32
inline constexpr int64_t kRow = 32;
inline constexpr int64_t kRows = 16;
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

using dma::CheckField;

template <typename T>
void CheckType(const char* api, bool supported, Location where) {
    if (!supported)
        Core::Current().Fail(Rule::Dtype, api, "", std::string(api) + " does not take " + DtypeName<T>(), where);
}
inline void CheckMemory(const char* api, const char* operand, Memory memory, bool legal, const char* wanted, Location where) {
    if (!legal)
        Core::Current().Fail(Rule::PipeLegality, api, operand, std::string(operand) + " lies in " + MemoryName(memory) +
                             ", it has to be in " + wanted, where);
}

// The region of an operand `count` times, `pitch` bytes from start to start.
inline Operand Repeated(Operand operand, int64_t count, int64_t pitch) {
    Region region = operand.region;
    for (int64_t i = 1; i < count; ++i) {
        region.start += uint64_t(pitch);
        operand.more.push_back(region);
    }
    return operand;
}

// Row r, column c of a matrix goes to (c / C0) * dstNzC0Stride + r * dstNzNStride blocks of 32 bytes, element c % C0; the last
// block of a row is filled up with zeros.
template <typename T>
void Nd2Nz(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const AscendC::Nd2NzParams& p, Location where) {
    constexpr const char* kApi = "DataCopy";
    constexpr int64_t kC0 = kRow / int64_t(sizeof(T));
    CheckField(kApi, Rule::RepeatLimit, "ndNum", p.ndNum, 0, 4095, "", where);
    CheckField(kApi, Rule::RepeatLimit, "nValue", p.nValue, 0, 16384, " rows", where);
    CheckField(kApi, Rule::RepeatLimit, "dValue", p.dValue, 0, 65535, " elements", where);
    CheckField(kApi, Rule::StrideLimit, "srcNdMatrixStride", p.srcNdMatrixStride, 0, 65535, " elements", where);
    CheckField(kApi, Rule::StrideLimit, "srcDValue", p.srcDValue, 1, 65535, " elements", where);
    CheckField(kApi, Rule::StrideLimit, "dstNzC0Stride", p.dstNzC0Stride, 0, 16384, " blocks of 32 bytes", where);
    CheckField(kApi, Rule::StrideLimit, "dstNzNStride", p.dstNzNStride, 0, 16384, " blocks of 32 bytes", where);
    CheckField(kApi, Rule::StrideLimit, "dstNzMatrixStride", p.dstNzMatrixStride, 0, 65535, " elements", where);
    CheckMemory(kApi, "dst", dst.Where(), dst.Where() == Memory::L1, "L1 (A1, B1)", where);
    if (p.ndNum == 0 || p.nValue == 0 || p.dValue == 0) return;
    const int64_t columns = CeilDiv(p.dValue, kC0), rowBytes = p.dValue * int64_t(sizeof(T));
    const int64_t dstMatrix = p.dstNzMatrixStride * int64_t(sizeof(T)), srcMatrix = p.srcNdMatrixStride * int64_t(sizeof(T));
    const int64_t srcRow = p.srcDValue * int64_t(sizeof(T)), dstRow = p.dstNzNStride * kRow, dstColumn = p.dstNzC0Stride * kRow;
    Core& core = Core::Current();
    Instruction instruction{kApi, Pipe::MTE2, Cost::GmToLocal, uint64_t(p.ndNum * p.nValue * rowBytes), where, {}, "ND -> NZ"};
    const uint32_t rowCount = uint32_t(p.nValue);
    instruction.operands.push_back(Repeated(
        src.AsOperand("src", Access::Read, {src.Address(), uint64_t(rowBytes), rowCount, 1, srcRow, 0}), p.ndNum, srcMatrix));
    if (core.OperandsNeeded()) {
        instruction.operands.push_back(Repeated(
            dst.AsOperand("dst", Access::Write, {dst.Address(), uint64_t(kRow), rowCount, uint32_t(columns), dstRow, dstColumn}),
            p.ndNum, dstMatrix));
        dma::TellDataCache(core, kApi, instruction.operands[0], where);
    }
    uint8_t* to = reinterpret_cast<uint8_t*>(dst.Host());
    const uint8_t* from = reinterpret_cast<const uint8_t*>(src.Host());
    const int64_t matrices = p.ndNum, rows = p.nValue;
    core.Issue(instruction, [=] {
        for (int64_t i = 0; i < matrices; ++i)
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t c = 0; c < columns; ++c) {
                    uint8_t* block = to + i * dstMatrix + c * dstColumn + r * dstRow;
                    const int64_t bytes = std::min<int64_t>(kRow, rowBytes - c * kRow);
                    std::memcpy(block, from + i * srcMatrix + r * srcRow + c * kRow, size_t(bytes));
                    std::memset(block + bytes, 0, size_t(kRow - bytes));
                }
    });
}

template <typename T>
void TransposeFractal(uint8_t* dst, const uint8_t* src) {   // 16 x 16 elements of 16 bits
    uint16_t in[kRows][kRows], out[kRows][kRows];
    std::memcpy(in, src, sizeof in);
    for (int64_t r = 0; r < kRows; ++r)
        for (int64_t c = 0; c < kRows; ++c) out[c][r] = in[r][c];
    std::memcpy(dst, out, sizeof out);
}

// Rows past the end of a matrix need not hold anything: what was never written stays so where it goes.
// `target(byte)` of the 512 source bytes is its place in the destination fractal.
template <typename Target>
void HandOnUnwritten(Core& core, Memory from, uint64_t source, Memory to, uint64_t fractal, int64_t bytes, Target target) {
    uint64_t bits[2 * kFractal / 64] = {};
    if (!core.Unwritten(from, source, uint64_t(bytes), bits)) return;
    for (int64_t i = 0; i < bytes; ++i)
        if (bits[i / 64] >> i % 64 & 1) core.MarkUnwritten(to, uint64_t(int64_t(fractal) + target(i)), 1);
}

// `count0` x `count1` fractals of 512 bytes, in bytes from start to start.
struct Fractals {
    int64_t count0 = 1, count1 = 1, src0 = 0, src1 = 0, dst0 = 0, dst1 = 0, srcStart = 0;
};

template <typename T>
void Load(const char* api, const LocalTensor<T>& dst, const LocalTensor<T>& src, const Fractals& f, bool transpose, Location where) {
    const bool intoA = dst.Where() == Memory::L0A;
    CheckMemory(api, "dst", dst.Where(), intoA || dst.Where() == Memory::L0B, "L0A (A2) or L0B (B2)", where);
    CheckMemory(api, "src", src.Where(), src.Where() == Memory::L1, "L1 (A1, B1)", where);
    if (transpose && sizeof(T) != 2)
        Core::Current().Fail(Rule::Dtype, api, "ifTranspose", std::string("ifTranspose swaps 16-bit elements, ") + DtypeName<T>() +
                             " has " + std::to_string(8 * sizeof(T)) + " bits; LoadDataWithTranspose serves 8 and 32 bits", where);
    Core& core = Core::Current();
    Instruction instruction{api, Pipe::MTE1, intoA ? Cost::L1ToL0A : Cost::L1ToL0B, uint64_t(f.count0 * f.count1 * kFractal), where, {}};
    if (core.OperandsNeeded())
        instruction.operands = {
            dst.AsOperand("dst", Access::Write, {dst.Address(), uint64_t(kFractal), uint32_t(f.count0), uint32_t(f.count1), f.dst0, f.dst1},
                          uint16_t(kFractal)),
            src.AsOperand("src", Access::Read, {src.Address() + uint64_t(f.srcStart), uint64_t(kFractal), uint32_t(f.count0),
                                                uint32_t(f.count1), f.src0, f.src1})};
    if (core.OperandsNeeded()) instruction.operands[1].mayBeUnwritten = true;
    uint8_t* to = reinterpret_cast<uint8_t*>(dst.Host());
    const uint8_t* from = reinterpret_cast<const uint8_t*>(src.Host()) + f.srcStart;
    core.Issue(instruction, [=] {
        for (int64_t j = 0; j < f.count1; ++j)
            for (int64_t i = 0; i < f.count0; ++i) {
                uint8_t* fractal = to + j * f.dst1 + i * f.dst0;
                const uint8_t* source = from + j * f.src1 + i * f.src0;
                if (transpose) TransposeFractal<T>(fractal, source);
                else std::memcpy(fractal, source, size_t(kFractal));
            }
    });
    if (!core.OperandsNeeded()) return;
    for (int64_t j = 0; j < f.count1; ++j)
        for (int64_t i = 0; i < f.count0; ++i)
            HandOnUnwritten(core, Memory::L1, src.Address() + uint64_t(f.srcStart + j * f.src1 + i * f.src0), dst.Where(),
                            dst.Address() + uint64_t(j * f.dst1 + i * f.dst0), kFractal, [&](int64_t byte) {
                                return transpose ? byte % kRow / 2 * kRow + byte / kRow * 2 + byte % 2 : byte;
                            });
}

// b32: two 16 x 8 fractals make a square of 16 x 16, b8: two 16 x 32 fractals one of 32 x 32; the square is transposed and
// written as fractals dstFracGap apart.
template <typename T>
void LoadTransposed(const LocalTensor<T>& dst, const LocalTensor<T>& src, const AscendC::LoadData2dTransposeParams& p, Location where) {
    constexpr const char* kApi = "LoadDataWithTranspose";
    constexpr int64_t kC0 = kRow / int64_t(sizeof(T)), kSide = sizeof(T) == 1 ? 32 : kRows;
    constexpr int64_t kParts = kSide * kSide * int64_t(sizeof(T)) / kFractal;
    CheckMemory(kApi, "dst", dst.Where(), dst.Where() == Memory::L0B || (dst.Where() == Memory::L0A && kRows == kSide), "L0B (B2)", where);
    CheckMemory(kApi, "src", src.Where(), src.Where() == Memory::L1, "L1 (B1)", where);
    CheckField(kApi, Rule::RepeatLimit, "repeatTimes", p.repeatTimes, 0, 255, " squares", where);
    CheckField(kApi, Rule::StrideLimit, "srcStride", p.srcStride, 0, 65535, " squares", where);
    CheckField(kApi, Rule::StrideLimit, "dstGap", p.dstGap, 0, 65535, " fractals", where);
    CheckField(kApi, Rule::StrideLimit, "dstFracGap", p.dstFracGap, 0, 65535, " fractals", where);
    CheckField(kApi, Rule::StrideLimit, "startIndex", p.startIndex, 0, 65535, " squares", where);
    CheckField(kApi, Rule::Argument, "addrMode", p.addrMode, 0, 0, " (addresses grow)", where);
    if (p.repeatTimes == 0) return;
    constexpr int64_t kSquare = kParts * kFractal;
    const int64_t fractalPitch = (1 + p.dstFracGap) * kFractal, pitch = (1 + p.dstGap) * kFractal;
    const int64_t start = p.startIndex * kSquare, srcPitch = p.srcStride * kSquare, squares = p.repeatTimes;
    Core& core = Core::Current();
    const Cost cost = dst.Where() == Memory::L0A ? Cost::L1ToL0A : Cost::L1ToL0B;
    Instruction instruction{kApi, Pipe::MTE1, cost, uint64_t(squares * kSquare), where, {}};
    if (core.OperandsNeeded())
        instruction.operands = {
            dst.AsOperand("dst", Access::Write,
                          {dst.Address(), uint64_t(kFractal), uint32_t(kParts), uint32_t(squares), fractalPitch, pitch},
                          uint16_t(kFractal)),
            src.AsOperand("src", Access::Read, {src.Address() + uint64_t(start), uint64_t(kSquare), uint32_t(squares), 1, srcPitch, 0})};
    if (core.OperandsNeeded()) instruction.operands[1].mayBeUnwritten = true;
    uint8_t* to = reinterpret_cast<uint8_t*>(dst.Host());
    const uint8_t* from = reinterpret_cast<const uint8_t*>(src.Host()) + start;
    // visit(byte in the source square, byte in the destination) of every element.
    const auto elements = [=](auto visit) {
        for (int64_t r = 0; r < kSide; ++r)
            for (int64_t c = 0; c < kSide; ++c) {   // rows of the square are split over its source fractals
                const int64_t source = kRows == kSide ? c / kC0 * kFractal + r * kRow : r / kRows * kFractal + r % kRows * kRow;
                const int64_t target = kRows == kSide ? r / kC0 * fractalPitch + c * kRow : c / kRows * fractalPitch + c % kRows * kRow;
                visit(source + c % kC0 * int64_t(sizeof(T)), target + r % kC0 * int64_t(sizeof(T)));
            }
    };
    core.Issue(instruction, [=] {
        for (int64_t i = 0; i < squares; ++i)
            elements([&](int64_t source, int64_t target) {
                std::memcpy(to + i * pitch + target, from + i * srcPitch + source, sizeof(T));
            });
    });
    if (!core.OperandsNeeded()) return;
    int64_t place[kSquare];
    elements([&](int64_t source, int64_t target) {
        for (int64_t b = 0; b < int64_t(sizeof(T)); ++b) place[source + b] = target + b;
    });
    for (int64_t i = 0; i < squares; ++i)
        HandOnUnwritten(core, Memory::L1, src.Address() + uint64_t(start + i * srcPitch), dst.Where(), dst.Address() + uint64_t(i * pitch),
                        kSquare, [&](int64_t byte) { return place[byte]; });
}

}  // namespace sim::cube

namespace AscendC {

template <typename T>
void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& intriParams,
              sim::Location where = sim::Location::Here()) {
    sim::cube::Nd2Nz(dst, src, intriParams, where);
}

template <typename T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& p,
              sim::Location where = sim::Location::Here()) {
    using namespace sim::cube;
    CheckField("LoadData", sim::Rule::RepeatLimit, "repeatTimes", p.repeatTimes, 0, 255, " fractals", where);
    CheckField("LoadData", sim::Rule::StrideLimit, "startIndex", p.startIndex, 0, 65535, " fractals", where);
    CheckField("LoadData", sim::Rule::StrideLimit, "srcStride", p.srcStride, 0, 65535, " fractals", where);
    CheckField("LoadData", sim::Rule::StrideLimit, "dstGap", p.dstGap, 0, 65535, " fractals", where);
    CheckField("LoadData", sim::Rule::Argument, "addrMode", p.addrMode, 0, 0, " (addresses grow)", where);
    if (p.repeatTimes == 0) return;
    Fractals f;
    f.count0 = p.repeatTimes;
    f.src0 = p.srcStride * kFractal;
    f.dst0 = (1 + p.dstGap) * kFractal;
    f.srcStart = p.startIndex * kFractal;
    Load("LoadData", dst, src, f, p.ifTranspose, where);
}
#if __NPU_ARCH__ == 3510
// Columns of fractals one after the other; transposed, an m x k rectangle arrives as k x m.
template <typename T>
void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParamsV2& p,
              sim::Location where = sim::Location::Here()) {
    using namespace sim::cube;
    CheckField("LoadData", sim::Rule::RepeatLimit, "mStep", p.mStep, 0, 255, " times 16 rows", where);
    CheckField("LoadData", sim::Rule::RepeatLimit, "kStep", p.kStep, 0, 255, " times 32 bytes", where);
    if (p.mStep == 0 || p.kStep == 0) return;
    Fractals f;
    f.count0 = p.mStep, f.count1 = p.kStep;
    f.src0 = kFractal, f.src1 = p.srcStride * kFractal;
    f.dst0 = p.ifTranspose ? p.dstStride * kFractal : kFractal;
    f.dst1 = p.ifTranspose ? kFractal : p.dstStride * kFractal;
    f.srcStart = p.mStartPosition * kFractal + p.kStartPosition * p.srcStride * kFractal;
    Load("LoadData", dst, src, f, p.ifTranspose, where);
}
#endif
template <typename T>
void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2dTransposeParams& loadDataParams,
                           sim::Location where = sim::Location::Here()) {
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4, "LoadDataWithTranspose takes 8, 16 and 32 bits");
    sim::cube::LoadTransposed(dst, src, loadDataParams, where);
}

}  // namespace AscendC
