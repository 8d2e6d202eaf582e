// Matmul and its registration.
#pragma once

#include "ascendc/matmul/impl.h"
#include "ascendc/matmul/message.h"
#ifndef ASCENDC_CUBE_ONLY
#include "ascendc/matmul/client.h"
#endif

namespace sim::matmul {

// What REGIST_MATMUL_OBJ does.
struct Registration {
    // The cube core answers its vector cores until they have ended. True: the kernel's function is to return.
    template <typename... Arguments>
    static bool Mixed(Location where, TPipe* pipe, const void* workspace, Arguments&&... arguments) {
        Core& core = Core::Current();
        CheckPipe(pipe, where);
        if (!core.NeedsBothKinds(where))
            Refuse(Rule::PipeLegality, kTilingCall, "",
                   "the kernel runs on one kind of core, the object needs both: KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2), "
                   "or ASCENDC_CUBE_ONLY before the include for a kernel of cube cores", where);
        if (workspace == nullptr)
            Refuse(Rule::Argument, kTilingCall, "workspace",
                   "the workspace has no system part: add GetLibApiWorkSpaceSize() bytes to its size on the host", where);
        bool& before = FrameworkState::Current().matmulRegistered;
        if (before)
            Refuse(Rule::Argument, kTilingCall, "", "a second REGIST_MATMUL_OBJ: the cube core serves the objects of the first until the "
                   "kernel ends and does not come here; give all objects to one, (&pipe, workspace, mm1, &tiling1, mm2, &tiling2)", where);
        before = true;
        const bool cube = core.Kind() == CoreKind::Cube;
        int count = 0;
        Need most;
        ForEachObject([&](auto& object, const TCubeTiling* tiling) {
            object.Register(count++);
            if (tiling == nullptr) return;
            object.Configure(*tiling, where);
            if (cube) most.Join(object.Memory(where));
        }, arguments...);
        if (!cube) return false;
        if (most.l0c > 0) CubeMemory::Current().Reserve(*pipe, most, where);
        uint32_t from = 0;
        while (const std::shared_ptr<void> message = core.Receive(kTilingCall, &from, where))
            Serve(message, from, *pipe, where, arguments...);
        CubeMemory::Current().Drain(where);
        return true;
    }
    // Objects of a kernel with ASCENDC_CUBE_ONLY.
    template <typename... Arguments>
    static bool OnCube(Location where, TPipe* pipe, const void*, Arguments&&... arguments) {
        Core& core = Core::Current();
        CheckPipe(pipe, where);
        if (core.Kind() != CoreKind::Cube && !core.HasMemory(Memory::L1, where) && !core.Mixed())
            Refuse(Rule::PipeLegality, kTilingCall, "",
                   "the kernel runs on vector cores only, and ASCENDC_CUBE_ONLY objects work on cube cores", where);
        if (core.Kind() != CoreKind::Cube) return false;
        ForEachObject([&](auto& object, const TCubeTiling* tiling) { if (tiling != nullptr) object.Init(tiling, pipe, where); },
                      arguments...);
        return false;
    }

private:
    static void CheckPipe(const TPipe* pipe, Location where) {
        if (pipe == nullptr)
            Refuse(Rule::Argument, kTilingCall, "tpipe", "REGIST_MATMUL_OBJ without a TPipe: its first argument is null", where);
    }
    template <typename... Arguments>
    static void Serve(const std::shared_ptr<void>& message, uint32_t from, TPipe& pipe, Location where, Arguments&&... arguments) {
        const MessageHead& head = *static_cast<MessageHead*>(message.get());
        int index = 0;
        bool served = false;
        ForEachObject([&](auto& object, const TCubeTiling*) {
            if (index++ != head.object || head.type != object.Mark()) return;
            object.Serve(message, from, pipe);
            served = true;
        }, arguments...);
        if (!served)
            Refuse(Rule::Argument, kTilingCall, "", "vector core " + std::to_string(from) + " of the block calls an object that this "
                   "REGIST_MATMUL_OBJ does not have: all cores of a block have to come to the same one", where);
    }
    // (object, tiling, object, tiling, ...); an object without a tiling is initialised later.
    template <typename Visit>
    static void ForEachObject(Visit&&) {}
    template <typename Visit, typename Object, typename... Rest>
    static void ForEachObject(Visit&& visit, Object& object, Rest&&... rest) {
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
};

}  // namespace sim::matmul

namespace AscendC {

inline GM_ADDR GetSysWorkSpacePtr() { return sim::Core::Current().SystemWorkspace(); }

#ifdef ASCENDC_CUBE_ONLY
template <typename AType, typename BType, typename CType, typename BiasType = CType, const auto& config = CFG_NORM>
using Matmul = MatmulImpl<AType, BType, CType, BiasType, config>;
#define SIM_REGISTER_MATMUL ::sim::matmul::Registration::OnCube
#else
#define SIM_REGISTER_MATMUL ::sim::matmul::Registration::Mixed
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
