#include "cann_functions.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace custom_ops::npu {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);)
        if (!part.empty()) parts.push_back(part);
    return parts;
}

std::string Environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// Folders of op packages, first to be asked first.
std::vector<std::string> OpPackages() {
    std::vector<std::string> packages = Split(Environment("ASCEND_CUSTOM_OPP_PATH"), ':');
    const std::string vendors = Environment("ASCEND_OPP_PATH") + "/vendors/", key = "load_priority=";
    std::ifstream config(vendors + "config.ini");
    for (std::string line; std::getline(config, line);)
        if (line.rfind(key, 0) == 0)
            for (const std::string& vendor : Split(line.substr(key.size()), ',')) packages.push_back(vendors + vendor);
    return packages;
}

void* Load(const char* library) {
    if (void* handle = dlopen(library, RTLD_LAZY)) return handle;
    throw std::runtime_error(std::string("custom_ops: ") + dlerror());
}

template <typename Function>
void Find(Function*& function, void* library, const char* symbol) {
    function = reinterpret_cast<Function*>(dlsym(library, symbol));
    if (!function) throw std::runtime_error(std::string("custom_ops: ") + dlerror());
}

CannFunctions FindCannFunctions() {
    CannFunctions cann;
    void* aclnn = Load("libnnopbase.so");
    Find(cann.createTensor, aclnn, "aclCreateTensor");
    Find(cann.destroyTensor, aclnn, "aclDestroyTensor");
    Find(cann.setExecutorRepeatable, aclnn, "aclSetAclOpExecutorRepeatable");
    Find(cann.destroyExecutor, aclnn, "aclDestroyAclOpExecutor");
    void* runtime = Load("libascendcl.so");
    Find(cann.recentErrorMessage, runtime, "aclGetRecentErrMsg");
    Find(cann.memsetAsync, runtime, "aclrtMemsetAsync");
    cann.useStreamResources = reinterpret_cast<int (*)(void*)>(dlsym(runtime, "aclrtUseStreamResInCurrentThread"));
    return cann;
}

}  // namespace

const CannFunctions& Cann() {
    static const CannFunctions functions = FindCannFunctions();
    return functions;
}

void* FindInOpPackages(const char* symbol) {
    std::string tried;
    for (const std::string& package : OpPackages()) {
        const std::string path = package + "/op_api/lib/libcust_opapi.so";
        void* library = dlopen(path.c_str(), RTLD_LAZY);
        void* address = library ? dlsym(library, symbol) : nullptr;
        if (address) return address;
        tried += std::string("\n  ") + dlerror();
    }
    throw std::runtime_error("custom_ops: " + std::string(symbol) + " is in no op package. ASCEND_CUSTOM_OPP_PATH is '" +
                             Environment("ASCEND_CUSTOM_OPP_PATH") + "', ASCEND_OPP_PATH is '" + Environment("ASCEND_OPP_PATH") + "'." +
                             (tried.empty() ? " Set the first to the folder that `./build.sh build` made." : " Tried:" + tried));
}

}  // namespace custom_ops::npu
