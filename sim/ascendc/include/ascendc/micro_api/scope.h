// Vector functions and the barriers inside them (facts 6.1).
#pragma once

#include "ascendc/micro_api/registers.h"

// Everything in the braces that follow is one vector function.
#define __VEC_SCOPE__ for (::sim::VectorScope vectorScope_; vectorScope_.Once();)

namespace AscendC {

namespace Reg {

template <auto function, typename Signature> class VectorCall;
template <auto function, typename... Parameters>
class VectorCall<function, void (*)(Parameters...)> {
    static_assert((!std::is_reference_v<Parameters> && ...), "a vector function takes pointers and basic scalars by value");

public:
    void operator()(Parameters... arguments, sim::Location where = sim::Location::Here()) const {
        sim::VectorScope scope(where);
        function(arguments...);
        scope.Close();
    }
};

// Later accesses of the second kind come after earlier ones of the first.
template <MemType first, MemType second>
inline void LocalMemBar(sim::Location where = sim::Location::Here()) {
    sim::VectorFunction& function = sim::InVectorFunction("LocalMemBar", where);
    function.Drain();
    constexpr bool afterStores = first == MemType::VEC_STORE || first == MemType::VEC_ALL;
    constexpr bool afterLoads = first == MemType::VEC_LOAD || first == MemType::VEC_ALL;
    constexpr bool loads = second == MemType::VEC_LOAD || second == MemType::VEC_ALL;
    constexpr bool stores = second == MemType::VEC_STORE || second == MemType::VEC_ALL;
    if (afterStores && stores) function.OrderStoresAfterStores();
    if (afterLoads && stores) function.OrderStoresAfterLoads();
    if (afterStores && loads) function.OrderLoadsAfterStores();
}

}  // namespace Reg

// AscendC::VF_CALL<f>(arguments...); an object, because a function template could not say where it is called.
template <auto function>
inline constexpr Reg::VectorCall<function, decltype(function)> VF_CALL{};

}  // namespace AscendC

template <auto function>
inline constexpr AscendC::Reg::VectorCall<function, decltype(function)> asc_vf_call{};
