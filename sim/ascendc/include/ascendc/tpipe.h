// TPipe: hands out local memory and event ids exactly as the device's does, and settles the queues at the end.
#pragma once

#include "ascendc/sync.h"
#include "sim/core/text.h"

namespace sim {

// One buffer of a queue or TBuf. `freed` and `filled` are the ids its two flags currently hold, -1: none.
struct QueueBuffer {
    enum State : uint8_t { kUnused, kFree, kOccupied, kEnqueued, kDequeued };
    State state = kUnused;
    AscendC::TPosition position = AscendC::TPosition::GM;
    AscendC::HardEvent freedEvent = AscendC::HardEvent::MAX;
    int8_t freed = -1, filled = -1;
    const void* pool = nullptr;  // TBufPool it belongs to, null: TPipe itself
    uint64_t address = 0, bytes = 0;
    Location where;              // last queue call on it
};

inline std::string At(Location where) {
    const char* name = where.file;
    for (const char* c = where.file; *c; ++c)
        if (*c == '/') name = c + 1;
    return std::string(name) + ":" + std::to_string(where.line);
}

}  // namespace sim

namespace AscendC {

template <TPosition src, TPosition dst, int32_t depth, auto mask> class TQueBind;
template <TPosition position> class TBuf;
template <TPosition position, uint32_t bufIDSize> class TBufPool;

class TPipe {
public:
    explicit TPipe(sim::Location where = sim::Location::Here()) : where_(where), unwinding_(std::uncaught_exceptions()) {
        sim::Core& core = sim::Core::Current();
        if (core.tpipe != nullptr)
            core.Fail(sim::Rule::Argument, "TPipe", "", "a TPipe is already alive (created at " +
                      sim::At(static_cast<TPipe*>(core.tpipe)->where_) + "): a kernel has one, pass a pointer to it", where);
        core.tpipe = this;
        InitSocState();
    }
    // Not during the unwinding of a stopped kernel: its state is already a finding.
    ~TPipe() noexcept(false) {
        if (std::uncaught_exceptions() == unwinding_) Destroy(where_);
        sim::Core::Current().tpipe = nullptr;
    }
    TPipe(const TPipe&) = delete;
    TPipe& operator=(const TPipe&) = delete;

    void Init(sim::Location where = sim::Location::Here()) { Reset(where); }
    // Waits for the flags of freed buffers, then for all pipes.
    void Destroy(sim::Location where = sim::Location::Here()) {
        if (destroyed_) return;
        destroyed_ = true;
        Settle(nullptr, true, where);
        sim::Core::Current().PipeBarrierAll(where);
    }
    // Frees all buffers and events, so that InitBuffer starts again.
    void Reset(sim::Location where = sim::Location::Here()) {
        Settle(nullptr, true, where);
        for (uint64_t& used : used_) used = 0;
        for (uint8_t& ids : eventIds_) ids = 0;
    }

    template <TPosition src, TPosition dst, int32_t depth, auto mask>
    bool InitBuffer(TQueBind<src, dst, depth, mask>& que, sim::Wide num, sim::Wide len,
                    sim::Location where = sim::Location::Here()) {
        const uint64_t bytes = BufferBytes(num, len, where);
        const uint64_t address = Allocate(que.kBuffer, bytes * num.value, num, where);
        que.Bind(Slots(que.kBuffer, address, bytes, num, nullptr, where), num, where);
        return true;
    }
    template <TPosition position>
    bool InitBuffer(TBuf<position>& buf, sim::Wide len, sim::Location where = sim::Location::Here()) {
        const uint64_t bytes = BufferBytes(1, len, where);
        const uint64_t address = Allocate(position, bytes, 1, where);
        buf.Bind(Slots(position, address, bytes, 1, nullptr, where));
        return true;
    }
    template <TPosition position, uint32_t bufIDSize>
    bool InitBufPool(TBufPool<position, bufIDSize>& pool, sim::Wide len, sim::Location where = sim::Location::Here()) {
        const uint64_t bytes = BufferBytes(1, len, where);
        pool.Bind(this, Allocate(position, bytes, 1, where), bytes);
        return true;
    }
    // A pool on the same bytes as `shared`.
    template <TPosition position, uint32_t bufIDSize, typename Shared>
    bool InitBufPool(TBufPool<position, bufIDSize>& pool, sim::Wide len, const Shared& shared,
                     sim::Location where = sim::Location::Here()) {
        const uint64_t bytes = BufferBytes(1, len, where);
        if (bytes > shared.Bytes())
            sim::Core::Current().Fail(sim::Rule::LocalMemoryOverflow, "InitBufPool", "len",
                                      std::to_string(bytes) + " bytes do not fit the shared pool of " +
                                          std::to_string(shared.Bytes()), where);
        pool.Bind(this, shared.Address(), bytes);
        return true;
    }

