#include "sim/core/vector_function.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "sim/core/text.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sim {

__thread VectorFunction* openVectorFunction = nullptr;

namespace {

// Modelled: the facts give rates, not latencies.
constexpr uint64_t kStartCycles = 24;   // fetch of the function and fill of the pipeline
constexpr uint64_t kDrainCycles = 12;   // LocalMemBar: the store buffer empties

// Vector math of arch 3510 flushes denormals, inputs and results. Returns the mode before.
unsigned FlushDenormals() {
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);   // FTZ, DAZ
    return before;
#elif defined(__aarch64__)
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" ::"r"(before | 1u << 24));
    return unsigned(before);
#else
    return 0;
#endif
}
void RestoreFloatMode(unsigned before) {
#if defined(__x86_64__)
    _mm_setcsr(before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(uint64_t(before)));
#else
    (void)before;
#endif
}

std::string Range(uint64_t begin, uint64_t end) { return "UB " + HexRange(begin, end); }
std::string At(const char* api, Location where) {
    return std::string(api) + " at " + where.file + ":" + std::to_string(where.line);
}

// 64 bits of a bit map from bit `from` on.
uint64_t WordAt(const std::vector<uint64_t>& bits, uint64_t from) {
    const uint64_t word = from / 64, shift = from % 64;
    uint64_t value = word < bits.size() ? bits[word] >> shift : 0;
    if (shift != 0 && word + 1 < bits.size()) value |= bits[word + 1] << (64 - shift);
    return value;
}

}  // namespace

VectorFunction& VectorFunction::Open(Location where) {
    static thread_local std::unique_ptr<VectorFunction> own;
    Core& core = Core::Current();
    if (openVectorFunction != nullptr)
        core.Fail(Rule::Argument, "VF", "", "a vector function cannot contain another one", where);
    if (own == nullptr) own.reset(new VectorFunction);
    own->Reset(core, where);
    openVectorFunction = own.get();
    return *own;
}

void VectorFunction::CheckTime() {
    nextTimeCheck_ = slots_ + kTimeCheckSlots;
    core_->CheckTime("VF", where_);
}

void VectorFunction::Reset(Core& core, Location where) {
    core.FlushBefore(Pipe::V);
    core_ = &core;
    where_ = where;
    ub_ = core.Local(Memory::UB, 0);
    ubBytes_ = core.LocalBytes(Memory::UB);
    tracking_ = core.OperandsNeeded() || core.Adversarial();
    slots_ = unit_ = loads_ = stores_ = drains_ = 0;
    nextTimeCheck_ = kTimeCheckSlots;
    storedLanes = addressRegister = 0;
    if (tracking_) {
        const uint64_t words = (ubBytes_ + 63) / 64;
        if (read_.size() != words || storeCount_ > 0x80000000u) {
            read_.assign(words, 0);
            written_.assign(words, 0);
            lastStore_.assign(ubBytes_, 0);
            storeCount_ = 0;
        } else if (touchedBegin_ < touchedEnd_) {
            std::fill(read_.begin() + touchedBegin_, read_.begin() + touchedEnd_, 0);
            std::fill(written_.begin() + touchedBegin_, written_.begin() + touchedEnd_, 0);
        }
        touchedBegin_ = words;
        touchedEnd_ = 0;
        firstStore_ = storeCount_ + 1;
        loadFence_ = storeFence_ = storeCount_;
        storeRecords_.clear();
        origins_.clear();
        reported_.clear();
        bufferLow_ = 1;
        bufferHigh_ = 0;
    }
    holdsBack_ = core.Adversarial();
    if (holdsBack_) {
        before_.assign(ub_, ub_ + ubBytes_);
        seen_ = before_;
        late_.clear();
    }
    floatMode_ = FlushDenormals();
}

void VectorFunction::Abandon() {
    RestoreFloatMode(floatMode_);
    openVectorFunction = nullptr;
}

