// Cast: the table of type pairs with their round modes, and what a conversion yields.
#pragma once

#include "ascendc/vec_unary.h"

namespace sim::vec {

using AscendC::RoundMode;

// --- the table: bit m is set when RoundMode m is accepted ---------------------------------------------------------
inline constexpr uint32_t kNone = 1, kFive = 0b111110, kSix = kNone | kFive, kOdd = 1 << 6;

constexpr uint32_t CastModes(Types dst, Types src) {
    const auto to = [dst](Types types) { return (dst & types) != 0; };
    uint32_t modes = 0;
    switch (src) {
        case kI8: modes = to(kHalf) ? kNone : kRegbase && to(kI16 | kI32) ? kNone : 0; break;
        case kU8: modes = to(kHalf) ? kNone : kRegbase && to(kU16 | kU32) ? kNone : 0; break;
        case kI16: modes = to(kHalf) ? kSix : to(kFloat) ? kNone : kRegbase && to(kU8 | kI32 | kU32) ? kNone : 0; break;
        case kU16: modes = kRegbase && to(kU8 | kU32) ? kNone : 0; break;
        case kU32: modes = kRegbase && to(kU8 | kU16 | kI16) ? kNone : 0; break;
        case kI32:
            modes = to(kFloat) ? kSix : to(kI16 | kI64 | kHalf) ? kNone : kRegbase && to(kU8 | kU16) ? kNone : 0;
            break;
        case kI64: modes = to(kI32) ? kNone : to(kFloat) ? kFive : 0; break;
        case kHalf:
            modes = to(kI8 | kU8) ? kSix : to(kI16 | kI32) ? kFive : to(kFloat) ? kNone : kRegbase && to(kBf16) ? kFive : 0;
            break;
        case kBf16: modes = to(kFloat) ? kNone : to(kI32) ? kFive : kRegbase && to(kHalf) ? kFive : 0; break;
        case kFloat: modes = to(kHalf) ? kSix | kOdd : to(kBf16 | kI16 | kI32 | kI64 | kFloat) ? kFive : 0; break;
    }
    return modes;
}

[[noreturn]] __attribute__((noinline, cold)) inline void FailCast(Types dst, Types src, RoundMode mode, Location where) {
    static constexpr const char* kModes[] = {"CAST_NONE", "CAST_RINT",  "CAST_FLOOR", "CAST_CEIL",
                                             "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"};
    std::string accepted;
    const char* what = "round mode";
    if (const uint32_t modes = CastModes(dst, src); modes != 0) {
        for (uint32_t m = 0; m < std::size(kModes); ++m)
            if (modes >> m & 1) (accepted += accepted.empty() ? "" : ", ") += kModes[m];
    } else {
        what = "type pair";
        Types reachable = 0;
        for (Types type = 1; type <= kAllTypes; type <<= 1)
            if (CastModes(type, src) != 0) reachable |= type;
        accepted = TypeNames(src) + " to " + (reachable ? TypeNames(reachable) : "nothing");
    }
    Core::Current().Fail(Rule::Dtype, "Cast", "",
                         Text("%s to %s with %s is not supported on %s: %s, supported are: %s", TypeNames(src).c_str(),
                              TypeNames(dst).c_str(),
                              uint32_t(mode) < std::size(kModes) ? kModes[uint32_t(mode)] : "this round mode", kArchName,
                              what, accepted.c_str()),
                         where);
}

// --- conversions ----------------------------------------------------------------------------------------------------
// By way of rint, which compilers vectorise on every host; a result of 0 keeps the sign of the value.
SIM_INLINE inline float RoundIntegral(float value, RoundMode mode) {
    const float even = __builtin_rintf(value);  // half to even
    const float one = __builtin_copysignf(1.0f, value);
    float result = even;
    if (mode == RoundMode::CAST_FLOOR) result = even > value ? even - 1.0f : even;
    if (mode == RoundMode::CAST_CEIL) result = even < value ? even + 1.0f : even;
    if (mode == RoundMode::CAST_TRUNC) result = __builtin_fabsf(even) > __builtin_fabsf(value) ? even - one : even;
    // half away from zero: differs from `even` where that is half a unit nearer to zero
    if (mode == RoundMode::CAST_ROUND) result = value - even == 0.5f * one ? even + one : even;
    return __builtin_copysignf(result, value);
}

// Integral float to integer: saturates, NaN becomes 0.
template <typename D>
SIM_INLINE inline D SaturateFloat(float value) {
    using Wide = std::conditional_t<(sizeof(D) < 4), int32_t, D>;
    // 2^(bits - 1), or 2^bits for unsigned types; the largest value below it is the bound for narrow types
    constexpr float kEnd = float(std::is_signed_v<D> ? 1ull << (8 * sizeof(D) - 1) : 1ull << (8 * sizeof(D) % 64));
    constexpr float kLow = std::is_signed_v<D> ? -kEnd : 0.0f;
    constexpr D kMost = D(std::make_unsigned_t<D>(-1) >> std::is_signed_v<D>);
    const float inside = value > kLow && value < kEnd ? value : kLow;
    const D low = value != value ? D(0) : D(Wide(inside));
    return value >= kEnd ? kMost : low;
}

template <typename T>
SIM_INLINE inline T Neighbour(T value, bool up) {  // next representable value of a float type; value is not the outermost one
    using Word = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
    const Word bits = Bits<Word>(value);
    const bool negative = bits >> (8 * sizeof(T) - 1);
    return Bits<T>(Word(negative == up ? bits - 1 : bits + 1));
}

// Rounds to a float type that cannot hold every `Exact`; `nearest` is the nearest-even result.
template <typename D, typename Exact>
SIM_INLINE inline D RoundedTo(Exact exact, D nearest, RoundMode mode) {
    const Exact back = static_cast<Exact>(Widen(nearest));
    if (back == exact || exact != exact || mode == RoundMode::CAST_RINT || mode == RoundMode::CAST_NONE) return nearest;
    const D lower = back > exact ? Neighbour(nearest, false) : nearest;
    const D upper = back > exact ? nearest : Neighbour(nearest, true);
    switch (mode) {
        case RoundMode::CAST_FLOOR: return lower;
        case RoundMode::CAST_CEIL: return upper;
        case RoundMode::CAST_TRUNC: return exact > 0 ? lower : upper;
        case RoundMode::CAST_ROUND: {
            const bool tie = exact - static_cast<Exact>(Widen(lower)) == static_cast<Exact>(Widen(upper)) - exact;
            return tie ? exact > 0 ? upper : lower : nearest;
        }
        default:  // CAST_ODD, to half: an inexact result has its last bit set
            if constexpr (sizeof(D) == 2) return Bits<uint16_t>(lower) & 1 ? lower : upper;
            return nearest;
    }
}

// A lane of S, widened, to D.
template <typename D, typename S, typename V>
SIM_INLINE inline D Converted(V value, RoundMode mode) {
    constexpr bool kIntegers = std::is_integral_v<D> && std::is_integral_v<S>;
    if constexpr (kIntegers) {
        using Wide = std::conditional_t<(sizeof(D) < 4 && sizeof(S) < 4), int32_t, int64_t>;
        if constexpr (sizeof(D) > sizeof(S)) return D(value);
        else return Saturate<D>(Wide(value));
    } else if constexpr (std::is_integral_v<D>) {
        return SaturateFloat<D>(RoundIntegral(value, mode));
    } else if constexpr (std::is_same_v<D, float> && std::is_same_v<S, float>) {
        return RoundIntegral(value, mode);
    } else {
        if (mode == RoundMode::CAST_RINT) return Narrow<D>(static_cast<float>(value));
        using Exact = std::conditional_t<sizeof(S) == 8, long double, double>;
        return RoundedTo<D>(static_cast<Exact>(value), Narrow<D>(static_cast<float>(value)), mode);
    }
}

}  // namespace sim::vec

