// Fixpipe: L0C -> GM or L1 on FIX, converting the type and the layout on the way.
#pragma once

#include "ascendc/cube_mmad.h"

namespace sim::cube {

using AscendC::CO2Layout;

// One element on its way out.
template <typename Out, typename In>
Out Convert(In value, AscendC::QuantMode_t mode, float scale, bool relu) {
    if (relu && !(value > In(0))) value = In(0);
    if constexpr (std::is_same_v<Out, In>) return value;
    else if constexpr (std::is_same_v<Out, int8_t> || std::is_same_v<Out, uint8_t>) {
        const float scaled = __builtin_nearbyintf(float(value) * scale);
        constexpr float low = std::is_signed_v<Out> ? -128 : 0, high = std::is_signed_v<Out> ? 127 : 255;
        return static_cast<Out>(scaled < low ? low : scaled > high ? high : scaled);
    } else {
        return vec::Narrow<Out>(mode == AscendC::DEQF16 ? float(value) * scale : float(value));
    }
}

template <typename Out, typename In>
constexpr bool Converts(AscendC::QuantMode_t mode) {
    constexpr bool fromFloat = std::is_same_v<In, float>, fromInt = std::is_same_v<In, int32_t>;
    constexpr bool toByte = std::is_same_v<Out, int8_t> || std::is_same_v<Out, uint8_t>;
    switch (mode) {
        case AscendC::NoQuant: return std::is_same_v<Out, In> && (fromFloat || fromInt);
        case AscendC::F322F16: return fromFloat && std::is_same_v<Out, half>;
        case AscendC::F322BF16: return fromFloat && std::is_same_v<Out, bfloat16_t>;
        case AscendC::DEQF16: return fromInt && std::is_same_v<Out, half>;
        case AscendC::QF322B8_PRE: return fromFloat && toByte;
        case AscendC::REQ8: return fromInt && toByte;
        default: return false;
    }
}

struct Drain {
    int64_t n, m, srcPitch, dstPitch;        // pitches: bytes between columns of fractals in L0C; dst see `format`
    int64_t matrices, srcMatrix, dstMatrix;  // bytes
    int64_t width;                           // elements of a row of an NZ column
    CO2Layout format;
};

template <typename Out, typename In, typename Dst>
void Issue(const Dst& dst, const LocalTensor<In>& src, const AscendC::FixpipeParamsV220& p, CO2Layout format, bool strideInElements,
           Location where) {
    constexpr const char* kApi = "Fixpipe";
    constexpr int64_t kOut = sizeof(Out);
    Core& core = Core::Current();
    const bool toGm = dst.Where() == Memory::GM, nz = format == CO2Layout::NZ;
    CheckMemory(kApi, "src", src.Where(), src.Where() == Memory::L0C, "L0C (CO1)", where);
    CheckMemory(kApi, "dst", dst.Where(), toGm || dst.Where() == Memory::L1, "GM or L1", where);
    if (!toGm && !nz) core.Fail(Rule::Argument, kApi, "dst", "L1 takes the NZ layout (CFG_NZ) only", where);
    if (!Converts<Out, In>(p.quantPre))
        core.Fail(Rule::Dtype, kApi, "quantPre", std::string("quantPre does not convert ") + DtypeName<In>() + " to " + DtypeName<Out>() +
                  "; modelled are NoQuant, F322F16, F322BF16, DEQF16, QF322B8_PRE and REQ8", where);
    CheckField(kApi, Rule::RepeatLimit, "nSize", p.nSize, 1, 4095, "", where);
    CheckField(kApi, Rule::RepeatLimit, "mSize", p.mSize, 1, nz ? 65535 : 8192, "", where);
    CheckField(kApi, Rule::StrideLimit, "srcStride", p.srcStride, 0, 65535, " rows", where);
    CheckField(kApi, Rule::RepeatLimit, "ndNum", p.ndNum, 1, 65535, "", where);
    CheckField(kApi, Rule::StrideLimit, "dstStride", p.dstStride, 1, UINT32_MAX, "", where);
    if (p.unitFlag != 0 && p.unitFlag != 2 && p.unitFlag != 3)
        core.Fail(Rule::Argument, kApi, "unitFlag", "unitFlag is " + std::to_string(p.unitFlag) + ", it must be 0, 2 or 3", where);
    if (p.srcStride < p.mSize)
        core.Fail(Rule::Argument, kApi, "srcStride", "srcStride is " + std::to_string(p.srcStride) + " rows, less than mSize " +
                  std::to_string(p.mSize) + ": columns of fractals would overlap", where);
    if (p.isChannelSplit && (!nz || kOut != 4))
        core.Fail(Rule::Argument, kApi, "isChannelSplit", "isChannelSplit is for float in the NZ layout", where);
    Drain d;
    d.n = p.nSize, d.m = p.mSize, d.format = format;
    d.matrices = nz ? 1 : p.ndNum;
    d.srcPitch = p.srcStride * kRows * int64_t(sizeof(In));
    d.width = nz ? (kOut == 1 ? 2 * kRows : p.isChannelSplit ? kRows / 2 : kRows) : kRows;
    d.dstPitch = p.dstStride * (nz && !strideInElements ? kRow : kOut);
    d.srcMatrix = p.srcNdStride * 1024;
    d.dstMatrix = p.dstNdStride * kOut;
    const int64_t columns = CeilDiv(d.n, kRows), groups = CeilDiv(d.n, d.width), lines = format == CO2Layout::COLUMN_MAJOR ? d.n : d.m;
    Instruction instruction{kApi, Pipe::FIX, toGm ? Cost::L0cToGm : Cost::L0cToL1, uint64_t(d.matrices * d.m * d.n * kOut), where, {}};
    const int atomicMode = toGm ? core.atomicMode : 0, atomicType = core.atomicType;
    const int64_t line = nz ? d.m * d.width : format == CO2Layout::ROW_MAJOR ? d.n : d.m;   // elements side by side in dst
    const Region written{dst.Address(), uint64_t(line * kOut), uint32_t(nz ? groups : lines), 1, d.dstPitch, 0};
    if (toGm || core.OperandsNeeded())
        instruction.operands.push_back(Repeated(dst.AsOperand("dst", Access::Write, written), d.matrices, d.dstMatrix));
    if (core.OperandsNeeded()) {
        Operand from = src.AsOperand("src", Access::Read, {}, 64);
        for (int64_t i = 0; i < d.matrices; ++i) {
            const uint64_t a = src.Address() + uint64_t(i * d.srcMatrix);
            // The last columns of fractals may be partly used: only the elements that leave are read.
            const int64_t full = d.n / kRows, rest = d.n % kRows;
            if (full > 0) from.more.push_back({a, uint64_t(d.m * kRows) * sizeof(In), uint32_t(full), 1, d.srcPitch, 0});
            if (rest > 0)
                from.more.push_back({a + uint64_t(full * d.srcPitch), uint64_t(rest) * sizeof(In), uint32_t(d.m), 1,
                                     kRows * int64_t(sizeof(In)), 0});
        }
        from.region = from.more[0];
        from.more.erase(from.more.begin());
        instruction.operands.push_back(from);
        if (toGm) dma::TellDataCache(core, kApi, instruction.operands[0], where);
    }
    if (p.unitFlag != 0) core.UnitFlag(Pipe::M, Pipe::FIX);
    float scale = 1;
    std::memcpy(&scale, &p.deqScalar, sizeof scale);
    uint8_t* to = reinterpret_cast<uint8_t*>(dst.Host());
    const uint8_t* from = reinterpret_cast<const uint8_t*>(src.Host());
    const auto mode = p.quantPre;
    const bool relu = p.reluEn;
    core.Issue(instruction, [=] {
        for (int64_t i = 0; i < d.matrices; ++i)
            for (int64_t r = 0; r < d.m; ++r)
                for (int64_t c = 0; c < (nz ? groups * d.width : d.n); ++c) {
                    In value{};
                    if (c / kRows < columns && c < d.n)
                        std::memcpy(&value, from + i * d.srcMatrix + c / kRows * d.srcPitch + (r * kRows + c % kRows) * int64_t(sizeof(In)),
                                    sizeof value);
                    const Out out = Convert<Out>(value, mode, scale, relu);
                    const int64_t at = nz ? c / d.width * d.dstPitch + (r * d.width + c % d.width) * kOut
                                       : d.format == CO2Layout::ROW_MAJOR ? r * d.dstPitch + c * kOut : c * d.dstPitch + r * kOut;
                    uint8_t* target = to + i * d.dstMatrix + at;
                    if (atomicMode != 0) dma::AtomicCopy(atomicMode, atomicType, target, reinterpret_cast<const uint8_t*>(&out), kOut);
                    else std::memcpy(target, &out, sizeof out);
                }
    });
}

#if __NPU_ARCH__ == 3510
template <CO2Layout format>
AscendC::FixpipeParamsV220 Common(const AscendC::FixpipeParamsC310<format>& p, Location where) {
    if (p.dualDstCtl != 0)
        Core::Current().Fail(Rule::Argument, "Fixpipe", "dualDstCtl", "L0C -> UB of both vector cores is not modelled", where);
    AscendC::FixpipeParamsV220 common;
    common.nSize = p.nSize, common.mSize = p.mSize, common.srcStride = p.srcStride, common.dstStride = p.dstStride;
    common.quantPre = p.quantPre, common.deqScalar = p.deqScalar, common.reluEn = p.reluEn, common.unitFlag = p.unitFlag;
    common.isChannelSplit = p.isChannelSplit;
    common.ndNum = p.params.ndNum, common.srcNdStride = p.params.srcNdStride, common.dstNdStride = p.params.dstNdStride;
    return common;
}
#endif

}  // namespace sim::cube

namespace AscendC {

template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& intriParams,
             sim::Location where = sim::Location::Here()) {
    sim::cube::Issue<T, U>(dst, src, intriParams, config.format, false, where);
}
template <typename T, typename U, const FixpipeConfig& config = CFG_NZ>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& intriParams,
             sim::Location where = sim::Location::Here()) {
    sim::cube::Issue<T, U>(dst, src, intriParams, config.format, false, where);
}
#if __NPU_ARCH__ == 3510
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsC310<config.format>& intriParams,
             sim::Location where = sim::Location::Here()) {
    sim::cube::Issue<T, U>(dst, src, sim::cube::Common(intriParams, where), config.format, true, where);
}
template <typename T, typename U, const FixpipeConfig& config = CFG_NZ>
void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsC310<config.format>& intriParams,
             sim::Location where = sim::Location::Here()) {
    sim::cube::Issue<T, U>(dst, src, sim::cube::Common(intriParams, where), config.format, true, where);
}
#endif

}  // namespace AscendC
