#include "sim/ge/op_packages.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>

#include "sim/host/host_library.h"

namespace sim {
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
    return value == nullptr ? "" : value;
}

}  // namespace

std::vector<std::string> OpPackageFolders() {
    std::vector<std::string> folders = Split(Environment("ASCEND_CUSTOM_OPP_PATH"), ':');
    const std::string vendors = Environment("ASCEND_OPP_PATH") + "/vendors/", key = "load_priority=";
    std::ifstream config(vendors + "config.ini");
    for (std::string line; std::getline(config, line);)
        if (line.rfind(key, 0) == 0)
            for (const std::string& vendor : Split(line.substr(key.size()), ',')) folders.push_back(vendors + vendor);
    return folders;
}

const host::Op* FindPackagedOp(const std::string& type) {
    static std::mutex mutex;
    static std::set<std::shared_ptr<const host::HostLibrary>> loaded;  // what is given out stays valid
    const std::lock_guard<std::mutex> lock(mutex);
    for (const std::string& folder : OpPackageFolders()) {
        const std::string path = folder + "/op_host/libcust_opmaster.so";
        if (!std::filesystem::exists(path)) continue;
        const auto library = host::LoadHostLibrary(path);
        loaded.insert(library);
        for (const host::Op& op : library->Ops())
            if (op.type == type) return &op;
    }
    return nullptr;
}

}  // namespace sim
