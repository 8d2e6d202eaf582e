// Order between pipes and cores: flags, barriers, SyncAll; and the modes of the control register that later copies obey.
#pragma once

#include "ascendc/framework_state.h"
#include "ascendc/global_tensor.h"
#include "ascendc/local_tensor.h"

namespace sim {

struct EventPipes {
    Pipe source, destination;
    const char* name;
};
constexpr EventPipes PipesOf(AscendC::HardEvent event) {
    using E = AscendC::HardEvent;
    constexpr Pipe V = Pipe::V, S = Pipe::S, M = Pipe::M, MTE1 = Pipe::MTE1, MTE2 = Pipe::MTE2, MTE3 = Pipe::MTE3, FIX = Pipe::FIX;
#define SIM_EVENT(source, destination) case E::source##_##destination: return {source, destination, #source "_" #destination};
    switch (event) {
        SIM_EVENT(MTE2, MTE1) SIM_EVENT(MTE1, MTE2) SIM_EVENT(MTE1, M) SIM_EVENT(M, MTE1) SIM_EVENT(MTE2, V) SIM_EVENT(V, MTE2)
        SIM_EVENT(MTE3, V) SIM_EVENT(V, MTE3) SIM_EVENT(M, V) SIM_EVENT(V, M) SIM_EVENT(V, V) SIM_EVENT(MTE3, MTE1)
        SIM_EVENT(MTE1, MTE3) SIM_EVENT(MTE1, V) SIM_EVENT(MTE2, M) SIM_EVENT(M, MTE2) SIM_EVENT(V, MTE1) SIM_EVENT(M, FIX)
        SIM_EVENT(FIX, M) SIM_EVENT(MTE3, MTE2) SIM_EVENT(MTE2, MTE3) SIM_EVENT(S, V) SIM_EVENT(V, S) SIM_EVENT(S, MTE2)
        SIM_EVENT(MTE2, S) SIM_EVENT(S, MTE3) SIM_EVENT(MTE3, S) SIM_EVENT(MTE2, FIX) SIM_EVENT(FIX, MTE2) SIM_EVENT(FIX, S)
        SIM_EVENT(M, S) SIM_EVENT(FIX, MTE3) SIM_EVENT(MTE1, FIX) SIM_EVENT(FIX, MTE1) SIM_EVENT(FIX, FIX)
        case E::MAX: break;
    }
#undef SIM_EVENT
    return {S, S, "no event"};
}

// Facts 2.1: a vector core has S, V, MTE2 and MTE3; a cube core has S, M, MTE1, MTE2, FIX and, on 2201, MTE3.
inline bool OnThisCore(Pipe pipe) {
    if (pipe == Pipe::S || pipe == Pipe::MTE2) return true;
    const bool cube = Core::Current().Kind() == CoreKind::Cube;
    if (pipe == Pipe::MTE3) return !cube || Core::Current().Soc().npuArch == 2201;
    return (pipe != Pipe::V) == cube;
}

inline Pipe PipeOf(pipe_t pipe, const char* api, Location where) {
    Pipe found = Pipe::S;
    const char* name = "this pipe";
    switch (pipe) {
        case PIPE_S: return Pipe::S;
        case PIPE_V: found = Pipe::V, name = "PIPE_V"; break;
        case PIPE_M: found = Pipe::M, name = "PIPE_M"; break;
        case PIPE_MTE1: found = Pipe::MTE1, name = "PIPE_MTE1"; break;
        case PIPE_MTE2: return Pipe::MTE2;
        case PIPE_MTE3: found = Pipe::MTE3, name = "PIPE_MTE3"; break;
        case PIPE_FIX: found = Pipe::FIX, name = "PIPE_FIX"; break;
        default: break;
    }
    if (found != Pipe::S && OnThisCore(found)) return found;
    const bool cube = Core::Current().Kind() == CoreKind::Cube;
    Core::Current().Fail(Rule::PipeLegality, api, "", std::string(cube ? "a cube core has no " : "a vector core has no ") + name +
                         (cube ? ", it has PIPE_S, PIPE_M, PIPE_MTE1, PIPE_MTE2 and PIPE_FIX"
                               : ", it has PIPE_S, PIPE_V, PIPE_MTE2 and PIPE_MTE3"), where);
}

// Both ends of a flag, checked.
inline int EventId(const EventPipes& pipes, int64_t id, const char* api, Location where) {
    Core& core = Core::Current();
    if (!OnThisCore(pipes.source) || !OnThisCore(pipes.destination))
        core.Fail(Rule::PipeLegality, api, "", core.Kind() == CoreKind::Cube
                      ? std::string("the event ") + pipes.name + " belongs to the vector core; a cube core has those of S, M, MTE1, "
                        "MTE2, MTE3 and FIX"
                      : std::string("the event ") + pipes.name + " belongs to the cube core; a vector core has MTE2_V, V_MTE2, "
                        "MTE3_V, V_MTE3, V_V, MTE3_MTE2, MTE2_MTE3, S_V, V_S, S_MTE2, MTE2_S, S_MTE3, MTE3_S", where);
    if (id < 0 || id >= AscendC::QUE_MAX_EVENT)
        core.Fail(Rule::EventFlag, api, "", std::string("event id ") + std::to_string(id) + " of " + pipes.name +
                  " does not exist, ids are 0 to 7", where);
    return static_cast<int>(id);
}

}  // namespace sim

