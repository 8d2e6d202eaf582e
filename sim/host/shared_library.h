// dlopen for files that may be rebuilt under the same path.
#pragma once

#include <sys/stat.h>

#include <string>
#include <tuple>

namespace sim::host {

// What tells two states of a file apart.
using FileIdentity = std::tuple<dev_t, ino_t, int64_t, int64_t, off_t>;

// HostError when the file does not exist.
FileIdentity IdentityOf(const std::string& path);
// HostError with the loader's words. Never closed: reports and kernels keep pointers into it.
void* OpenLibrary(const std::string& path);

}  // namespace sim::host
