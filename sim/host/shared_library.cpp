#include "sim/host/shared_library.h"

#include <dlfcn.h>
#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "sim/host/text.h"

namespace sim::host {

FileIdentity IdentityOf(const std::string& path) {
    struct stat file;
    if (stat(path.c_str(), &file) != 0)
        Refuse(kInnerError, "%s: %s", path.c_str(), std::strerror(errno));
    return {file.st_dev, file.st_ino, file.st_mtim.tv_sec, file.st_mtim.tv_nsec, file.st_size};
}

void* OpenLibrary(const std::string& path) {
    static std::mutex mutex;
    static std::map<std::string, FileIdentity> opened;
    const std::lock_guard<std::mutex> lock(mutex);
    const FileIdentity identity = IdentityOf(path);
    const auto [known, first] = opened.emplace(path, identity);
    std::string name = path.find('/') == std::string::npos ? "./" + path : path;
    if (!first && known->second != identity) {
        // The loader compares names first and would return the old library. The descriptor stays open: its name stays taken.
        const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor >= 0) name = "/proc/self/fd/" + std::to_string(descriptor);
        known->second = identity;
    }
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        opened.erase(path);
        const std::string reason = dlerror();
        if (reason.find("custom_ops_sim_abi_") != std::string::npos)
            Refuse(kInnerError, "%s was built for another version of the simulator: build its op package again (custom-ops sim build)",
                   path.c_str());
        Refuse(kInnerError, "cannot load %s: %s", path.c_str(), reason.c_str());
    }
    return handle;
}

}  // namespace sim::host
