#include "sim/opapi/kernel_library.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "sim/host/shared_library.h"
#include "sim/host/text.h"

namespace sim::opapi {

KernelInvoke LoadKernel(const std::string& path) {
    static std::mutex mutex;
    static std::map<std::pair<std::string, host::FileIdentity>, KernelInvoke> loaded;
    const std::lock_guard<std::mutex> lock(mutex);
    KernelInvoke& invoke = loaded[{path, host::IdentityOf(path)}];
    if (invoke == nullptr) {
        void* symbol = dlsym(host::OpenLibrary(path), "custom_ops_kernel_invoke");
        if (symbol == nullptr)
            host::Refuse(host::kNoKernel, "%s exports no custom_ops_kernel_invoke: it is not a compiled kernel",
                         path.c_str());
        invoke = reinterpret_cast<KernelInvoke>(symbol);
    }
    return invoke;
}

}  // namespace sim::opapi
