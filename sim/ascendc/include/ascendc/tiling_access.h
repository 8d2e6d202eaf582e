// How a kernel reads its tiling data.
//
// The default struct is the type `CustomOpsDefaultTiling`, looked up where GET_TILING_DATA stands: REGISTER_TILING_DEFAULT
// names it in the kernel (plain struct shared with the host). For macro-declared tiling classes the build generates a
// header, force-included, with the plain struct of the same name and fields and
//     #define CUSTOM_OPS_DEFAULT_TILING <the class>
// which names it for the whole kernel.
#pragma once

#include <cstddef>
#include <cstring>

#include "ascendc/framework_state.h"

namespace sim {

// Scalar loads of `bytes` of the tiling buffer.
inline void ReadTiling(void* destination, const void* tiling, uint64_t bytes, Location where) {
    Core& core = Core::Current();
    Instruction instruction{"GET_TILING_DATA", Pipe::S, Cost::Scalar, (bytes + 7) / 8, where, {}};
    const uint64_t address = reinterpret_cast<uint64_t>(tiling);
    if (core.OperandsNeeded())
        instruction.operands.push_back({"tiling", Access::Read, Memory::GM, 1, address, 0, {address, bytes}, {}});
    core.FlushBefore(Pipe::S);
    core.Issue(instruction, [] {});
    std::memcpy(destination, tiling, bytes);
}
template <typename Tiling>
Tiling TilingData(const void* tiling, Location where = Location::Here()) {
    static_assert(std::is_trivially_copyable_v<Tiling>, "tiling data is copied as bytes");
    Tiling data;
    ReadTiling(&data, tiling, sizeof(Tiling), where);
    return data;
}
template <typename Tiling>
const Tiling* TilingPointer(const uint8_t* tiling, Location where = Location::Here()) {
    alignas(Tiling) unsigned char probe[sizeof(Tiling)];
    ReadTiling(probe, tiling, sizeof(Tiling), where);
    return reinterpret_cast<const Tiling*>(tiling);
}

}  // namespace sim

#ifdef CUSTOM_OPS_DEFAULT_TILING
using CustomOpsDefaultTiling = CUSTOM_OPS_DEFAULT_TILING;
#endif

#define REGISTER_TILING_DEFAULT(Struct) using CustomOpsDefaultTiling [[maybe_unused]] = Struct
#define REGISTER_NONE_TILING
#define REGISTER_TILING_FOR_TILINGKEY(expression, Struct) static_assert(sizeof(Struct) > 0, expression)

#define GET_TILING_DATA(data, tiling) [[maybe_unused]] auto data = ::sim::TilingData<CustomOpsDefaultTiling>(tiling)
#define GET_TILING_DATA_WITH_STRUCT(Struct, data, tiling) [[maybe_unused]] auto data = ::sim::TilingData<Struct>(tiling)
#define GET_TILING_DATA_MEMBER(Struct, member, data, tiling) \
    decltype(Struct::member) data;                             \
    ::sim::ReadTiling(&data, (tiling) + offsetof(Struct, member), sizeof(data), ::sim::Location::Here())
#define GET_TILING_DATA_PTR_WITH_STRUCT(Struct, pointer, tiling) \
    [[maybe_unused]] const __gm__ Struct* pointer = ::sim::TilingPointer<Struct>(tiling)
#define COPY_TILING_WITH_STRUCT(Struct, source, destination) \
    ::sim::ReadTiling(destination, source, sizeof(Struct), ::sim::Location::Here())
#define COPY_TILING_WITH_ARRAY(Type, count, source, destination) \
    ::sim::ReadTiling(destination, source, sizeof(Type) * (count), ::sim::Location::Here())
