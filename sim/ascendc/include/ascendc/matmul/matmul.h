// Matmul and its registration.
#pragma once

#include "ascendc/matmul/client.h"

namespace sim::matmul {

// (object, tiling, object, tiling, ...); an object without a tiling is initialised later.
template <typename Visit>
void ForEachObject(Visit&&) {}
template <typename Visit, typename Object, typename... Rest>
void ForEachObject(Visit&& visit, Object& object, Rest&&... rest) {
    if constexpr (sizeof...(Rest) == 0) {
        visit(object, nullptr);
    } else {
        const auto next = [&](auto&& second, auto&&... others) {
            if constexpr (std::is_convertible_v<decltype(second), const TCubeTiling*>) {
                visit(object, static_cast<const TCubeTiling*>(second));
                ForEachObject(visit, others...);
            } else {
                visit(object, nullptr);
                ForEachObject(visit, second, others...);
            }
        };
        next(rest...);
    }
}

// The cube core answers its vector cores until they have ended. True: the kernel's function is to return.
template <typename... Arguments>
bool RegisterMixed(Location where, TPipe* pipe, const void* workspace, Arguments&&... arguments) {
    Core& core = Core::Current();
    if (!core.NeedsBothKinds(where))
        Refuse(Rule::PipeLegality, kTilingCall, "",
               "the kernel runs on one kind of core, the object needs both: KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2), "
               "or ASCENDC_CUBE_ONLY before the include for a kernel of cube cores", where);
    if (workspace == nullptr)
        Refuse(Rule::Argument, kTilingCall, "workspace",
               "the workspace has no system part: add GetLibApiWorkSpaceSize() bytes to its size on the host", where);
    const bool cube = core.Kind() == CoreKind::Cube;
    int count = 0;
    Need most;
    ForEachObject([&](auto& object, const TCubeTiling* tiling) {
        object.Register(count++);
        if (tiling == nullptr) return;
        object.Configure(*tiling, where);
        if (!cube) return;
        const Need need = object.Memory(where);
        most = {std::max(most.l1, need.l1), std::max(most.l0a, need.l0a), std::max(most.l0b, need.l0b), std::max(most.l0c, need.l0c),
                std::max(most.table, need.table)};
    }, arguments...);
    if (!cube) return false;
    if (most.l0c > 0) CubeMemory::Current().Reserve(*pipe, most, where);
    uint32_t from = 0;
    while (const std::shared_ptr<void> message = core.Receive(kTilingCall, &from, where)) {
        int index = 0;
        ForEachObject([&](auto& object, const TCubeTiling*) {
            if (index++ == static_cast<MessageHead*>(message.get())->object) object.Serve(message, from, *pipe);
        }, arguments...);
    }
    CubeMemory::Current().Drain(where);
    return true;
}

template <typename... Arguments>
bool RegisterOnCube(Location where, TPipe* pipe, const void*, Arguments&&... arguments) {
    Core& core = Core::Current();
    if (core.Kind() != CoreKind::Cube && !core.HasMemory(Memory::L1, where) && !core.Mixed())
        Refuse(Rule::PipeLegality, kTilingCall, "",
               "the kernel runs on vector cores only, and ASCENDC_CUBE_ONLY objects work on cube cores", where);
    if (core.Kind() == CoreKind::Cube)
        ForEachObject([&](auto& object, const TCubeTiling* tiling) { if (tiling != nullptr) object.Init(tiling, pipe, where); },
                      arguments...);
    return false;
}

}  // namespace sim::matmul

namespace AscendC {

inline GM_ADDR GetSysWorkSpacePtr() { return sim::Core::Current().SystemWorkspace(); }

#ifdef ASCENDC_CUBE_ONLY
template <typename AType, typename BType, typename CType, typename BiasType = CType, const auto& config = CFG_NORM>
using Matmul = MatmulImpl<AType, BType, CType, BiasType, config>;
#define SIM_REGISTER_MATMUL ::sim::matmul::RegisterOnCube
#else
template <typename AType, typename BType, typename CType, typename BiasType = CType, const auto& config = CFG_NORM>
using Matmul = MatmulClient<AType, BType, CType, BiasType, config>;
#define SIM_REGISTER_MATMUL ::sim::matmul::RegisterMixed
#endif

}  // namespace AscendC

// (TPipe*, system workspace, object, TCubeTiling* [, object, TCubeTiling* ...]). On the cube core of a kernel of both kinds it serves
// the vector cores of the block and then leaves the function it stands in.
#define REGIST_MATMUL_OBJ(tpipe, workspace, ...)                                                      \
    do {                                                                                              \
        if (SIM_REGISTER_MATMUL(::sim::Location::Here(), tpipe, workspace, __VA_ARGS__)) return;      \
    } while (0)

// Older kernels name these without AscendC.
namespace matmul {
using AscendC::Matmul;
using AscendC::MatmulImpl;
using AscendC::MatmulType;
}  // namespace matmul