void VectorFunction::Close() {
    Abandon();
    Instruction instruction;
    instruction.name = "VF";
    instruction.pipe = Pipe::V;
    instruction.cost = Cost::VectorFunction;
    instruction.work = Cycles();
    instruction.where = where_;
    if (!tracking_) {
        core_->Issue(instruction, [] {});
        return;
    }
    const auto add = [&](const char* name, Access access, const std::vector<Region>& runs) {
        if (runs.empty()) return;
        Operand operand;
        operand.name = name;
        operand.access = access;
        operand.memory = Memory::UB;
        operand.alignment = 1;   // checked access by access
        operand.low = 0;
        operand.high = ubBytes_;
        operand.region = runs.front();
        operand.more.assign(runs.begin() + 1, runs.end());
        instruction.operands.push_back(std::move(operand));
    };
    const std::vector<Region> written = Runs(written_);
    add("stores", Access::Write, written);
    add("loads", Access::Read, Runs(read_));
    if (!holdsBack_) {
        core_->Issue(instruction, [] {});
        return;
    }
    LandLateStores();
    // Take the stores back and commit them when the core says so: who is not ordered after this function sees old bytes.
    std::vector<uint8_t> bytes;
    for (const Region& run : written) {
        bytes.insert(bytes.end(), ub_ + run.start, ub_ + run.start + run.run);
        std::memcpy(ub_ + run.start, before_.data() + run.start, run.run);
    }
    core_->Issue(instruction, [written, bytes = std::move(bytes), ub = ub_] {
        const uint8_t* from = bytes.data();
        for (const Region& run : written) {
            std::memcpy(ub + run.start, from, run.run);
            from += run.run;
        }
    });
}

// Two instructions issue per cycle, or one of a single-issue kind; UB serves two 256-byte reads, or one read and one
// write, per cycle; divide, exp, gather ... share one slow unit. The busiest of them is the function's time.
uint64_t VectorFunction::Cycles() const {
    const uint64_t ports = std::max(stores_, (loads_ + stores_ + 1) / 2);
    return kStartCycles + drains_ * kDrainCycles + std::max({(slots_ + 1) / 2, unit_, ports});
}

void VectorFunction::CheckAddress(uint64_t address, uint32_t alignment, const char* api, const char* operand,
                                  Location where) {
    if (address >= ubBytes_) {
        const std::string message = address >> 63
            ? "the pointer is not in UB"
            : "starts at UB byte " + std::to_string(address) + ", UB has " + std::to_string(ubBytes_);
        core_->Fail(Rule::OutOfRange, api, operand, message, where);
    }
    if (address % alignment != 0)
        core_->Fail(Rule::Alignment, api, operand,
                    "UB address " + std::to_string(address) + " must be a multiple of " + std::to_string(alignment) +
                        " bytes here", where);
}

void VectorFunction::FindBuffer(uint64_t address) {
    if (address >= bufferLow_ && address < bufferHigh_) return;
    core_->BufferAround(Memory::UB, address, &bufferLow_, &bufferHigh_);
}

void VectorFunction::Mark(std::vector<uint64_t>& bits, uint64_t address, const uint64_t* window, uint32_t bytes) {
    const uint64_t first = address / 64, shift = address % 64;
    for (uint32_t i = 0; i * 64 < bytes; ++i) {
        if (window[i] == 0) continue;
        bits[first + i] |= window[i] << shift;
        if (shift != 0 && window[i] >> (64 - shift) != 0) bits[first + i + 1] |= window[i] >> (64 - shift);
    }
    touchedBegin_ = std::min(touchedBegin_, first);
    touchedEnd_ = std::max(touchedEnd_, std::min<uint64_t>(bits.size(), (address + bytes + 63) / 64));
}

