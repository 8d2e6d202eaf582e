#include "sim/core/local_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>
#include <vector>

namespace sim {
namespace {

constexpr uint64_t kPage = 4096;
constexpr size_t kMaxPooled = 64;   // enough for every core of a launch that uses SyncAll

struct Pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<LocalMemory>> free;
};
Pool& ThePool() {
    static Pool* pool = [] {   // never destroyed: kernel threads may outlive static destruction
        Pool* made = new Pool;
        made->free.reserve(kMaxPooled);   // giving back happens in a destructor, which must not run out of memory
        return made;
    }();
    return *pool;
}

constexpr uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

uint64_t LocalMemory::Capacity(const SocSpec& soc, Memory memory) {
    switch (memory) {
        case Memory::GM: return 0;
        case Memory::UB: return soc.ubBytes;
        case Memory::L1: return soc.l1Bytes;
        case Memory::L0A: return soc.l0aBytes;
        case Memory::L0B: return soc.l0bBytes;
        case Memory::L0C: return soc.l0cBytes;
        case Memory::BT: return soc.btBytes;
        case Memory::FB: return soc.fbBytes;
    }
    return 0;
}

// Each memory ends at an inaccessible page, so that stray scalar code faults instead of damaging the host's heap.
LocalMemory::LocalMemory(const SocSpec& soc) : soc_(soc) {
    mappingBytes_ = kPage;
    for (int m = 0; m < kMemories; ++m) {
        bytes_[m] = Capacity(soc, Memory(m));
        if (bytes_[m] > 0) mappingBytes_ += RoundUp(bytes_[m], kPage) + kPage;
    }
    mapping_ = mmap(nullptr, mappingBytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping_ == MAP_FAILED) throw std::bad_alloc();
    uint8_t* next = static_cast<uint8_t*>(mapping_) + kPage;
    for (int m = 0; m < kMemories; ++m) {
        if (bytes_[m] == 0) continue;
        base_[m] = next;
        if (mprotect(next, RoundUp(bytes_[m], kPage), PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
        shadow_[m] = std::make_unique<Shadow>(bytes_[m]);
        next += RoundUp(bytes_[m], kPage) + kPage;
    }
}

LocalMemory::~LocalMemory() { munmap(mapping_, mappingBytes_); }

void LocalMemory::Poison(Memory memory) {
    used_[int(memory)] = true;
    std::memset(base_[int(memory)], 0xFF, bytes_[int(memory)]);
}

bool LocalMemory::Locate(const void* pointer, Memory* memory, uint64_t* address) const {
    const auto at = reinterpret_cast<uintptr_t>(pointer);
    for (int m = 0; m < kMemories; ++m) {
        const auto base = reinterpret_cast<uintptr_t>(base_[m]);
        if (base_[m] == nullptr || at < base || at >= base + bytes_[m]) continue;
        *memory = Memory(m);
        *address = at - base;
        return true;
    }
    return false;
}

void LocalMemory::StartShadows() {
    for (auto& shadow : shadow_)
        if (shadow) shadow->StartLaunch();
}

void LocalMemory::ForgetIds() {
    for (auto& shadow : shadow_)
        if (shadow) shadow->ForgetIds();
}

std::unique_ptr<LocalMemory> LocalMemory::Take(const SocSpec& soc) {
    std::unique_ptr<LocalMemory> memory;
    {
        Pool& pool = ThePool();
        std::lock_guard<std::mutex> lock(pool.mutex);
        for (size_t i = pool.free.size(); i-- > 0 && !memory;) {
            if (&pool.free[i]->soc_ != &soc) continue;
            memory = std::move(pool.free[i]);
            pool.free.erase(pool.free.begin() + long(i));
        }
    }
    if (!memory) return std::unique_ptr<LocalMemory>(new LocalMemory(soc));
    std::fill(std::begin(memory->used_), std::end(memory->used_), false);
    return memory;
}

void LocalMemory::GiveBack(std::unique_ptr<LocalMemory> memory) {
    Pool& pool = ThePool();
    std::lock_guard<std::mutex> lock(pool.mutex);
    if (pool.free.size() >= kMaxPooled) pool.free.erase(pool.free.begin());
    pool.free.push_back(std::move(memory));
}

}  // namespace sim
