// Mmad: C [m, n] in L0C (+)= A [m, k] in L0A x B [k, n] in L0B, on M.
#pragma once

#include "ascendc/cube_load.h"
#include "ascendc/operand.h"

namespace sim::cube {

template <typename T>
inline constexpr bool kFloatOperand = std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t> || std::is_same_v<T, float>;

// HF32: float with a 10-bit mantissa (13 low bits dropped), to nearest even or toward zero.
inline float Hf32(float value, bool truncates) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7f800000u) == 0x7f800000u) return value;
    if (!truncates) bits += 0x0fffu + (bits >> 13 & 1);
    bits &= ~0x1fffu;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Where elements lie in L0 (facts 7.1); C0 elements make a row of 32 bytes, 16 rows a fractal.
//   L0A: 2201 ZZ, 3510 NZ; m = 1: the vector without padding. L0B: ZN. L0C: NZ of 16 x 16.
struct Shape {
    int64_t m, n, k;
    int64_t kBlocks;     // C0 groups of k in L0
    bool gemv;
    int64_t MBlocks() const { return CeilDiv(m, kRows); }
    int64_t NBlocks() const { return CeilDiv(n, kRows); }
    int64_t A(int64_t row, int64_t col, int64_t c0) const {
        if (gemv) return col;
#if __NPU_ARCH__ == 3510
        return (col / c0 * MBlocks() + row / kRows) * kRows * c0 + row % kRows * c0 + col % c0;
#else
        return (row / kRows * kBlocks + col / c0) * kRows * c0 + row % kRows * c0 + col % c0;
#endif
    }
    int64_t B(int64_t row, int64_t col, int64_t c0) const {
        return (row / c0 * NBlocks() + col / kRows) * kRows * c0 + col % kRows * c0 + row % c0;
    }
    int64_t C(int64_t row, int64_t col) const { return (col / kRows * MBlocks() * kRows + row) * kRows + col % kRows; }
};

// Sums over k in order, in float (int32_t for int8_t operands).
template <typename Out, typename In>
SIM_LOOP void Multiply(Out* c, const In* a, const In* b, const Out* bias, const Shape& s, bool fromZero, bool hf32, bool truncates) {
    constexpr int64_t kC0 = kRow / int64_t(sizeof(In));
    const auto number = [=](In value) -> Out {
        if constexpr (std::is_same_v<In, float>) return hf32 ? Hf32(value, truncates) : value;
        else return static_cast<Out>(vec::Widen(value));
    };
    std::vector<Out> right(size_t(s.k * s.n)), row(static_cast<size_t>(s.n));
    for (int64_t i = 0; i < s.k; ++i)
        for (int64_t j = 0; j < s.n; ++j) right[size_t(i * s.n + j)] = number(b[s.B(i, j, kC0)]);
    for (int64_t r = 0; r < s.m; ++r) {
        for (int64_t j = 0; j < s.n; ++j) row[size_t(j)] = bias != nullptr ? bias[j] : fromZero ? Out(0) : c[s.C(r, j)];
        Out* sum = row.data();
        for (int64_t i = 0; i < s.k; ++i) {
            const Out left = number(a[s.A(r, i, kC0)]);
            const Out* factors = right.data() + i * s.n;
            SIM_INDEPENDENT
            for (int64_t j = 0; j < s.n; ++j) {
                if constexpr (std::is_integral_v<Out>) sum[j] = Out(uint32_t(sum[j]) + uint32_t(left * factors[j]));
                else sum[j] += left * factors[j];
            }
        }
        for (int64_t j = 0; j < s.n; ++j) c[s.C(r, j)] = row[size_t(j)];
    }
}

// The first `region` that is not empty is the operand's own, the others are further ones.
inline void AddRegion(Operand& operand, const Region& region) {
    if (region.Bytes() == 0) return;
    if (operand.region.Bytes() == 0) operand.region = region;
    else operand.more.push_back(region);
}