namespace AscendC {

template <HardEvent event>
void SetFlag(sim::Wide id, sim::Location where = sim::Location::Here()) {
    constexpr sim::EventPipes pipes = sim::PipesOf(event);
    const int slot = sim::EventId(pipes, id, "SetFlag", where);
    sim::Core::Current().SetFlag(pipes.source, pipes.destination, slot, where);
}
template <HardEvent event>
void WaitFlag(sim::Wide id, sim::Location where = sim::Location::Here()) {
    constexpr sim::EventPipes pipes = sim::PipesOf(event);
    const int slot = sim::EventId(pipes, id, "WaitFlag", where);
    sim::Core::Current().WaitFlag(pipes.source, pipes.destination, slot, where);
}

template <pipe_t pipe>
void PipeBarrier(sim::Location where = sim::Location::Here()) {
    static_assert(pipe != PIPE_S, "PipeBarrier<PIPE_S> does not exist: the scalar pipe is in order");
    if constexpr (pipe == PIPE_ALL) sim::Core::Current().PipeBarrierAll(where);
    else sim::Core::Current().PipeBarrier(sim::PipeOf(pipe, "PipeBarrier", where), where);
}

// Waits for the scalar unit's own memory accesses; the scalar unit of the simulator completes each before the next.
template <MemDsbT kind>
void DataSyncBarrier(sim::Location where = sim::Location::Here()) {
    sim::Core::Current().Issue({"DataSyncBarrier", sim::Pipe::S, sim::Cost::Sync, 0, where, {}}, [] {});
}

template <bool isAIVOnly = true>
void SyncAll(sim::Location where = sim::Location::Here()) {
    sim::Core& core = sim::Core::Current();
    if (isAIVOnly && core.Kind() == sim::CoreKind::Cube)
        core.Fail(sim::Rule::PipeLegality, "SyncAll", "", "a cube core calls SyncAll<true>, which vector cores alone meet in; "
                  "SyncAll<false> waits for both kinds", where);
    core.SyncAll(where, /*soft=*/false, /*withCubes=*/!isAIVOnly);
}

// Soft form: cores count each other through GM. The model needs the buffers' sizes only, 32 bytes per core in each.
template <bool isAIVOnly = true>
void SyncAll(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace, int32_t usedCores = 0,
             sim::Location where = sim::Location::Here()) {
    static_assert(isAIVOnly, "the soft form of SyncAll waits for vector cores");
    sim::Core& core = sim::Core::Current();
    if (usedCores != 0 && uint32_t(usedCores) != core.BlockNum())
        core.Fail(sim::Rule::Argument, "SyncAll", "usedCores",
                  "usedCores is " + std::to_string(usedCores) + " of " + std::to_string(core.BlockNum()) +
                      " cores: waiting for a part of the cores is not modelled", where);
    const uint64_t bytes = uint64_t(core.BlockNum()) * ONE_BLK_SIZE;
    if (ubWorkspace.GetLength() < bytes)
        core.Fail(sim::Rule::OutOfRange, "SyncAll", "ubWorkspace",
                  "ubWorkspace has " + std::to_string(ubWorkspace.GetLength()) + " bytes, SyncAll of " +
                      std::to_string(core.BlockNum()) + " cores needs " + std::to_string(bytes), where);
    sim::Instruction poll{"SyncAll", sim::Pipe::S, sim::Cost::Sync, 0, where, {}};
    if (core.OperandsNeeded())
        poll.operands.push_back(gmWorkspace.AsOperand("gmWorkspace", sim::Access::Read,
                                                      {gmWorkspace.Address() + core.BlockIdx() * ONE_BLK_SIZE, ONE_BLK_SIZE}));
    core.Issue(poll, [] {});
    core.SyncAll(where, /*soft=*/true);
}

namespace detail {
template <typename T>
void SetAtomic(int mode, const char* api, sim::Location where) {
    sim::Core& core = sim::Core::Current();
    constexpr bool supported = std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t> ||
                               std::is_same_v<T, int32_t> || std::is_same_v<T, int16_t> || std::is_same_v<T, int8_t>;
    if (!supported)
        core.Fail(sim::Rule::Dtype, api, "", std::string(api) + " does not take " + sim::DtypeName<T>() +
                  ", it takes int8_t, int16_t, int32_t, half, bfloat16_t and float", where);
    core.atomicMode = mode;
    core.atomicType = sim::kDtype<T>;
}
}  // namespace detail

// Modes of every later UB -> GM copy of this core.
template <typename T> void SetAtomicAdd(sim::Location where = sim::Location::Here()) { detail::SetAtomic<T>(1, "SetAtomicAdd", where); }
template <typename T> void SetAtomicMax(sim::Location where = sim::Location::Here()) { detail::SetAtomic<T>(2, "SetAtomicMax", where); }
template <typename T> void SetAtomicMin(sim::Location where = sim::Location::Here()) { detail::SetAtomic<T>(3, "SetAtomicMin", where); }
inline void SetAtomicNone() { sim::Core::Current().atomicMode = 0; }
inline void DisableDmaAtomic() { SetAtomicNone(); }

// Writes a cached line (or the whole cache) back and forgets it.
template <typename T, CacheLine entireType, DcciDst dcciDst = DcciDst::CACHELINE_ALL>
void DataCacheCleanAndInvalid(const GlobalTensor<T>& dst, sim::Location where = sim::Location::Here()) {
    sim::Core& core = sim::Core::Current();
    sim::DataCache& cache = sim::FrameworkState::Current().cache;
    if constexpr (entireType == CacheLine::ENTIRE_DATA_CACHE) cache.CleanAll();
    else cache.Clean(dst.Address());
    core.Issue({"DataCacheCleanAndInvalid", sim::Pipe::S, sim::Cost::Sync, 0, where, {}}, [] {});
}

// Control state of a fresh kernel: all lanes, no atomics. TPipe does it; kernels without TPipe call it.
inline void InitSocState() {
    sim::Core::Current().mask = {};
    SetAtomicNone();
}

}  // namespace AscendC

// The instructions under the API, as older kernels write them.
inline void pipe_barrier(pipe_t pipe, sim::Location where = sim::Location::Here()) {
    if (pipe == PIPE_ALL) sim::Core::Current().PipeBarrierAll(where);
    else sim::Core::Current().PipeBarrier(sim::PipeOf(pipe, "pipe_barrier", where), where);
}
inline void set_flag(pipe_t source, pipe_t destination, sim::Wide id, sim::Location where = sim::Location::Here()) {
    const sim::EventPipes pipes{sim::PipeOf(source, "set_flag", where), sim::PipeOf(destination, "set_flag", where),
                                "this pair"};
    sim::Core::Current().SetFlag(pipes.source, pipes.destination, sim::EventId(pipes, id, "set_flag", where), where);
}
inline void wait_flag(pipe_t source, pipe_t destination, sim::Wide id, sim::Location where = sim::Location::Here()) {
    const sim::EventPipes pipes{sim::PipeOf(source, "wait_flag", where), sim::PipeOf(destination, "wait_flag", where),
                                "this pair"};
    sim::Core::Current().WaitFlag(pipes.source, pipes.destination, sim::EventId(pipes, id, "wait_flag", where), where);
}
