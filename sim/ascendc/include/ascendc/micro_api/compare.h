// Compare and select (facts 6.5).
#pragma once

#include "ascendc/micro_api/math.h"

namespace AscendC::Reg {

namespace regimpl {

template <CMPMODE mode, typename A>
REG_INLINE inline bool Holds(A a, A b) {
    if constexpr (mode == CMPMODE::LT) return a < b;
    else if constexpr (mode == CMPMODE::GT) return a > b;
    else if constexpr (mode == CMPMODE::EQ) return a == b;
    else if constexpr (mode == CMPMODE::LE) return a <= b;
    else if constexpr (mode == CMPMODE::GE) return a >= b;
    else return a != b;
}

// Lane i of the result, if on in the mask, says holds(i).
template <typename U, typename F>
REG_INLINE inline void CompareLanes(MaskReg& dst, const MaskReg& mask, F holds) {
    constexpr uint32_t step = U::kMaskStep, perWord = 64 / step;
    MaskReg result;
    for (uint32_t w = 0; w < 4; ++w) {
        uint64_t word = 0;
        for (uint32_t i = 0; i < perWord; ++i) word |= uint64_t(holds(w * perWord + i)) << (i * step);
        result.word[w] = word & mask.word[w];
    }
    dst = result;
}

}  // namespace regimpl

template <typename T = DefaultType, CMPMODE mode = CMPMODE::EQ, typename U, typename = IfRegisters<U>>
inline void Compare(MaskReg& dst, U& src0, U& src1, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    static_assert(regimpl::kNames<T, U>, "Compare: T is not the type of the registers");
    sim::VectorFunction& function = sim::InVectorFunction("Compare", where);
    function.Spend(regimpl::ArithmeticCost<U>());
    regimpl::CheckUse<U::kMaskStep>(function, "Compare", "src0", src0.taint, mask, where);
    regimpl::CheckUse<U::kMaskStep>(function, "Compare", "src1", src1.taint, mask, where);
    regimpl::CompareLanes<U>(dst, mask, [&](uint32_t i) {
        return regimpl::Holds<mode>(regimpl::Widen(src0.lane[i]), regimpl::Widen(src1.lane[i]));
    });
}

#define REG_COMPARE_SCALAR(Name)                                                                                           \
    template <typename T = DefaultType, CMPMODE mode = CMPMODE::EQ, typename U, typename S, typename = IfRegisters<U>,     \
              typename = IfScalar<S>>                                                                                      \
    inline void Name(MaskReg& dst, U& src, S scalar, MaskReg& mask, sim::Location where = sim::Location::Here()) {         \
        static_assert(regimpl::kNames<T, U>, #Name ": T is not the type of the register");                                 \
        sim::VectorFunction& function = sim::InVectorFunction(#Name, where);                                               \
        function.Spend(regimpl::ArithmeticCost<U>());                                                                       \
        regimpl::CheckUse<U::kMaskStep>(function, #Name, "src", src.taint, mask, where);                                    \
        const auto s = regimpl::Widen(regimpl::ToElement<typename U::ActualT>(scalar));                                      \
        regimpl::CompareLanes<U>(dst, mask,                                                                                 \
                                [&](uint32_t i) { return regimpl::Holds<mode>(regimpl::Widen(src.lane[i]), s); });           \
    }
REG_COMPARE_SCALAR(CompareScalar)
REG_COMPARE_SCALAR(Compares)
#undef REG_COMPARE_SCALAR

// dst = mask ? src0 : src1
template <typename T = DefaultType, typename U, typename = IfRegisters<U>>
inline void Select(U& dst, U& src0, U& src1, MaskReg& mask, sim::Location where = sim::Location::Here()) {
    static_assert(regimpl::kNames<T, U>, "Select: T is not the type of the registers");
    sim::InVectorFunction("Select", where).Spend(regimpl::kDualIssue);
    sim::Taint other = src1.taint;
    regimpl::SetTaint<U::kMaskStep>(other, src0.taint, mask, true);
    U chosen = src1;
    regimpl::Commit(chosen, src0.lane, mask, true);
    chosen.taint = other;
    dst = chosen;
}

}  // namespace AscendC::Reg
