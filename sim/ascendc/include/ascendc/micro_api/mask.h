// Mask registers (facts 6.3).
#pragma once

#include "ascendc/micro_api/lanes.h"

namespace AscendC::Reg {

namespace regimpl {

template <typename T, const RegTrait& trait>
inline constexpr uint32_t kMaskStepOf = RegTensor<T, trait>::kMaskStep;

// The first `lanes` lanes of `step` bits.
template <uint32_t step>
inline MaskReg FirstLanes(uint32_t lanes) {
    MaskReg mask;
    constexpr uint32_t perWord = 64 / step;
    for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t here = lanes <= i * perWord ? 0 : lanes - i * perWord;
        mask.word[i] = here >= perWord ? FirstBits(step) : FirstBits(step) & ((1ull << (here * step)) - 1);
    }
    return mask;
}
template <uint32_t step>
inline MaskReg EveryNth(uint32_t n) {
    MaskReg mask;
    for (uint32_t i = 0; i < VECTOR_REG_WIDTH / step; i += n) mask.SetBit(i * step, true);
    return mask;
}
template <typename F>
REG_INLINE inline void MapWords(MaskReg& dst, const char* api, sim::Location where, F f) {
    sim::InVectorFunction(api, where).Spend(kSingleIssue);
    MaskReg result;
    for (int i = 0; i < 4; ++i) result.word[i] = f(i);
    dst = result;
}

}  // namespace regimpl

template <typename T, MaskPattern mode = MaskPattern::ALL, const RegTrait& regTrait = RegTraitNumOne>
inline MaskReg CreateMask(sim::Location where = sim::Location::Here()) {
    constexpr uint32_t step = regimpl::kMaskStepOf<T, regTrait>, lanes = VECTOR_REG_WIDTH / step;
    sim::InVectorFunction("CreateMask", where).Spend(regimpl::kSingleIssue);
    switch (mode) {
        case MaskPattern::ALL: return regimpl::FirstLanes<step>(lanes);
        case MaskPattern::VL1: return regimpl::FirstLanes<step>(1);
        case MaskPattern::VL2: return regimpl::FirstLanes<step>(2);
        case MaskPattern::VL3: return regimpl::FirstLanes<step>(3);
        case MaskPattern::VL4: return regimpl::FirstLanes<step>(4);
        case MaskPattern::VL8: return regimpl::FirstLanes<step>(8);
        case MaskPattern::VL16: return regimpl::FirstLanes<step>(16);
        case MaskPattern::VL32: return regimpl::FirstLanes<step>(32);
        case MaskPattern::VL64: return regimpl::FirstLanes<step>(64);
        case MaskPattern::VL128: return regimpl::FirstLanes<step>(128);
        case MaskPattern::M3: return regimpl::EveryNth<step>(3);
        case MaskPattern::M4: return regimpl::EveryNth<step>(4);
        case MaskPattern::H: return regimpl::FirstLanes<step>(lanes / 2);
        case MaskPattern::Q: return regimpl::FirstLanes<step>(lanes / 4);
        default: return MaskReg{};
    }
}

// The first min(n, lanes) lanes; n loses as many.
template <typename T, const RegTrait& regTrait = RegTraitNumOne>
inline MaskReg UpdateMask(uint32_t& n, sim::Location where = sim::Location::Here()) {
    constexpr uint32_t step = regimpl::kMaskStepOf<T, regTrait>, lanes = VECTOR_REG_WIDTH / step;
    sim::InVectorFunction("UpdateMask", where).Spend(regimpl::kSingleIssue);
    const uint32_t active = n < lanes ? n : lanes;
    n -= active;
    return regimpl::FirstLanes<step>(active);
}

// The mask of the LocalTensor instructions (SetVectorMask).
template <typename T, const RegTrait& regTrait = RegTraitNumOne>
inline MaskReg MoveMask(sim::Location where = sim::Location::Here()) {
    constexpr uint32_t step = regimpl::kMaskStepOf<T, regTrait>, lanes = VECTOR_REG_WIDTH / step;
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "MoveMask: needs a 16- or 32-bit type");
    const auto& mask = sim::InVectorFunction("MoveMask", where).core().mask;
    MaskReg result;
    for (uint32_t i = 0; i < lanes; ++i) result.SetBit(i * step, (i < 64 ? mask.low >> i : mask.high >> (i - 64)) & 1);
    return result;
}

