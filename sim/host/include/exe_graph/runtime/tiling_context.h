// Argument of a tiling function: shapes, types and attributes of one call in; tiling data, block count, key, workspace out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "exe_graph/runtime/extended_kernel_context.h"
#include "exe_graph/runtime/storage_shape.h"
#include "exe_graph/runtime/tiling_data.h"

namespace fe {
class PlatFormInfos;
}

namespace gert {

class TilingContext : public ExtendedKernelContext {
public:
    using ExtendedKernelContext::ExtendedKernelContext;

    const StorageShape* GetInputShape(size_t index) const { return ShapeOf(InputTensor(index)); }
    const StorageShape* GetRequiredInputShape(size_t irIndex) const { return ShapeOf(IrInputTensor(irIndex, 0)); }
    const StorageShape* GetOptionalInputShape(size_t irIndex) const { return ShapeOf(IrInputTensor(irIndex, 0)); }
    const StorageShape* GetDynamicInputShape(size_t irIndex, size_t relative) const {
        return ShapeOf(IrInputTensor(irIndex, relative));
    }
    const Tensor* GetInputTensor(size_t index) const { return InputTensor(index); }
    const Tensor* GetRequiredInputTensor(size_t irIndex) const { return IrInputTensor(irIndex, 0); }
    const Tensor* GetOptionalInputTensor(size_t irIndex) const { return IrInputTensor(irIndex, 0); }
    const Tensor* GetDynamicInputTensor(size_t irIndex, size_t relative) const { return IrInputTensor(irIndex, relative); }
    const StorageShape* GetOutputShape(size_t index) const { return ShapeOf(OutputTensor(index)); }

    fe::PlatFormInfos* GetPlatformInfo() const;
    const void* GetCompileInfo() const;
    template <typename T>
    const T* GetCompileInfo() const { return static_cast<const T*>(GetCompileInfo()); }
    int32_t GetDeterministic() const { return 0; }

    ge::graphStatus SetTilingKey(uint64_t key);
    uint64_t GetTilingKey() const;
    ge::graphStatus SetBlockDim(uint32_t blockDim);
    uint32_t GetBlockDim() const;
    ge::graphStatus SetSimdNumBlocks(uint32_t blocks) { return SetBlockDim(blocks); }
    uint32_t GetSimdNumBlocks() const { return GetBlockDim(); }
    ge::graphStatus SetScheduleMode(uint32_t mode);  // 1: batch, all blocks are resident at once
    uint32_t GetScheduleMode() const;
    ge::graphStatus SetTilingCond(int32_t condition);
    int32_t GetTilingCond() const;
    ge::graphStatus SetNeedAtomic(bool atomic);
    bool NeedAtomic() const;
    ge::graphStatus SetLocalMemorySize(uint32_t bytes);
    uint32_t GetLocalMemorySize() const;

    TilingData* GetRawTilingData();
    // The raw buffer as a T; null when it is too small.
    template <typename T>
    T* GetTilingData() {
        static_assert(std::is_trivially_copyable_v<T>, "tiling data is copied to the device byte by byte");
        TilingData* raw = GetRawTilingData();
        if (raw == nullptr || raw->GetCapacity() < sizeof(T)) return nullptr;
        raw->SetDataSize(sizeof(T));
        return static_cast<T*>(raw->GetData());
    }
    size_t* GetWorkspaceSizes(size_t count);
    size_t GetWorkspaceNum() const;

private:
    static const StorageShape* ShapeOf(const Tensor* tensor) { return tensor == nullptr ? nullptr : &tensor->GetShape(); }
};

}  // namespace gert
