// Argument of the function that fills an op's compile info before its first tiling.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"

namespace fe {
class PlatFormInfos;
}

namespace gert {

class TilingParseContext : public ExtendedKernelContext {
public:
    using ExtendedKernelContext::ExtendedKernelContext;

    const char* GetCompiledJson() const { return "{}"; }
    void* GetCompiledInfo() const;
    template <typename T>
    T* GetCompiledInfo() const { return static_cast<T*>(GetCompiledInfo()); }
    fe::PlatFormInfos* GetPlatformInfo() const;
};

}  // namespace gert