#define REG_MASK_BINARY(Name, Word)                                                                                        \
    inline void Mask##Name(MaskReg& dst, MaskReg& src0, MaskReg& src1, MaskReg& mask,                                      \
                           sim::Location where = sim::Location::Here()) {                                                  \
        regimpl::MapWords(dst, "Mask" #Name, where, [&](int i) { return (Word) & mask.word[i]; });                          \
    }                                                                                                                      \
    inline void Name(MaskReg& dst, MaskReg& src0, MaskReg& src1, MaskReg& mask,                                            \
                     sim::Location where = sim::Location::Here()) {                                                        \
        Mask##Name(dst, src0, src1, mask, where);                                                                          \
    }
REG_MASK_BINARY(And, src0.word[i] & src1.word[i])
REG_MASK_BINARY(Or, src0.word[i] | src1.word[i])
REG_MASK_BINARY(Xor, src0.word[i] ^ src1.word[i])
#undef REG_MASK_BINARY

inline void MaskNot(MaskReg& dst, MaskReg& src, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    regimpl::MapWords(dst, "MaskNot", where, [&](int i) { return ~src.word[i] & mask.word[i]; });
}
inline void Not(MaskReg& dst, MaskReg& src, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    MaskNot(dst, src, mask, where);
}
inline void MaskMov(MaskReg& dst, MaskReg& src, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    regimpl::MapWords(dst, "MaskMov", where, [&](int i) { return src.word[i] & mask.word[i]; });
}
inline void MaskMov(MaskReg& dst, MaskReg& src, sim::Location where = sim::Location::Here()) {
    regimpl::MapWords(dst, "MaskMov", where, [&](int i) { return src.word[i]; });
}
inline void Move(MaskReg& dst, MaskReg& src, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    MaskMov(dst, src, mask, where);
}
inline void Move(MaskReg& dst, MaskReg& src, sim::Location where = sim::Location::Here()) { MaskMov(dst, src, where); }
// src0 where the mask is on, src1 elsewhere
inline void MaskSel(MaskReg& dst, MaskReg& src0, MaskReg& src1, MaskReg& mask,
                    sim::Location where = sim::Location::Here()) {
    regimpl::MapWords(dst, "MaskSel", where,
                     [&](int i) { return (src0.word[i] & mask.word[i]) | (src1.word[i] & ~mask.word[i]); });
}
inline void Select(MaskReg& dst, MaskReg& src0, MaskReg& src1, MaskReg& mask,
                   sim::Location where = sim::Location::Here()) {
    MaskSel(dst, src0, src1, mask, where);
}

// Lanes of the two sources in turn, the lower halves to dst0 and the upper ones to dst1.
template <typename T>
inline void MaskInterleave(MaskReg& dst0, MaskReg& dst1, MaskReg& src0, MaskReg& src1,
                           sim::Location where = sim::Location::Here()) {
    sim::InVectorFunction("MaskInterleave", where).Spend(regimpl::kSingleIssue);
    MaskReg out[2];
    for (uint32_t bit = 0; bit < 256; ++bit) {
        const uint32_t lane = bit / sizeof(T), part = bit % sizeof(T);
        const uint32_t to = 2 * lane * sizeof(T) + part;
        out[to / 256].SetBit(to % 256, src0.Bit(bit));
        out[(to + sizeof(T)) / 256].SetBit((to + sizeof(T)) % 256, src1.Bit(bit));
    }
    dst0 = out[0];
    dst1 = out[1];
}
template <typename T>
inline void MaskDeInterleave(MaskReg& dst0, MaskReg& dst1, MaskReg& src0, MaskReg& src1,
                             sim::Location where = sim::Location::Here()) {
    sim::InVectorFunction("MaskDeInterleave", where).Spend(regimpl::kSingleIssue);
    const MaskReg in[2] = {src0, src1};
    for (uint32_t bit = 0; bit < 256; ++bit) {
        const uint32_t lane = bit / sizeof(T), part = bit % sizeof(T);
        const uint32_t from = 2 * lane * sizeof(T) + part;
        dst0.SetBit(bit, in[from / 256].Bit(from % 256));
        dst1.SetBit(bit, in[(from + sizeof(T)) / 256].Bit((from + sizeof(T)) % 256));
    }
}

// Every second bit, packed into the lower or upper half; a b32 mask becomes a b16 one.
template <HighLowPart part = HighLowPart::LOWEST>
inline void MaskPack(MaskReg& dst, MaskReg& src, sim::Location where = sim::Location::Here()) {
    sim::InVectorFunction("MaskPack", where).Spend(regimpl::kSingleIssue);
    MaskReg result;
    for (uint32_t i = 0; i < 128; ++i) result.SetBit(i + (part == HighLowPart::HIGHEST ? 128 : 0), src.Bit(2 * i));
    dst = result;
}
template <HighLowPart part = HighLowPart::LOWEST>
inline void MaskUnPack(MaskReg& dst, MaskReg& src, sim::Location where = sim::Location::Here()) {
    sim::InVectorFunction("MaskUnPack", where).Spend(regimpl::kSingleIssue);
    MaskReg result;
    for (uint32_t i = 0; i < 128; ++i) result.SetBit(2 * i, src.Bit(i + (part == HighLowPart::HIGHEST ? 128 : 0)));
    dst = result;
}
template <HighLowPart part = HighLowPart::LOWEST>
inline void Pack(MaskReg& dst, MaskReg& src, sim::Location where = sim::Location::Here()) { MaskPack<part>(dst, src, where); }
template <HighLowPart part = HighLowPart::LOWEST>
inline void UnPack(MaskReg& dst, MaskReg& src, sim::Location where = sim::Location::Here()) {
    MaskUnPack<part>(dst, src, where);
}

// Lane i is on when bit i of the `group`-th run of lane-count bits of the register is 1.
template <typename T, int16_t group, typename U, typename = IfRegisters<U>>
inline void MaskGenWithRegTensor(MaskReg& dst, U& src, sim::Location where = sim::Location::Here()) {
    constexpr uint32_t lanes = VECTOR_REG_WIDTH / sizeof(T);
    static_assert(group >= 0 && (group + 1) * lanes <= VECTOR_REG_WIDTH * 8, "MaskGenWithRegTensor: no such group of bits");
    sim::InVectorFunction("MaskGenWithRegTensor", where).Spend(regimpl::kSingleIssue);
    const auto* bytes = reinterpret_cast<const uint8_t*>(src.lane);
    MaskReg result;
    for (uint32_t i = 0; i < lanes; ++i) {
        const uint32_t bit = group * lanes + i;
        result.SetBit(i * sizeof(T), bytes[bit / 8] >> (bit % 8) & 1);
    }
    dst = result;
}

}  // namespace AscendC::Reg