const uint8_t* VectorFunction::ReadChecked(uint64_t address, uint32_t bytes, uint32_t alignment, const char* api,
                                           Location where, SourceTaint& taint) {
    CheckAddress(address, alignment, api, "src", where);
    const uint32_t inside = uint32_t(std::min<uint64_t>(bytes, ubBytes_ - address));
    const uint8_t* data = ub_ + address;
    if (inside < bytes) {
        std::memset(pastEnd_, 0xff, sizeof pastEnd_);
        std::memcpy(pastEnd_, data, inside);
        data = pastEnd_;
    }
    if (!tracking_) return data;

    FindBuffer(address);
    uint64_t unwritten[9] = {}, outside[8] = {}, unordered[8] = {}, good[8] = {};
    core_->Unwritten(Memory::UB, address, inside, unwritten);
    for (uint32_t byte = uint32_t(std::min<uint64_t>(bytes, bufferHigh_ - address)); byte < bytes; ++byte)
        outside[byte / 64] |= 1ull << (byte % 64);

    uint64_t own[8] = {}, overwritten = 0;   // bytes this function has stored
    for (uint32_t i = 0; i * 64 < inside; ++i) {
        own[i] = WordAt(written_, address + i * 64);
        if (inside - i * 64 < 64) own[i] &= (1ull << (inside - i * 64)) - 1;
        overwritten |= own[i];
    }
    uint32_t store = 0;
    if (overwritten != 0) {
        if (holdsBack_) {
            std::memcpy(stale_, data, bytes);
            data = stale_;
        }
        for (uint32_t byte = 0; byte < inside; ++byte) {
            uint32_t& last = lastStore_[address + byte];
            if (last < firstStore_) continue;
            if (last > loadFence_) {
                unordered[byte / 64] |= 1ull << (byte % 64);
                if (store == 0) store = last;
                if (holdsBack_) stale_[byte] = seen_[address + byte];
            } else {
                last = 0;   // a later store of this byte comes after this load
            }
        }
    }

    bool bad = false;
    for (uint32_t i = 0; i * 64 < bytes; ++i) {
        const uint32_t bits = std::min(64u, bytes - i * 64);
        const uint64_t window = bits == 64 ? ~0ull : (1ull << bits) - 1;
        unwritten[i] &= ~own[i] & window;
        taint.word[i] = unwritten[i] | outside[i] | unordered[i];
        good[i] = window & ~taint.word[i] & ~own[i];
        bad = bad || taint.word[i] != 0;
    }
    Mark(read_, address, good, inside);
    if (!bad) return data;
    uint32_t first = 0;
    while (!taint.Has(first)) ++first;
    const auto has = [first](const uint64_t* bits) { return bits[first / 64] >> (first % 64) & 1; };
    const Reason reason = has(unordered) ? Reason::Unordered : has(outside) ? Reason::OutsideBuffer : Reason::Unwritten;
    origins_.push_back({reason, api, where, address, address + bytes, address + first, store});
    taint.origin = uint32_t(origins_.size()) + 1;
    return data;
}

void VectorFunction::WriteChecked(uint64_t address, uint32_t alignment, const uint64_t* active, const char* api,
                                  Location where) {
    CheckAddress(address, alignment, api, "dst", where);
    uint32_t reach = 0;   // bytes up to and including the last active one
    for (uint32_t i = 0; i < 8; ++i)
        if (active[i] != 0) reach = i * 64 + 64 - uint32_t(__builtin_clzll(active[i]));
    if (reach == 0) return;
    if (tracking_) FindBuffer(address);
    const uint64_t end = tracking_ ? std::min(bufferHigh_, ubBytes_) : ubBytes_;
    if (address + reach > end)
        core_->Fail(Rule::OutOfRange, api, "dst",
                    "writes " + Range(address, address + reach) + ", the buffer it starts in ends at byte " +
                        std::to_string(end), where);
    if (!tracking_) return;

    ++storeCount_;
    storeRecords_.push_back({api, where});
    uint64_t overwritten = 0;
    for (uint32_t i = 0; i * 64 < reach; ++i) overwritten |= WordAt(written_, address + i * 64) & active[i];
    for (uint32_t byte = 0; overwritten != 0 && byte < reach; ++byte) {
        const uint32_t last = lastStore_[address + byte];
        const bool stored = active[byte / 64] >> (byte % 64) & 1;
        if (!stored || last < firstStore_ || last <= storeFence_) continue;
        if (holdsBack_) late_.push_back({address + byte, ub_[address + byte]});
        if (!Once(Rule::Hazard, where)) continue;
        const StoreRecord& earlier = storeRecords_[last - firstStore_];
        core_->Report(Rule::Hazard, api, "dst",
                      "writes " + Range(address, address + reach) + " that " + At(earlier.api, earlier.where) +
                          " wrote in the same vector function; LocalMemBar<MemType::VEC_STORE, MemType::VEC_STORE> must "
                          "stand between", where);
    }
    uint32_t* last = lastStore_.data() + address;
    for (uint32_t i = 0; i * 64 < reach; ++i) {
        if (active[i] == ~0ull) {
            std::fill_n(last + i * 64, 64, storeCount_);
            continue;
        }
        for (uint64_t left = active[i]; left != 0; left &= left - 1) last[i * 64 + uint32_t(__builtin_ctzll(left))] = storeCount_;
    }
    Mark(written_, address, active, reach);
}