// Bytes of the rows and of the k that count; rows of a last, partly used fractal and the rest of a last group of k may hold anything.
template <typename T>
Operand MatrixA(const LocalTensor<T>& a, const Shape& s) {
    constexpr int64_t kC0 = kRow / int64_t(sizeof(T));
    Operand operand = a.AsOperand("fm", Access::Read, {}, uint16_t(kFractal));
    const int64_t groups = s.k / kC0, rest = s.k % kC0 * int64_t(sizeof(T));
    if (s.gemv) {
        AddRegion(operand, {a.Address(), uint64_t(s.k) * sizeof(T)});
        return operand;
    }
#if __NPU_ARCH__ == 3510
    const int64_t pitch = s.MBlocks() * kFractal;
    AddRegion(operand, {a.Address(), uint64_t(s.m * kRow), uint32_t(groups), 1, pitch, 0});
    AddRegion(operand, {a.Address() + uint64_t(groups * pitch), uint64_t(rest), uint32_t(s.m), 1, kRow, 0});
#else
    const int64_t full = s.m / kRows, lastRows = s.m % kRows, pitch = s.kBlocks * kFractal;
    const uint64_t last = a.Address() + uint64_t(full * pitch), tail = uint64_t(groups * kFractal);
    AddRegion(operand, {a.Address(), uint64_t(groups * kFractal), uint32_t(full), 1, pitch, 0});
    AddRegion(operand, {a.Address() + tail, uint64_t(rest), uint32_t(kRows), uint32_t(full), kRow, pitch});
    AddRegion(operand, {last, uint64_t(lastRows * kRow), uint32_t(groups), 1, kFractal, 0});
    AddRegion(operand, {last + tail, uint64_t(rest), uint32_t(lastRows), 1, kRow, 0});
#endif
    return operand;
}
template <typename T>
Operand MatrixB(const LocalTensor<T>& b, const Shape& s) {
    constexpr int64_t kC0 = kRow / int64_t(sizeof(T));
    Operand operand = b.AsOperand("filter", Access::Read, {}, uint16_t(kFractal));
    const int64_t groups = s.k / kC0, rest = s.k % kC0 * int64_t(sizeof(T)), pitch = s.NBlocks() * kFractal;
    AddRegion(operand, {b.Address(), uint64_t(s.n * kRow), uint32_t(groups), 1, pitch, 0});
    AddRegion(operand, {b.Address() + uint64_t(groups * pitch), uint64_t(rest), uint32_t(s.n), 1, kRow, 0});
    return operand;
}