namespace AscendC {

namespace detail {

// Inlined, so that the loops of other round modes than the literal one are not compiled.
template <typename T, typename U>
SIM_INLINE inline void CastLanes(const sim::vec::Form& form, const LocalTensor<T>& dst, const LocalTensor<U>& src, RoundMode mode,
               const UnaryRepeatParams& params, sim::Location where) {
    using namespace sim::vec;
    constexpr uint32_t kModes = CastModes(TypeOf<T>(), TypeOf<U>());
    static constexpr Entry entry{"Cast", 0, 0,
                                 sizeof(T) == 8 || sizeof(U) == 8 ? sim::Cost::VectorCast64 : sim::Cost::VectorCast};
    if (uint32_t(mode) > 6 || (kModes >> uint32_t(mode) & 1) == 0) FailCast(TypeOf<T>(), TypeOf<U>(), mode, where);
    if constexpr (kModes == 0) {
        return;
    } else if constexpr (std::is_same_v<T, half> && std::is_same_v<U, int32_t>) {
        // dst = src * the scale of SetDeqScale
        Unary(entry, form, dst, src, params, where, [scale = sim::Core::Current().deqScale](auto a) SIM_INLINE {
            return float(a) * scale;
        });
    } else {
        const auto cast = [&](auto constant) SIM_INLINE {  // one loop per round mode: it vectorises
            Unary(entry, form, dst, src, params, where,
                  [](auto a) SIM_INLINE { return Converted<T, U>(a, decltype(constant)::value); });
        };
        using Mode = RoundMode;
        if constexpr (kModes == kNone) {
            cast(std::integral_constant<Mode, Mode::CAST_RINT>{});
        } else {
            switch (mode) {
                case Mode::CAST_FLOOR: return cast(std::integral_constant<Mode, Mode::CAST_FLOOR>{});
                case Mode::CAST_CEIL: return cast(std::integral_constant<Mode, Mode::CAST_CEIL>{});
                case Mode::CAST_ROUND: return cast(std::integral_constant<Mode, Mode::CAST_ROUND>{});
                case Mode::CAST_TRUNC: return cast(std::integral_constant<Mode, Mode::CAST_TRUNC>{});
                case Mode::CAST_ODD: return cast(std::integral_constant<Mode, Mode::CAST_ODD>{});
                default: return cast(std::integral_constant<Mode, Mode::CAST_RINT>{});
            }
        }
    }
}

}  // namespace detail

template <typename T, typename U>
SIM_INLINE inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, int64_t count,
          sim::Location where = sim::Location::Here()) {
    detail::CastLanes(sim::vec::CountForm(count), dst, src, roundMode, {}, where);
}
template <typename T, typename U, bool isSetMask = true>
SIM_INLINE inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, uint64_t mask,
          int64_t repeatTime, const UnaryRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    detail::CastLanes(sim::vec::MaskForm(mask, repeatTime, isSetMask), dst, src, roundMode, repeatParams, where);
}
template <typename T, typename U, bool isSetMask = true>
SIM_INLINE inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, uint64_t mask[],
          int64_t repeatTime, const UnaryRepeatParams& repeatParams, sim::Location where = sim::Location::Here()) {
    detail::CastLanes(sim::vec::BitsForm(mask, repeatTime, isSetMask), dst, src, roundMode, repeatParams, where);
}

// Scale of the int32 to half cast.
inline void SetDeqScale(half scale) { sim::Core::Current().deqScale = static_cast<float>(scale); }

}  // namespace AscendC
