// Casts between register types (facts 6.6). A narrow element sits in part 0..3 (RegLayout) of the slot of a wide one; the
// mask is read at the source element's bit.
#pragma once

#include "ascendc/micro_api/math.h"

namespace AscendC::Reg {

namespace regimpl {

// v rounded to the float type D in a mode other than to-nearest-even: the nearest value, moved to its neighbour if it
// lies on the wrong side.
template <typename D, RoundMode mode, typename W>
REG_INLINE inline D RoundTo(W v) {
    using U = Uint<sizeof(D)>;
    constexpr U sign = U(U(1) << (sizeof(D) * 8 - 1));
    const D nearest = Narrow<D>(v);
    U bits = Bits<U>(nearest);
    const W back = static_cast<W>(Widen(nearest)), size = v < 0 ? -v : v, backSize = back < 0 ? -back : back;
    if (v != v || back == v) return nearest;
    const bool negative = bits & sign;
    if constexpr (mode == RoundMode::CAST_FLOOR) {
        if (back > v) bits = U(negative ? bits + 1 : bits - 1);
    } else if constexpr (mode == RoundMode::CAST_CEIL) {
        if (back < v) bits = U(negative ? bits - 1 : bits + 1);
    } else if constexpr (mode == RoundMode::CAST_TRUNC || mode == RoundMode::CAST_ODD) {
        if (backSize > size) bits = U(bits - 1);
        if (mode == RoundMode::CAST_ODD) bits |= 1;
    } else if constexpr (mode == RoundMode::CAST_ROUND) {   // a tie that went down to even goes away from zero
        const W next = static_cast<W>(Widen(Bits<D>(U((bits & U(~sign)) + 1))));
        if (backSize < size && size - backSize == next - size) bits = U(bits + 1);
    }
    return Bits<D>(bits);
}

template <typename D> constexpr D Lowest() { return std::is_signed_v<D> ? D(D(1) << (sizeof(D) * 8 - 1)) : D(0); }
template <typename D> constexpr D Highest() { return D(~Lowest<D>()); }

template <typename D, typename S, RoundMode mode, SatMode sat>
REG_INLINE inline D Convert(S source) {
    const auto value = Widen(source);
    constexpr bool nearest = mode == RoundMode::CAST_RINT || mode == RoundMode::CAST_NONE || mode == RoundMode::UNKNOWN;
    if constexpr (kInteger<D> && kInteger<S>) {
        if constexpr (sizeof(D) < sizeof(S) && sat != SatMode::NO_SAT) {
            const auto low = Widen(source) < Lowest<D>(), high = Widen(source) > Highest<D>();
            return low ? Lowest<D>() : high ? Highest<D>() : D(value);
        } else {
            return static_cast<D>(value);
        }
    } else if constexpr (kInteger<D>) {
        const double whole = Integral<mode>(value);   // exact
        if constexpr (sat == SatMode::NO_SAT) {
            const double inRange = whole >= -9.2e18 && whole <= 9.2e18 ? whole : 0.0;   // NaN and far away: 0
            return static_cast<D>(static_cast<int64_t>(inRange));
        } else {
            constexpr double low = double(Lowest<D>()), high = double(Highest<D>());
            const double clamped = whole < low ? low : whole > high ? high : whole != whole ? 0.0 : whole;
            return sizeof(D) == 8 && whole >= high ? Highest<D>() : static_cast<D>(clamped);
        }
    } else if constexpr (std::is_same_v<D, float> && !kInteger<S>) {
        return value;
    } else {
        using Wide = std::conditional_t<kInteger<S>, double, float>;
        const Wide wide = static_cast<Wide>(value);
        D result;
        if constexpr (nearest) result = Narrow<D>(wide);
        else result = RoundTo<D, mode>(wide);
        if constexpr (sat == SatMode::SAT && sizeof(D) == 2) {   // the largest finite value in place of infinity
            constexpr uint16_t infinity = std::is_same_v<D, half> ? 0x7c00 : 0x7f80;
            const uint16_t bits = Bits<uint16_t>(result);
            result = Bits<D>(uint16_t((bits & 0x7fff) == infinity && wide - wide == 0 ? bits - 1 : bits));
        }
        return result;
    }
}

// One slot of max(sizeof(D), sizeof(S)) bytes at a time.
template <typename D, typename S, const CastTrait& trait, uint32_t part, uint32_t slots, typename Slot>
REG_LOOP void CastSlots(Slot* dst, const Slot* src, uint32_t count) {
    constexpr uint32_t shift = part * 8 * (sizeof(D) < sizeof(S) ? sizeof(D) : sizeof(S));
    FillPrefix<slots>(dst, count, false, [src](uint32_t i) REG_INLINE {
        const Slot in = sizeof(S) < sizeof(Slot) ? Slot(src[i] >> shift) : src[i];
        const D value = Convert<D, S, trait.roundMode, trait.satMode>(Bits<S>(Uint<sizeof(S)>(in)));
        const Slot out = Slot(Bits<Uint<sizeof(D)>>(value));
        return sizeof(D) < sizeof(Slot) ? Slot(out << shift) : out;
    });
}

}  // namespace regimpl

template <typename T = DefaultType, typename U = DefaultType, const CastTrait& trait = castTrait, typename S, typename V,
          typename = IfRegisters<S, V>>
REG_INLINE inline void Cast(S& dst, V& src, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    using Dst = typename S::ActualT;
    using Src = typename V::ActualT;
    static_assert(regimpl::kNames<T, S> && regimpl::kNames<U, V>, "Cast: T, U are not the types of the registers");
    static_assert(regimpl::kNumberOrBf16<Dst> && regimpl::kNumberOrBf16<Src>, "Cast: types not supported on arch 3510");
    static_assert(S::kBytes == V::kBytes, "Cast: registers of different size");
    constexpr bool narrowing = sizeof(Dst) < sizeof(Src), same = sizeof(Dst) == sizeof(Src);
    constexpr uint32_t ratio = narrowing ? sizeof(Src) / sizeof(Dst) : sizeof(Dst) / sizeof(Src);
    static_assert(ratio <= 4, "Cast: types more than four times apart");
    static_assert(same ? trait.layoutMode == RegLayout::UNKNOWN
                       : trait.layoutMode >= RegLayout::ZERO && static_cast<uint32_t>(trait.layoutMode) < ratio,
                  "Cast: RegLayout must be UNKNOWN for types of one width, else name one of the parts of a slot");
    static_assert(regimpl::kInteger<Src> || std::is_same_v<Dst, float> || trait.roundMode != RoundMode::UNKNOWN,
                  "Cast: this conversion rounds, name the RoundMode");
    static_assert(trait.roundMode != RoundMode::CAST_HYBRID, "Cast: CAST_HYBRID is for hifloat8");

    using Slot = regimpl::Uint<(narrowing ? sizeof(Src) : sizeof(Dst))>;
    constexpr uint32_t part = same ? 0 : static_cast<uint32_t>(trait.layoutMode), slots = S::kBytes / sizeof(Slot);
    constexpr uint32_t step = VECTOR_REG_WIDTH / slots, partBits = step / ratio;
    constexpr bool merging = trait.mrgMode == MaskMergeMode::MERGING;
    sim::RegCost cost;
    cost.slots = !regimpl::kInteger<Src> && regimpl::kInteger<Dst> ? 2 : sizeof(Slot) == 8 ? 4 : 1;
    sim::InVectorFunction("Cast", where).Spend(cost);

    MaskReg active = mask;
    if constexpr (!narrowing && part != 0)
        for (uint64_t& word : active.word) word >>= part * partBits;
    auto* out = reinterpret_cast<Slot*>(dst.lane);
    const auto* in = reinterpret_cast<const Slot*>(src.lane);
    sim::Taint taint = src.taint;
    if (taint.Any()) {   // to and from the part of the slot
        const uint64_t partMask = regimpl::FirstBits(step) * ((1ull << (partBits - 1) << 1) - 1) << (part * partBits);
        if constexpr (!narrowing) for (uint64_t& word : taint.word) word &= partMask;
        taint = regimpl::MaskedTaint<step>(taint, active, false, sim::Taint{});
        if constexpr (narrowing) for (uint64_t& word : taint.word) word &= partMask;
    }
    const int32_t prefix = merging ? -1 : regimpl::PrefixLanes<step>(active);
    if (prefix >= 0) {
        regimpl::CastSlots<Dst, Src, trait, part, slots>(out, in, uint32_t(prefix));
        dst.taint = taint;
        return;
    }
    alignas(64) Slot result[slots];
    regimpl::CastSlots<Dst, Src, trait, part, slots>(result, in, slots);
    if constexpr (merging && narrowing) {   // the other parts stay too
        const Slot keep = Slot(~(Slot(regimpl::Uint<sizeof(Dst)>(~0ull)) << (part * 8 * sizeof(Dst))));
        for (uint32_t i = 0; i < slots; ++i) result[i] |= out[i] & keep;
    }
    regimpl::Blend<slots, step>(out, result, active, merging);
    dst.taint = merging ? regimpl::Join(taint, dst.taint) : taint;
}

// exp(a - b) in float; half sources come from part ZERO or ONE of their slots.
template <typename T = DefaultType, typename U = DefaultType, RegLayout layout = RegLayout::ZERO,
          auto mode = MaskMergeMode::ZEROING, typename S, typename V, typename = IfRegisters<S, V>>
inline void ExpSub(S& dst, V& src0, V& src1, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    using Src = typename V::ActualT;
    static_assert(regimpl::kNames<T, S> && regimpl::kNames<U, V>, "ExpSub: T, U are not the types of the registers");
    static_assert(std::is_same_v<typename S::ActualT, float> && regimpl::kFloating<Src>,
                  "ExpSub: float from float or half");
    sim::InVectorFunction("ExpSub", where).Spend(regimpl::SlowCost<S>(16));
    constexpr uint32_t ratio = sizeof(float) / sizeof(Src), part = ratio == 1 ? 0 : static_cast<uint32_t>(layout);
    RegTensor<float> a, b;
    for (uint32_t i = 0; i < 64; ++i) {
        a.lane[i] = regimpl::Widen(src0.lane[i * ratio + part]);
        b.lane[i] = regimpl::Widen(src1.lane[i * ratio + part]);
    }
    a.taint = regimpl::SpreadTaint<4>(src0.taint);
    b.taint = regimpl::SpreadTaint<4>(src1.taint);
    MaskReg active = mask;
    for (uint64_t& word : active.word) word >>= part * sizeof(Src);
    regimpl::Apply<regimpl::Merging<mode>()>(dst, active, [](float x, float y) REG_INLINE { return sim::Exponential(x - y); }, a, b);
}
template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename U, typename = IfRegisters<U>>
inline void FusedExpSub(U& dst, U& src0, U& src1, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    ExpSub<T, DefaultType, RegLayout::ZERO, mode>(dst, src0, src1, mask, where);
}

// half(src * scalar), in part ZERO or ONE of the float slots.
template <typename T = DefaultType, typename U = DefaultType, typename W = DefaultType, RegLayout layout = RegLayout::ZERO,
          auto mode = MaskMergeMode::ZEROING, typename S, typename V, typename X, typename = IfRegisters<S, V>,
          typename = IfScalar<X>>
inline void MulsCast(S& dst, V& src, X scalar, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    static_assert(std::is_same_v<typename S::ActualT, half> && std::is_same_v<typename V::ActualT, float>,
                  "MulsCast: half from float");
    static constexpr CastTrait kRint{layout, SatMode::NO_SAT, regimpl::Merging<mode>() ? MaskMergeMode::MERGING
                                                                                     : MaskMergeMode::ZEROING,
                                     RoundMode::CAST_RINT};
    V product;
    const float s = static_cast<float>(scalar);
    regimpl::Apply<false>(product, mask, [s](float a) REG_INLINE { return a * s; }, src);
    Cast<half, float, kRint>(dst, product, mask, where);
}

}  // namespace AscendC::Reg