template <typename Out, typename In>
void Issue(const LocalTensor<Out>& c, const LocalTensor<In>& a, const LocalTensor<In>& b, const LocalTensor<Out>* bias,
           const AscendC::MmadParams& p, Location where) {
    constexpr const char* kApi = "Mmad";
    constexpr int64_t kC0 = kRow / int64_t(sizeof(In));
    Core& core = Core::Current();
    if (!((kFloatOperand<In> && std::is_same_v<Out, float>) || (std::is_same_v<In, int8_t> && std::is_same_v<Out, int32_t>)))
        core.Fail(Rule::Dtype, kApi, "", std::string("Mmad does not multiply ") + DtypeName<In>() + " into " + DtypeName<Out>() +
                  "; it takes half, bfloat16_t and float into float, int8_t into int32_t (Fixpipe converts)", where);
    CheckField(kApi, Rule::RepeatLimit, "m", p.m, 0, 4095, "", where);
    CheckField(kApi, Rule::RepeatLimit, "n", p.n, 0, 4095, "", where);
    CheckField(kApi, Rule::RepeatLimit, "k", p.k, 0, 4095, "", where);
    if (p.unitFlag != 0 && p.unitFlag != 2 && p.unitFlag != 3)
        core.Fail(Rule::Argument, kApi, "unitFlag", "unitFlag is " + std::to_string(p.unitFlag) + ", it must be 0, 2 or 3", where);
    if (p.enSsparse || p.enWinogradA || p.enWinogradB || p.fmOffset != 0)
        core.Fail(Rule::Argument, kApi, "mmadParams", "sparse, Winograd and offset forms are not modelled", where);
    if (p.cmatrixSource && !p.cmatrixInitVal && bias == nullptr)
        core.Fail(Rule::Argument, kApi, "cmatrixSource", "cmatrixSource takes initial values from C2, but this Mmad has no bias", where);
    CheckMemory(kApi, "dst", c.Where(), c.Where() == Memory::L0C, "L0C (CO1)", where);
    CheckMemory(kApi, "fm", a.Where(), a.Where() == Memory::L0A, "L0A (A2)", where);
    CheckMemory(kApi, "filter", b.Where(), b.Where() == Memory::L0B, "L0B (B2)", where);
    if (bias != nullptr) CheckMemory(kApi, "bias", bias->Where(), bias->Where() == Memory::BT, "BT (C2)", where);
    if (p.m == 0 || p.n == 0 || p.k == 0) return;
    Shape s{p.m, p.n, p.k, CeilDiv(p.k, kC0), p.m == 1, };
    if (sizeof(In) == 4 && p.kDirectionAlign) s.kBlocks = CeilDiv(p.k, kRows) * (kRows / kC0);
#if __NPU_ARCH__ == 3510
    s.gemv = s.gemv && !p.disableGemv;
#endif
    const bool fromZero = p.cmatrixInitVal && !p.isBias, reads = bias == nullptr && !fromZero;
    const bool hf32 = core.hf32 && std::is_same_v<In, float>, truncates = core.hf32Truncates;
    // Start-up + ceil(m / 16) ceil(n / 16) ceil(k / k0), k0 = a row of 32 bytes, fewer for float (facts 7.2).
    const SocSpec& soc = core.Soc();
    const double depth = std::is_same_v<In, float> ? (hf32 ? double(kC0) : soc.cubeFloatK) : double(kC0);
    const double steps = double(s.MBlocks() * s.NBlocks()) * __builtin_ceil(double(p.k) / depth);
    Instruction instruction{kApi, Pipe::M, Cost::Mmad, uint64_t(soc.cubeStartCycles + steps), where, {}};
    // Short ones overlap: accumulating into the same matrix needs PipeBarrier<PIPE_M> below 10 fractals (facts 7.2).
    constexpr int64_t kOrderedFrom = 10;
    instruction.selfOrdered = s.MBlocks() * s.NBlocks() >= kOrderedFrom;
    if (core.OperandsNeeded()) {
        const int64_t column = s.MBlocks() * kRows * kRows * int64_t(sizeof(Out));   // of fractals of C
        const Region result{c.Address(), uint64_t(s.m) * kRows * sizeof(Out), uint32_t(s.NBlocks()), 1, column, 0};
        instruction.operands = {c.AsOperand("dst", reads ? Access::ReadWrite : Access::Write, result, 1024), MatrixA(a, s), MatrixB(b, s)};
        if (bias != nullptr)
            instruction.operands.push_back(bias->AsOperand("bias", Access::Read, {bias->Address(), uint64_t(s.n) * sizeof(Out)}, 64));
    }
    if (p.unitFlag != 0) core.UnitFlag(Pipe::FIX, Pipe::M);
    Out* to = c.Host();
    const In* left = a.Host();
    const In* right = b.Host();
    const Out* start = bias != nullptr ? bias->Host() : nullptr;
    core.Issue(instruction, [=] {
        if constexpr ((kFloatOperand<In> && std::is_same_v<Out, float>) || (std::is_same_v<In, int8_t> && std::is_same_v<Out, int32_t>))
            Multiply(to, left, right, start, s, fromZero, hf32, truncates);
    });
}

}  // namespace sim::cube

namespace AscendC {

template <typename T, typename U, typename S>
void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter, const MmadParams& mmadParams,
          sim::Location where = sim::Location::Here()) {
    static_assert(std::is_same_v<U, S>, "Mmad multiplies matrices of one type");
    sim::cube::Issue<T, U>(dst, fm, filter, nullptr, mmadParams, where);
}
template <typename T, typename U, typename S, typename V>
void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter, const LocalTensor<V>& bias,
          const MmadParams& mmadParams, sim::Location where = sim::Location::Here()) {
    static_assert(std::is_same_v<U, S>, "Mmad multiplies matrices of one type");
    static_assert(std::is_same_v<T, V>, "the bias in C2 has the type of dst");
    sim::cube::Issue<T, U>(dst, fm, filter, &bias, mmadParams, where);
}

// Float operands of later Mmad lose 13 bits of mantissa and gain speed. The documents name two roundings without saying which one
// `true` is; public reference code truncates, and so does `true` here (facts on mHC, 4.5).
inline void SetHF32Mode(bool hf32Mode) { sim::Core::Current().hf32 = hf32Mode; }
inline void SetHF32TransMode(bool hf32TransMode) { sim::Core::Current().hf32Truncates = hf32TransMode; }
inline void SetMMLayoutTransform(bool) {}   // the order in which L0C is written: neither values nor modelled time change

}  // namespace AscendC
