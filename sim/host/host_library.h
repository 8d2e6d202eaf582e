// Libraries built from op_host sources. Their static initialisers register while the library is being opened, and what they
// register belongs to it: two versions of an op can be loaded side by side.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/host/op.h"

namespace sim::host {

class HostLibrary {
public:
    const std::vector<Op>& Ops() const { return ops_; }
    // HostError with the ops there are.
    const Op& Find(const std::string& type) const;

    // For the registrations.
    std::deque<ops::OpDef> definitions;
    std::map<std::string, OpImplRecord> impls;
    std::vector<std::pair<std::string, std::shared_ptr<optiling::TilingDef> (*)()>> tilingClasses;

private:
    friend std::shared_ptr<const HostLibrary> LoadHostLibrary(const std::string& path);
    void Resolve();
    Op ResolveOp(const ops::OpDef& definition) const;
    std::string path_;
    std::vector<Op> ops_;
};

// Opens a library once; a file that changed since is opened anew.
std::shared_ptr<const HostLibrary> LoadHostLibrary(const std::string& path);

}  // namespace sim::host