void VectorFunction::ShowStoresToLoads() {
    LandLateStores();
    if (touchedBegin_ >= touchedEnd_) return;
    const uint64_t begin = touchedBegin_ * 64, end = std::min(touchedEnd_ * 64, ubBytes_);
    std::memcpy(seen_.data() + begin, ub_ + begin, end - begin);
}

// The earliest store of a byte lands last.
void VectorFunction::LandLateStores() {
    for (auto late = late_.rbegin(); late != late_.rend(); ++late) ub_[late->address] = late->value;
    late_.clear();
}

bool VectorFunction::Once(Rule rule, Location where) {
    for (const auto& [knownRule, known] : reported_)
        if (knownRule == rule && known.line == where.line && std::strcmp(known.file, where.file) == 0) return false;
    reported_.push_back({rule, where});
    return true;
}

void VectorFunction::Use(const char* api, const char* operand, uint32_t originIndex, Location where) {
    if (!tracking_) return;
    if (originIndex == kUnwrittenRegister) {
        if (Once(Rule::UninitializedRead, where))
            core_->Report(Rule::UninitializedRead, api, operand, "uses lanes of a register that nothing was put in", where);
        return;
    }
    const Origin& origin = origins_[originIndex - 2];
    const std::string loaded = "uses lanes that " + At(origin.api, origin.where) + " loaded from " +
                               Range(origin.begin, origin.end) + "; ";
    switch (origin.reason) {
        case Reason::Unwritten:
            if (Once(Rule::UninitializedRead, where))
                core_->Report(Rule::UninitializedRead, api, operand,
                              loaded + "byte " + std::to_string(origin.first) + " was never written: mask those lanes off",
                              where);
            return;
        case Reason::OutsideBuffer:
            if (Once(Rule::OutOfRange, where))
                core_->Report(Rule::OutOfRange, api, operand,
                              loaded + "its buffer ends at byte " + std::to_string(origin.first) +
                                  ": mask those lanes off", where);
            return;
        case Reason::Unordered: {
            const StoreRecord& store = storeRecords_[origin.store - firstStore_];
            if (Once(Rule::Hazard, where))
                core_->Report(Rule::Hazard, api, operand,
                              loaded + At(store.api, store.where) + " wrote byte " + std::to_string(origin.first) +
                                  " before, with no LocalMemBar<MemType::VEC_STORE, MemType::VEC_LOAD> between",
                              origin.where);
            return;
        }
    }
}

void VectorFunction::Fail(Rule rule, const char* api, const char* operand, const char* message, Location where) {
    core_->Fail(rule, api, operand, message, where);
}

std::vector<Region> VectorFunction::Runs(const std::vector<uint64_t>& bits) const {
    std::vector<Region> runs;
    const auto next = [&](uint64_t from, bool value) {   // first bit at or after `from` that has `value`
        uint64_t word = from / 64;
        uint64_t left = (value ? bits[word] : ~bits[word]) & (~0ull << (from % 64));
        while (left == 0 && ++word < touchedEnd_) left = value ? bits[word] : ~bits[word];
        return left == 0 ? touchedEnd_ * 64 : word * 64 + uint64_t(__builtin_ctzll(left));
    };
    for (uint64_t at = touchedBegin_ * 64; at < touchedEnd_ * 64;) {
        const uint64_t begin = next(at, true);
        if (begin >= touchedEnd_ * 64) break;
        const uint64_t end = begin + 1 < touchedEnd_ * 64 ? next(begin + 1, false) : touchedEnd_ * 64;
        Region run;
        run.start = begin;
        run.run = end - begin;
        runs.push_back(run);
        at = end;
    }
    return runs;
}

[[noreturn]] void FailOutsideVectorFunction(const char* api, Location where) {
    Core::Current().Fail(Rule::Argument, api, "", "register instructions belong in __VEC_SCOPE__ or a function called by "
                         "VF_CALL", where);
}

}  // namespace sim
