// A vector function of arch 3510: register code that runs on V as one instruction.
//
// Registers are host values. A load looks at the bytes behind it, and lanes whose value a correct kernel cannot rely on
// are *tainted*: never written, outside the buffer the load starts in, or stored before with no barrier in between.
// Loads are 256 bytes wide whatever the mask, so a tainted lane is normal; storing, reducing or comparing one is not.
// Everything read and written becomes the operands of the one instruction that the core checks and times at the end.
#pragma once

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "sim/core/core.h"

namespace sim {

// Lanes of a register that must not be used: a bit per 1/256 of it, and the load that made them so.
struct Taint {
    uint64_t word[4] = {0, 0, 0, 0};
    uint32_t origin = 0;
    bool Any() const { return (word[0] | word[1] | word[2] | word[3]) != 0; }
};

// The same for the bytes of one access to UB, which has at most 512. `word` is defined only when `origin` is not 0.
struct SourceTaint {
    uint64_t word[8];
    uint32_t origin = 0;
    bool Has(uint32_t byte) const { return word[byte / 64] >> (byte % 64) & 1; }
};

// What one register instruction takes of the machine (facts 11.2).
struct RegCost {
    uint8_t slots = 1;       // half cycles of issue: 1 when two of its kind go in a cycle, 2 when one does
    uint8_t unit = 0;        // cycles of the slow unit: divide, exp, gather ...
    uint8_t loads = 0;       // 256-byte accesses of UB
    uint8_t stores = 0;
};

class VectorFunction {
public:
    static constexpr uint64_t kTimeCheckSlots = 1 << 18;   // some milliseconds of simulation
    static constexpr uint32_t kUnwrittenRegister = 1;  // Taint::origin of a register nothing was put in

    // --- scope -----------------------------------------------------------------------------------------------------
    static VectorFunction& Open(Location where);   // on the current core; fails inside another one
    void Close();      // issues the instruction
    void Abandon();    // after an error: leaves without issuing

    // --- cost ------------------------------------------------------------------------------------------------------
    void Spend(RegCost cost) {
        slots_ += cost.slots;
        if (__builtin_expect(slots_ >= nextTimeCheck_, 0)) CheckTime();
        unit_ += cost.unit;
        loads_ += cost.loads;
        stores_ += cost.stores;
    }
    void Drain() { ++drains_; }

    // --- UB --------------------------------------------------------------------------------------------------------
    // The `bytes` bytes of UB behind `pointer`. A load may reach past the end of UB: those bytes are undefined.
    const uint8_t* Read(const void* pointer, uint32_t bytes, uint32_t alignment, const char* api, Location where,
                        SourceTaint& taint) {
        const uint64_t address = AddressOf(pointer);
        if (!tracking_ && address % alignment == 0 && address <= ubBytes_ - bytes)
            return static_cast<const uint8_t*>(pointer);
        return ReadChecked(address, bytes, alignment, api, where, taint);
    }
    // Where to write `bytes` bytes, of which only the active ones are touched: activeBytes(uint64_t bits[8]).
    template <typename ActiveBytes>
    uint8_t* Write(void* pointer, uint32_t bytes, uint32_t alignment, const char* api, Location where,
                   ActiveBytes&& activeBytes) {
        const uint64_t address = AddressOf(pointer);
        if (tracking_ || address % alignment != 0 || address > ubBytes_ - bytes) {
            uint64_t bits[8] = {};
            activeBytes(bits);
            WriteChecked(address, alignment, bits, api, where);
        }
        return static_cast<uint8_t*>(pointer);
    }
    uint64_t AddressOf(const void* pointer) const {
        return static_cast<uint64_t>(static_cast<const uint8_t*>(pointer) - ub_);
    }
    // Reports the use of tainted lanes.
    void Use(const char* api, const char* operand, uint32_t origin, Location where);

    // --- LocalMemBar: what follows sees, or lands after, the stores so far --------------------------------------------
    void OrderLoadsAfterStores() {
        loadFence_ = storeCount_;
        if (holdsBack_) ShowStoresToLoads();
    }
    void OrderStoresAfterStores() {
        storeFence_ = storeCount_;
        if (holdsBack_) LandLateStores();
    }
    // Stores after loads: what those loads came after is passed on.
    void OrderStoresAfterLoads() {
        if (loadFence_ <= storeFence_) return;
        storeFence_ = loadFence_;
        if (holdsBack_) LandLateStores();
    }