    template <HardEvent event>
    TEventID AllocEventID(sim::Location where = sim::Location::Here()) { return AllocEventID(event, "AllocEventID", where); }
    template <HardEvent event>
    void ReleaseEventID(TEventID id) { Release(event, id); }
    // The lowest free id, not marked used: set and wait at once.
    TEventID FetchEventID(HardEvent event, sim::Location where = sim::Location::Here()) const {
        return LowestFree(event, "FetchEventID", where);
    }
    template <HardEvent event>
    TEventID FetchEventID(sim::Location where = sim::Location::Here()) const { return FetchEventID(event, where); }

    uint64_t GetBaseAddr(TPosition position) const {
        return reinterpret_cast<uint64_t>(sim::Core::Current().Local(sim::MemoryOf(position), 0));
    }

    // --- for queues and pools ---------------------------------------------------------------------------------------
    TEventID AllocEventID(HardEvent event, const char* api, sim::Location where) {
        const TEventID id = LowestFree(event, api, where);
        eventIds_[int(event)] |= uint8_t(1u << id);
        return id;
    }
    void Release(HardEvent event, TEventID id) { eventIds_[int(event)] &= uint8_t(~(1u << id)); }

    static uint64_t BufferBytes(int64_t num, int64_t len, sim::Location where) {
        if (num < 1 || num > QBUF_MAX_LEN || len < 1 || len > UINT32_MAX)
            sim::Core::Current().Fail(sim::Rule::Argument, "InitBuffer", "",
                                      std::to_string(num) + " buffers of " + std::to_string(len) +
                                          " bytes; num is 1 to 64, len at least 1", where);
        return sim::AlignUp(uint64_t(len), ONE_BLK_SIZE);
    }
    sim::QueueBuffer* Slots(TPosition position, uint64_t address, uint64_t bytes, int64_t num, const void* pool,
                            sim::Location where) {
        int64_t first = 0, run = 0;
        for (int64_t i = 0; i < QBUF_MAX_LEN && run < num; ++i)
            if (buffers_[i].state == sim::QueueBuffer::kUnused) first = run++ == 0 ? i : first;
            else run = 0;
        if (run < num)
            sim::Core::Current().Fail(sim::Rule::Argument, "InitBuffer", "num", "a TPipe has " +
                                      std::to_string(QBUF_MAX_LEN) + " buffers, this call exceeds them", where);
        for (int64_t i = 0; i < num; ++i) {
            sim::QueueBuffer& buffer = buffers_[first + i];
            buffer = {};
            buffer.state = sim::QueueBuffer::kFree;
            buffer.position = position;
            buffer.pool = pool;
            buffer.address = address + uint64_t(i) * bytes;
            buffer.bytes = bytes;
            buffer.where = where;
        }
        return buffers_ + first;
    }
    // Takes the buffers of a pool (`everything`: all buffers) out of use: waits for the flags of freed ones, as the device
    // does, and reports those that were never given back.
    void Settle(const void* pool, bool everything, sim::Location where) {
        sim::Core& core = sim::Core::Current();
        for (sim::QueueBuffer& buffer : buffers_) {
            if (buffer.state == sim::QueueBuffer::kUnused || (!everything && buffer.pool != pool)) continue;
            if (buffer.freed >= 0) {
                const sim::EventPipes pipes = sim::PipesOf(buffer.freedEvent);
                if (core.FlagIsSet(pipes.source, pipes.destination, buffer.freed))
                    core.WaitFlag(pipes.source, pipes.destination, buffer.freed, where);
                Release(buffer.freedEvent, buffer.freed);
            }
            if (buffer.state != sim::QueueBuffer::kFree) ReportLeak(core, buffer);
            buffer = {};
        }
    }

private:
    static void ReportLeak(sim::Core& core, const sim::QueueBuffer& buffer) {
        const bool enqueued = buffer.state == sim::QueueBuffer::kEnqueued;
        const char* call = buffer.state == sim::QueueBuffer::kOccupied ? "AllocTensor" : enqueued ? "EnQue" : "DeQue";
        core.Report(sim::Rule::QueueLeak, call, "",
                    std::string("the ") + sim::PositionName(buffer.position) + " queue buffer " +
                        sim::MemoryName(sim::MemoryOf(buffer.position)) + " " +
                        sim::HexRange(buffer.address, buffer.address + buffer.bytes) +
                        (enqueued ? " is still enqueued" : " was never freed") +
                        " when TPipe ends; " + (enqueued ? "DeQue and FreeTensor it" : "call FreeTensor after its last use"),
                    buffer.where);
    }
    uint64_t Allocate(TPosition position, uint64_t bytes, int64_t num, sim::Location where) {
        sim::Core& core = sim::Core::Current();
        const sim::Memory memory = sim::MemoryOf(position);
        const uint64_t address = used_[int(memory)];
        if (!core.HasMemory(memory, where)) {   // both kinds of core run a mixed kernel's InitBuffer calls; using the buffer is an error
            if (!core.Mixed())
                core.Fail(sim::Rule::PipeLegality, "InitBuffer", "", std::string(sim::PositionName(position)) +
                          (memory == sim::Memory::UB ? " is memory of the vector core; a cube core has A1, B1, A2, B2, CO1, C1 and C2 "
                                                        "(a kernel of both kinds declares KERNEL_TYPE_MIX_AIC_1_2)"
                                                     : " is memory of the cube core; a vector core has VECIN, VECOUT and VECCALC"),
                          where);
            used_[int(memory)] += bytes;
            return address;
        }
        core.RecordBuffer(memory, sim::PositionName(position), address, bytes, uint32_t(num), where);
        used_[int(memory)] += bytes;
        return address;
    }
    TEventID LowestFree(HardEvent event, const char* api, sim::Location where) const {
        const sim::EventPipes pipes = sim::PipesOf(event);
        sim::EventId(pipes, 0, api, where);
        const uint8_t free = uint8_t(~eventIds_[int(event)]);
        if (free == 0)
            sim::Core::Current().Fail(sim::Rule::EventFlag, api, "", std::string("all 8 event ids of ") + pipes.name +
                                      " are in use; release them with ReleaseEventID, or keep fewer buffers in flight",
                                      where);
        return TEventID(__builtin_ctz(free));
    }

    sim::QueueBuffer buffers_[QBUF_MAX_LEN];
    uint64_t used_[sim::kMemories] = {};
    uint8_t eventIds_[int(HardEvent::MAX)] = {};
    bool destroyed_ = false;
    sim::Location where_;
    int unwinding_;
};

inline TPipe* GetTPipePtr(sim::Location where = sim::Location::Here()) {
    sim::Core& core = sim::Core::Current();
    if (core.tpipe == nullptr)
        core.Fail(sim::Rule::Argument, "GetTPipePtr", "", "the kernel has no TPipe; declare one at its start", where);
    return static_cast<TPipe*>(core.tpipe);
}

}  // namespace AscendC
