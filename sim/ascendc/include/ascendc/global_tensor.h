// GlobalTensor<T>: a view of GM. Scalar access goes through the core's data cache.
#pragma once

#include "ascendc/element.h"
#include "ascendc/framework_state.h"

namespace AscendC {

template <typename T>
class GlobalTensor {
public:
    using PrimType = T;

    void SetGlobalBuffer(__gm__ T* buffer, uint64_t elements) {
        base_ = data_ = buffer;
        elements_ = elements;
        end_ = Address() + elements * sizeof(T);
    }
    void SetGlobalBuffer(__gm__ T* buffer) {
        base_ = data_ = buffer;
        elements_ = 0;
        end_ = 0;
    }

    GlobalTensor operator[](uint64_t offset) const {
        GlobalTensor view = *this;
        view.data_ = data_ + offset;
        view.elements_ = elements_ > offset ? elements_ - offset : 0;
        return view;
    }
    template <typename U>
    GlobalTensor<U> ReinterpretCast() const {
        GlobalTensor<U> view;
        view.Rebind(reinterpret_cast<U*>(base_), reinterpret_cast<U*>(data_), elements_ * sizeof(T) / sizeof(U), end_);
        return view;
    }

    const __gm__ T* GetPhyAddr() const { return data_; }
    __gm__ T* GetPhyAddr(uint64_t offset) const { return data_ + offset; }
    uint64_t GetSize() const { return elements_; }
    // A hint changes neither values nor the modelled time.
    void SetL2CacheHint(CacheMode, CacheRwMode = CacheRwMode::RW) {}
    template <CacheRwMode = CacheRwMode::RW>
    void SetL2CacheHint(CacheMode) {}
    void SetShapeInfo(const ShapeInfo& shape) { shape_ = shape; }
    ShapeInfo GetShapeInfo() const { return shape_; }

    T GetValue(uint64_t index, sim::Location where = sim::Location::Here()) const {
        return *(*this)[index].ScalarAccess("GetValue", "srcGlobal", sim::Access::Read, where);
    }
    template <typename U>
    void SetValue(uint64_t index, U value, sim::Location where = sim::Location::Here()) const {
        *(*this)[index].ScalarAccess("SetValue", "dstGlobal", sim::Access::Write, where) = static_cast<T>(value);
    }
    Element<GlobalTensor, T> operator()(uint64_t index, sim::Location where = sim::Location::Here()) const {
        return {*this, index, where};
    }

    // --- what the simulator's APIs use ---------------------------------------------------------------------------
    sim::Memory Where() const { return sim::Memory::GM; }
    uint64_t Address() const { return reinterpret_cast<uint64_t>(data_); }
    uint64_t Low() const { return reinterpret_cast<uint64_t>(base_); }  // Operand::low: an address inside the tensor
    uint64_t End() const { return end_; }                               // Operand::high; 0 when no size was given
    T* Host() const { return data_; }
    sim::Operand AsOperand(const char* name, sim::Access access, const sim::Region& region,
                           uint16_t alignment = sizeof(T)) const {
        return {name, access, sim::Memory::GM, alignment, Low(), End(), region, {}};
    }
    void Rebind(T* base, T* data, uint64_t elements, uint64_t end) {
        base_ = base;
        data_ = data;
        elements_ = elements;
        end_ = end;
    }

private:
    T* ScalarAccess(const char* api, const char* name, sim::Access access, sim::Location where) const {
        sim::Core& core = sim::Core::Current();
        sim::Instruction instruction{api, sim::Pipe::S, sim::Cost::Scalar, 1, where, {}};
        if (core.OperandsNeeded()) {
            instruction.operands.push_back(AsOperand(name, access, {Address(), sizeof(T)}));
            sim::DataCache& cache = sim::FrameworkState::Current().cache;
            if (access == sim::Access::Read) cache.Read(core, Address(), where);
            else cache.Write(Address(), where);
        }
        core.FlushBefore(sim::Pipe::S);
        core.Issue(instruction, [] {});
        return data_;
    }

    T* base_ = nullptr;
    T* data_ = nullptr;
    uint64_t elements_ = 0, end_ = 0;
    ShapeInfo shape_;
};

}  // namespace AscendC