    // --- special purpose registers --------------------------------------------------------------------------------------
    uint32_t storedLanes = 0;   // lanes counted by the last Squeeze that feeds unaligned stores
    uint32_t addressRegister = 0;   // AR: bytes those stores have written so far

    Core& core() const { return *core_; }
    [[noreturn]] void Fail(Rule rule, const char* api, const char* operand, const char* message, Location where);

private:
    enum class Reason : uint8_t { Unwritten, OutsideBuffer, Unordered };
    struct Origin { Reason reason; const char* api; Location where; uint64_t begin, end, first; uint32_t store; };
    struct StoreRecord { const char* api; Location where; };

    VectorFunction() = default;
    void Reset(Core& core, Location where);
    const uint8_t* ReadChecked(uint64_t address, uint32_t bytes, uint32_t alignment, const char* api, Location where,
                               SourceTaint& taint);
    void WriteChecked(uint64_t address, uint32_t alignment, const uint64_t* active, const char* api, Location where);
    void ShowStoresToLoads();
    void LandLateStores();
    void CheckAddress(uint64_t address, uint32_t alignment, const char* api, const char* operand, Location where);
    void FindBuffer(uint64_t address);
    void Mark(std::vector<uint64_t>& bits, uint64_t address, const uint64_t* window, uint32_t bytes);
    bool Once(Rule rule, Location where);
    std::vector<Region> Runs(const std::vector<uint64_t>& bits) const;
    uint64_t Cycles() const;
    void CheckTime();

    Core* core_ = nullptr;
    Location where_;
    uint8_t* ub_ = nullptr;
    uint64_t ubBytes_ = 0;
    bool tracking_ = false;
    uint64_t nextTimeCheck_ = 0;
    uint64_t slots_ = 0, unit_ = 0, loads_ = 0, stores_ = 0, drains_ = 0;
    unsigned floatMode_ = 0;

    // Shadow of UB, kept from one vector function to the next; the words touched are cleared by Reset.
    std::vector<uint64_t> read_, written_;      // a bit per byte
    std::vector<uint32_t> lastStore_;           // per byte: number of the latest store no load has come after, or 0
    std::vector<StoreRecord> storeRecords_;     // [number - firstStore_]
    uint64_t touchedBegin_ = 0, touchedEnd_ = 0;   // words of read_ and written_
    uint32_t storeCount_ = 0, firstStore_ = 1, loadFence_ = 0, storeFence_ = 0;
    std::vector<Origin> origins_;               // [origin - 2]
    std::vector<std::pair<Rule, Location>> reported_;
    uint64_t bufferLow_ = 1, bufferHigh_ = 0;   // the buffer used last
    uint8_t pastEnd_[512];                      // copy of a load that reaches past the end of UB

    // Adversarial: no store reaches a load, or lands before a later store, until a LocalMemBar says so.
    struct LateByte { uint64_t address; uint8_t value; };
    bool holdsBack_ = false;
    std::vector<uint8_t> before_;               // UB as the function found it
    std::vector<uint8_t> seen_;                 // UB as loads see it
    std::vector<LateByte> late_;                // bytes of stores that a later store, not ordered after them, has overtaken
    uint8_t stale_[512];                        // copy of a load that meets stores held back
};

// The vector function open on this host thread, or null.
extern __thread VectorFunction* openVectorFunction;
[[noreturn]] void FailOutsideVectorFunction(const char* api, Location where);

inline VectorFunction& InVectorFunction(const char* api, Location where) {
    VectorFunction* function = openVectorFunction;
    if (__builtin_expect(function == nullptr, 0)) FailOutsideVectorFunction(api, where);
    return *function;
}

// __VEC_SCOPE__ and VF_CALL.
class VectorScope {
public:
    explicit VectorScope(Location where = Location::Here())
        : function_(VectorFunction::Open(where)), unwinding_(std::uncaught_exceptions()) {}
    // A `return` in the braces ends the function as their end does; an error drops it.
    ~VectorScope() noexcept(false) {
        if (!open_) return;
        if (std::uncaught_exceptions() == unwinding_) Close();
        else function_.Abandon();
    }
    VectorScope(const VectorScope&) = delete;
    VectorScope& operator=(const VectorScope&) = delete;
    void Close() { open_ = false; function_.Close(); }
    bool Once() {   // true the first time; the second ends the function
        if (entered_) Close();
        return !entered_ && (entered_ = true);
    }

private:
    VectorFunction& function_;
    const int unwinding_;   // exceptions in flight when the scope was entered
    bool open_ = true, entered_ = false;
};

}  // namespace sim
