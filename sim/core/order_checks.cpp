// Which accesses nothing orders. Every access is compared with the last write, and a write with the last reads, of its bytes.
#include <algorithm>
#include <string>

#include "sim/core/core_state.h"

namespace sim {
namespace {

bool Reads(Access access) { return access != Access::Write; }
bool Writes(Access access) { return access != Access::Read; }

}  // namespace

// Reads first: of an in-place instruction, "read before write completes" says more. A write that comes too early for the
// reads of the bytes is not reported against the write before those reads as well: ordering it after them repairs both.
void CoreState::CheckOrder(const Instruction& instruction, const Clock& view) {
    for (const bool writes : {false, true})
        for (const Touch& access : accesses_)
            if (writes == Writes(access.operand->access)) {
                if (access.operand->memory == Memory::GM) CheckOrderInGm(instruction, access, view);
                else CheckOrderInLocal(instruction, access, view);
            }
}

void CoreState::CheckOrderInGm(const Instruction& instruction, const Touch& access, const Clock& view) {
    access.region.ForEachRun([&](uint64_t begin, uint64_t bytes) {
        bool early = false;
        for (int p = 0; Writes(access.operand->access) && p < kPipes; ++p) {
            const GmCore::Unordered read = gm_.FirstUnorderedRead(Pipe(p), begin, begin + bytes, view);
            if (read.begin == read.end) continue;
            early = true;
            ReportHazard(instruction, access, read.id, false, read.begin, read.end);
        }
        const GmCore::Unordered write = gm_.FirstUnorderedWrite(begin, begin + bytes, view);
        if (write.begin < write.end && !early) ReportHazard(instruction, access, write.id, true, write.begin, write.end);
    });
}

void CoreState::CheckOrderInLocal(const Instruction& instruction, const Touch& access, const Clock& view) {
    const Shadow& shadow = memory_->ShadowOf(access.operand->memory);
    access.region.ForEachRun([&](uint64_t begin, uint64_t bytes) {
        bool early = false;
        for (int p = 0; Writes(access.operand->access) && p < kPipes; ++p) {
            const uint64_t read = shadow.FirstUnorderedRead(Pipe(p), begin, bytes, view);
            if (read == begin + bytes) continue;
            early = true;
            ReportHazard(instruction, access, shadow.LastRead(Pipe(p), read), false, read, read + 1);
        }
        const uint64_t written = shadow.FirstUnorderedWrite(begin, bytes, view);
        if (written < begin + bytes && !early)
            ReportHazard(instruction, access, shadow.LastWrite(written), true, written, written + 1);
    });
}

void CoreState::ReportHazard(const Instruction& instruction, const Touch& access, InstructionId earlier, bool earlierWrites,
                             uint64_t begin, uint64_t end) {
    const Operand& operand = *access.operand;
    const Site* site = sites_.Of(earlier);
    const Location before = site != nullptr ? site->where : Location();
    const bool laterWrites = Writes(operand.access) && !(Reads(operand.access) && earlierWrites);
    findings_.Add(Rule::Hazard, instruction.where, before, earlierWrites ? "write" : "read", [&] {
        const Pipe earlierPipe = PipeOf(earlier);
        Finding finding = MakeFinding(Rule::Hazard, instruction.pipe, instruction.name, operand.name,
                                      HazardTitle(earlierWrites, laterWrites), instruction.where);
        const auto describe = [&](Pipe pipe, bool writes, uint64_t from, uint64_t to, const char* name, const Location& where) {
            AccessRecord record;
            record.pipe = pipe;
            record.verb = writes ? "writes" : "reads";
            record.memory = operand.memory;
            const GmTensor* tensor = operand.memory == Memory::GM ? launch_.tensors.Find(from) : nullptr;
            record.what = tensor != nullptr ? tensor->name : BufferName(operand.memory, from);
            const uint64_t base = tensor != nullptr ? tensor->begin : 0;
            record.begin = from - base;
            record.end = to - base;
            record.instruction = name;
            record.file = where.file;
            record.line = where.line;
            finding.accesses.push_back(std::move(record));
        };
        uint64_t from = begin, to = end;
        if (operand.memory != Memory::GM) memory_->ShadowOf(operand.memory).Extent(earlier, earlierWrites, &from, &to);
        describe(earlierPipe, earlierWrites, from, to, site != nullptr ? site->instruction : "issued long before", before);
        uint64_t low = access.region.start, high = access.region.start;
        access.region.ForEachRun([&](uint64_t runBegin, uint64_t bytes) {
            low = std::min(low, runBegin);
            high = std::max(high, runBegin + bytes);
        });
        describe(instruction.pipe, laterWrites, low, high, instruction.name, instruction.where);
        finding.repair = std::string("nothing orders ") + PipeName(earlierPipe) + " -> " + PipeName(instruction.pipe) +
                         " between them; " +
                         RepairOfHazard(earlierPipe, earlierWrites, instruction.pipe, operand.memory);
        return finding;
    });
}

void CoreState::RecordAccesses(InstructionId id, SiteIndex site, const Clock& view) {
    const Pipe pipe = PipeOf(id);
    for (const Touch& access : accesses_) {
        const Operand& operand = *access.operand;
        const bool writes = Writes(operand.access), reads = Reads(operand.access);
        if (operand.memory == Memory::GM) {
            const bool atomic = writes && core_.atomicMode != 0 && pipe != Pipe::S;
            access.region.ForEachRun([&](uint64_t begin, uint64_t bytes) {
                if (reads) gm_.Record(begin, begin + bytes, GmCore::Kind::Read, id, site, view);
                if (writes) gm_.Record(begin, begin + bytes, atomic ? GmCore::Kind::Atomic : GmCore::Kind::Write, id, site, view);
            });
            continue;
        }
        Shadow& shadow = memory_->ShadowOf(operand.memory);
        access.region.ForEachRun([&](uint64_t begin, uint64_t bytes) {
            // A scalar read is complete before the scalar unit issues anything else: nothing can conflict with it later.
            if (reads && pipe != Pipe::S) shadow.RecordRead(begin, bytes, id);
            if (writes) shadow.RecordWrite(begin, bytes, id);
        });
    }
}

}  // namespace sim
