// What a vector core asks its cube core to do, and where both reach the bytes of UB.
#pragma once

#include "ascendc/block.h"
#include "ascendc/matmul/engine.h"

namespace sim::matmul {

struct Registration;

// Bytes of UB as they lie in the system's part of the workspace: every vector core has a picture of its UB there, at the same offsets.
// UB -> cube and cube -> UB go through it on 2201; on 3510, where a direct way exists, the model takes this one as well.
template <typename T>
GlobalTensor<T> InWorkspace(const char* call, const LocalTensor<T>& ub, Location where) {
    Core& core = Core::Current();
    const uint64_t ubBytes = core.LocalBytes(Memory::UB), start = core.BlockIdx() * ubBytes;
    if (core.SystemWorkspace() == nullptr || start + ubBytes > AscendC::RESERVED_WORKSPACE)
        Refuse(Rule::Argument, call, "workspace", core.SystemWorkspace() == nullptr
                   ? std::string("the workspace has no system part: add GetLibApiWorkSpaceSize() bytes to its size on the host")
                   : "the system's part of the workspace serves the chip's vector cores, this is core " + std::to_string(core.BlockIdx()),
                       where);
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer(reinterpret_cast<T*>(core.SystemWorkspace() + start + ub.Address()), (ubBytes - ub.Address()) / sizeof(T));
    return gm;
}

// Rows of the same length, `pitch` bytes apart.
struct Rows { int64_t count, bytes, pitch; };

template <typename T>
void ToWorkspace(const GlobalTensor<T>& gm, const LocalTensor<T>& ub, int64_t bytes, Location where) {
    DataCopyPad(gm, ub, AscendC::DataCopyExtParams(1, bytes, 0, 0, 0), where);
}
template <typename T>
void FromGm(const LocalTensor<T>& ub, const GlobalTensor<T>& gm, const Rows& rows, Location where) {
    const int64_t gap = (rows.pitch - matmul::AlignUp(rows.bytes, kRow)) / kRow;
    DataCopyPad(ub, gm, AscendC::DataCopyExtParams(rows.count, rows.bytes, rows.pitch - rows.bytes, gap, 0),
                AscendC::DataCopyPadExtParams<T>(false, 0, 0, 0), where);
}

enum class Command : uint8_t {
    Configure,   // the tiling
    Block,       // one base matrix
    Blocks,      // all of them one after the other, an answer after each
    All,
};

// An address per C++ type.
template <typename T> inline constexpr char kTypeMark = 0;

struct MessageHead {
    int object = 0;                 // of those registered
    const void* type = nullptr;     // kTypeMark of the object
    int answers = 0;                // that have arrived; counted by the vector core
};
template <typename T>
struct Message : MessageHead {
    Command command = Command::All;
    TCubeTiling tiling{};
    Problem<T> problem;
    int64_t product = 0;   // number of the product, by vector core
    int64_t at = 0;
    Target<typename T::C> target;
    bool answer = false;
    Location where;
};

// Of one vector core: takes answers in until those of `message` are there. Answers to others may come before them.
inline void Await(MessageHead& message, int answers, const char* call, Location where) {
    Core& core = Core::Current();
    while (message.answers < answers) {
        const std::shared_ptr<void> answer = core.Receive(call, nullptr, where);
        if (answer == nullptr)
            Refuse(Rule::Deadlock, call, "", "the cube core has ended and does not answer: it has to reach REGIST_MATMUL_OBJ", where);
        ++static_cast<MessageHead*>(answer.get())->answers;
    }
}

}  // namespace sim::matmul
