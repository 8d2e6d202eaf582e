#include "sim/opapi/kernel_library.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <tuple>

#include "sim/host/shared_library.h"
#include "sim/host/text.h"

namespace sim::opapi {

KernelInvoke LoadKernel(const std::string& path, const std::string& entry) {
    static std::mutex mutex;
    static std::map<std::tuple<std::string, host::FileIdentity, std::string>, KernelInvoke> loaded;
    const std::lock_guard<std::mutex> lock(mutex);
    KernelInvoke& invoke = loaded[{path, host::IdentityOf(path), entry}];
    if (invoke == nullptr) {
        void* library = host::OpenLibrary(path);
        void* symbol = dlsym(library, ("custom_ops_kernel_invoke_" + entry).c_str());
        if (symbol == nullptr) symbol = dlsym(library, "custom_ops_kernel_invoke");
        if (symbol == nullptr)
            host::Refuse(host::kNoKernel, "%s exports no custom_ops_kernel_invoke: it is not a compiled kernel",
                         path.c_str());
        invoke = reinterpret_cast<KernelInvoke>(symbol);
    }
    return invoke;
}

}  // namespace sim::opapi
