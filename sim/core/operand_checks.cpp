// Where operands lie: alignment, range inside their tensor and memory, bytes never written.
#include <algorithm>
#include <string>

#include "sim/core/core_state.h"
#include "sim/core/text.h"

namespace sim {
namespace {

struct Extent { uint64_t begin, end; bool negative; };   // negative: reaches below address 0

Extent ExtentOf(const Region& region) {
    const int64_t last0 = int64_t(region.count0 - 1) * region.stride0, last1 = int64_t(region.count1 - 1) * region.stride1;
    const int64_t low = std::min<int64_t>(0, last0) + std::min<int64_t>(0, last1);
    const int64_t high = std::max<int64_t>(0, last0) + std::max<int64_t>(0, last1);
    return {region.start + uint64_t(low), region.start + uint64_t(high) + region.run, low < 0 && uint64_t(-low) > region.start};
}

const char* Verb(Access access) { return access == Access::Read ? "reads" : "writes"; }

}  // namespace

void CoreState::CheckOperands(const Instruction& instruction) {
    accesses_.clear();
    for (const Operand& operand : instruction.operands) {
        const auto check = [&](const Region& given) {
            const Region region = given.Normalized();
            if (region.run == 0) return;
            const Extent extent = ExtentOf(region);
            if (operand.memory == Memory::GM) CheckGm(instruction, operand, extent.begin, extent.end);
            else if (extent.negative) CheckLocal(instruction, operand, region, 0, UINT64_MAX);
            else CheckLocal(instruction, operand, region, extent.begin, extent.end);
            accesses_.push_back({&operand, region});
        };
        check(operand.region);
        for (const Region& region : operand.more) check(region);
    }
    // Last, when every operand is known to lie inside its memory.
    for (const Touch& access : accesses_)
        if ((access.operand->access != Access::Write && !access.operand->mayBeUnwritten) ||
            (access.operand->memory == Memory::GM && core_.atomicMode != 0 && instruction.pipe != Pipe::S))
            CheckWritten(instruction, *access.operand, access.region);
}

void CoreState::CheckLocal(const Instruction& instruction, const Operand& operand, const Region& region, uint64_t begin,
                           uint64_t end) {
    const std::string memory = MemoryName(operand.memory);
    const uint64_t capacity = memory_->Bytes(operand.memory);
    if (end > capacity || begin >= end) {   // never ignored: there are no such bytes
        const std::string message =
            operand.low >= kNowhere
                ? std::string(operand.name) + " is a tensor without memory: take it from AllocTensor, DeQue or Get first"
                : std::string(operand.name) + " " + Verb(operand.access) + " from byte " + Hex(region.start) + " to outside " +
                      memory + ", which has " + std::to_string(capacity) + " bytes";
        Abort(MakeFinding(Rule::OutOfRange, instruction.pipe, instruction.name, operand.name, message, instruction.where));
    }
    if (operand.high != 0 && (begin < operand.low || end > operand.high)) {
        const bool past = end > operand.high;
        uint64_t low = operand.low, slotEnd = operand.high;   // a view that starts past its buffer's end: the buffer itself
        if (low >= operand.high) BufferAround(operand.memory, operand.high - 1, &low, &slotEnd);
        Violation(Rule::OutOfRange, instruction, operand,
                  std::string(operand.name) + " " + Verb(operand.access) + " " + memory + " " + HexRange(begin, end) + ", " +
                      std::to_string(past ? end - operand.high : operand.low - begin) + " bytes " +
                      (past ? "past the end of " : "before the start of ") + Place(operand.memory, low, operand.high));
    }
    if (operand.alignment > 1 && region.start % operand.alignment != 0)
        Violation(Rule::Alignment, instruction, operand,
                  std::string(operand.name) + " starts at " + memory + " byte " + Hex(region.start) + ", byte " +
                      std::to_string(region.start % operand.alignment) + " of a " + std::to_string(operand.alignment) +
                      "-byte unit; it has to start on one");
}

// Only the tensors of the launch count: a size given to SetGlobalBuffer is not known to the device.
void CoreState::CheckGm(const Instruction& instruction, const Operand& operand, uint64_t begin, uint64_t end) {
    const std::string access = std::string(operand.name) + " " + Verb(operand.access) + " ";
    std::string message;
    const GmTensor* tensor = launch_.tensors.Find(operand.low);
    if (tensor != nullptr && begin >= tensor->begin && end <= tensor->end && begin < end) {
        if (operand.alignment > 1 && begin % operand.alignment != 0)
            Violation(Rule::Alignment, instruction, operand,
                      access + tensor->name + " from byte " + std::to_string(begin - tensor->begin) +
                          ", an address that is not a multiple of " + std::to_string(operand.alignment));
        if (!tensor->readOnly || operand.access == Access::Read) return;
        message = access + "into " + tensor->name + ", an input of the launch";
    } else if (operand.low == 0) {
        message = access + "through a null GM address (an optional tensor that was not given?)";
    } else if (tensor != nullptr) {
        const int64_t from = int64_t(begin - tensor->begin), to = int64_t(end - tensor->begin);
        const bool past = end > tensor->end;
        message = access + tensor->name + " bytes [" + std::to_string(from) + ", " + std::to_string(to) + "), " +
                  std::to_string(past ? to - int64_t(tensor->Bytes()) : -from) + " bytes " +
                  (past ? "past its end" : "before its start") + "; it has " + std::to_string(tensor->Bytes()) + " bytes";
    } else if (const GmTensor* before = launch_.tensors.EndingBefore(operand.low)) {
        message = access + std::to_string(end - begin) + " bytes through a GM address " +
                  std::to_string(operand.low - before->end) + " bytes past the end of " + before->name + ", which has " +
                  std::to_string(before->Bytes()) + " bytes";
    } else {
        message = access + std::to_string(end - begin) + " bytes through a GM address outside every tensor of the launch";
    }
    Abort(MakeFinding(Rule::GmOutOfBounds, instruction.pipe, instruction.name, operand.name, std::move(message),
                      instruction.where));
}

void CoreState::CheckWritten(const Instruction& instruction, const Operand& operand, const Region& region) {
    uint64_t hole = 0, end = 0;
    if (operand.memory == Memory::GM) {
        const GmTensor* tensor = launch_.tensors.Find(operand.low);
        if (tensor->startsWritten) return;
        const std::shared_lock<std::shared_mutex> lock(launch_.writtenMutex);
        region.ForEachRun([&](uint64_t begin, uint64_t bytes) {
            if (end != 0) return;
            hole = gm_.FirstUnwritten(begin, begin + bytes, launch_.written);
            if (hole < begin + bytes) end = begin + bytes;
        });
    } else {
        const Shadow& shadow = memory_->ShadowOf(operand.memory);
        region.ForEachRun([&](uint64_t begin, uint64_t bytes) {
            if (end != 0) return;
            hole = shadow.FirstUnwritten(begin, bytes);
            if (hole < begin + bytes) end = begin + bytes;
        });
    }
    if (end == 0) return;
    findings_.Add(Rule::UninitializedRead, instruction.where, {}, operand.name, [&] {
        const bool atomic = operand.access == Access::Write;
        Finding finding = MakeFinding(Rule::UninitializedRead, instruction.pipe, instruction.name, operand.name,
                                      std::string(operand.name) + (atomic ? " adds to " : " reads ") +
                                          Place(operand.memory, hole, end) + ", which nothing has written",
                                      instruction.where);
        finding.repair = atomic ? "clear the bytes before the first atomic copy"
                                : "write the bytes first, or shorten the access to what was written";
        return finding;
    });
}

}  // namespace sim
