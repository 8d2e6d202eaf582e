// LocalTensor<T>: a view of a local memory of this core (UB on a vector core).
#pragma once

#include "ascendc/element.h"
#include "ascendc/params.h"
#include "sim/core/core.h"

namespace AscendC {

template <typename T>
class LocalTensor {
public:
    using PrimType = T;

    LocalTensor() = default;
    // Static programming: a tensor at a fixed byte address, without TPipe.
    LocalTensor(TPosition position, uint32_t address, uint32_t elements)
        : LocalTensor(position, address, uint64_t(elements) * sizeof(T),
                      sim::AlignUp(address + uint64_t(elements) * sizeof(T), ONE_BLK_SIZE)) {}
    explicit LocalTensor(uint32_t address)
        : LocalTensor(TPosition::VECIN, address, sim::Core::Current().LocalBytes(sim::Memory::UB) - address,
                      sim::Core::Current().LocalBytes(sim::Memory::UB)) {}
    // Simulator only: `length` bytes usable at `address`; accesses may reach to `end`, the end of the buffer.
    LocalTensor(TPosition position, uint64_t address, uint64_t length, uint64_t end)
        : address_(address), length_(length), end_(end), position_(position) {}

    LocalTensor operator[](uint32_t offset) const {
        const uint64_t bytes = uint64_t(offset) * sizeof(T);
        return {position_, address_ + bytes, length_ > bytes ? length_ - bytes : 0, end_};
    }
    template <typename U>
    LocalTensor<U> ReinterpretCast() const { return {position_, address_, length_, end_}; }

    uint32_t GetSize() const { return static_cast<uint32_t>(length_ / sizeof(T)); }
    uint32_t GetLength() const { return static_cast<uint32_t>(length_); }
    void SetSize(uint32_t elements) { length_ = uint64_t(elements) * sizeof(T); }
    void SetBufferLen(uint32_t bytes) { length_ = bytes; }
    TPosition GetPosition() const { return position_; }
    __ubuf__ T* GetPhyAddr() const { return Host(); }
    __ubuf__ T* GetPhyAddr(uint32_t offset) const { return (*this)[offset].Host(); }
    template <typename U>
    void SetAddrWithOffset(const LocalTensor<U>& source, uint32_t offset) {
        *this = source.template ReinterpretCast<T>()[offset];
    }

    // Scalar pipe access: a flag must order it with the other pipes.
    T GetValue(uint32_t index, sim::Location where = sim::Location::Here()) const {
        return *(*this)[index].ScalarAccess("GetValue", "srcLocal", sim::Access::Read, where);
    }
    template <typename U>
    void SetValue(uint32_t index, U value, sim::Location where = sim::Location::Here()) const {
        *(*this)[index].ScalarAccess("SetValue", "dstLocal", sim::Access::Write, where) = static_cast<T>(value);
    }
    Element<LocalTensor, T> operator()(uint32_t index, sim::Location where = sim::Location::Here()) const {
        return {*this, index, where};
    }

    // dst = a + b: any expression that knows how to write itself into a tensor.
    template <typename Expression, typename = decltype(&Expression::template AssignTo<T>)>
    void operator=(const Expression& expression) const { expression.AssignTo(*this); }

    // --- what the simulator's APIs use ---------------------------------------------------------------------------
    sim::Memory Where() const { return sim::MemoryOf(position_); }
    uint64_t Address() const { return address_; }  // byte address in Where()
    uint64_t Low() const { return address_; }      // Operand::low
    uint64_t End() const { return end_; }          // Operand::high: end of the buffer the tensor came from
    T* Host() const { return reinterpret_cast<T*>(sim::Core::Current().Local(Where(), address_)); }
    sim::Operand AsOperand(const char* name, sim::Access access, const sim::Region& region,
                           uint16_t alignment = ONE_BLK_SIZE) const {
        return {name, access, Where(), alignment, Low(), End(), region, {}};
    }

private:
    T* ScalarAccess(const char* api, const char* name, sim::Access access, sim::Location where) const {
        sim::Core& core = sim::Core::Current();
        sim::Instruction instruction{api, sim::Pipe::S, sim::Cost::Scalar, 1, where, {}};
        if (core.OperandsNeeded())
            instruction.operands.push_back(AsOperand(name, access, {address_, sizeof(T)}, sizeof(T)));
        core.FlushBefore(sim::Pipe::S);  // the value is needed now: the scalar pipe is in order and never held back
        core.Issue(instruction, [] {});
        return Host();
    }

    uint64_t address_ = sim::kNowhere, length_ = 0, end_ = sim::kNowhere;
    TPosition position_ = TPosition::VECCALC;
};

}  // namespace AscendC
