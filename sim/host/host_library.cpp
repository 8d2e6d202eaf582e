#include "sim/host/host_library.h"

#include <algorithm>
#include <mutex>

#include "register/op_def_registry.h"
#include "sim/host/shared_library.h"
#include "sim/host/text.h"

namespace sim::host {
namespace {

thread_local HostLibrary* loading = nullptr;

// Sources linked into a program rather than loaded by LoadHostLibrary register here.
HostLibrary& Current() {
    static HostLibrary linked;
    return loading != nullptr ? *loading : linked;
}

bool AllDigits(const std::string& text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Op HostLibrary::ResolveOp(const ops::OpDef& definition) const {
    Op op;
    op.type = definition.Type();
    ResolveColumns(definition, op);
    for (const auto& attribute : definition.Attributes()) op.attributes.push_back(attribute.Record());
    const auto registered = impls.find(op.type);
    if (registered != impls.end()) op.impl = registered->second;
    if (definition.InferShape() != nullptr) op.impl.inferShape = definition.InferShape();
    if (definition.InferDataType() != nullptr) op.impl.inferDataType = definition.InferDataType();
    if (definition.AICore().Tiling() != nullptr) op.impl.tiling = definition.AICore().Tiling();
    for (const int32_t input : op.impl.dataDependency)
        if (input >= 0 && static_cast<size_t>(input) < op.inputs.size()) op.inputs[static_cast<size_t>(input)].valueDepend = true;

    // "HcPost" is the class of all tiling keys without one of their own, "HcPost_3" the class of key 3.
    for (const auto& [name, create] : tilingClasses) {
        const bool ofOp = name.compare(0, op.type.size(), op.type) == 0;
        const std::string rest = ofOp ? name.substr(op.type.size()) : "";
        const bool keyed = ofOp && rest.size() > 1 && rest[0] == '_' && AllDigits(rest.substr(1));
        if (!ofOp || !(rest.empty() || keyed)) continue;
        TilingClass found{std::nullopt, create()};
        if (keyed) found.key = std::stoull(rest.substr(1));
        op.impl.tilingCapacity = std::max(op.impl.tilingCapacity, found.layout->GetDataSize());
        const auto same = std::find_if(op.tilingClasses.begin(), op.tilingClasses.end(),
                                       [&](const TilingClass& c) { return c.key == found.key; });
        if (same == op.tilingClasses.end()) op.tilingClasses.push_back(std::move(found));
    }
    return op;
}

void HostLibrary::Resolve() {
    for (const auto& definition : definitions) {
        const auto same = [&](const Op& op) { return op.type == definition.Type(); };
        if (std::any_of(ops_.begin(), ops_.end(), same))
            Refuse(kInvalidParameter, "%s is defined twice in %s", definition.Type().c_str(), path_.c_str());
        ops_.push_back(ResolveOp(definition));
    }
}

const Op& HostLibrary::Find(const std::string& type) const {
    for (const Op& op : ops_)
        if (op.type == type) return op;
    std::vector<std::string> known;
    for (const Op& op : ops_) known.push_back(op.type);
    Refuse(kInvalidParameter, "op %s is not in %s, which has %s", type.c_str(), path_.c_str(),
           known.empty() ? "no ops" : Join(known).c_str());
}

std::shared_ptr<const HostLibrary> LoadHostLibrary(const std::string& path) {
    static std::mutex mutex;
    static std::map<std::pair<std::string, FileIdentity>, std::shared_ptr<const HostLibrary>> loaded;
    const std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<const HostLibrary>& known = loaded[{path, IdentityOf(path)}];
    if (known == nullptr) {
        auto library = std::make_shared<HostLibrary>();
        library->path_ = path;
        struct Scope {
            explicit Scope(HostLibrary* target) { loading = target; }
            ~Scope() { loading = nullptr; }
        };
        {
            const Scope scope(library.get());
            OpenLibrary(path);
        }
        library->Resolve();
        known = std::move(library);
    }
    return known;
}

}  // namespace sim::host

namespace ops {

OpRegistration::OpRegistration(const OpDef& definition) { sim::host::Current().definitions.push_back(definition); }

}  // namespace ops

namespace optiling {

TilingClassRegistration::TilingClassRegistration(const char* opType, std::shared_ptr<TilingDef> (*create)()) {
    sim::host::Current().tilingClasses.emplace_back(opType, create);
}

}  // namespace optiling

namespace gert {

OpImplRegisterV2::OpImplRegisterV2(const char* opType) : record_(&sim::host::Current().impls[opType]) {}

OpImplRegisterV2& OpImplRegisterV2::InferShape(InferShapeFunc function) {
    record_->inferShape = function;
    return *this;
}
OpImplRegisterV2& OpImplRegisterV2::InferDataType(InferDataTypeFunc function) {
    record_->inferDataType = function;
    return *this;
}
OpImplRegisterV2& OpImplRegisterV2::InferShapeRange(InferShapeRangeFunc) { return *this; }
OpImplRegisterV2& OpImplRegisterV2::Tiling(TilingFunc function, size_t maxTilingDataBytes) {
    record_->tiling = function;
    record_->tilingCapacity = maxTilingDataBytes;
    return *this;
}
OpImplRegisterV2& OpImplRegisterV2::InputsDataDependency(std::initializer_list<int32_t> inputs) {
    record_->dataDependency.insert(inputs.begin(), inputs.end());
    return *this;
}
OpImplRegisterV2& OpImplRegisterV2::Parse(TilingParseFunc function, void* (*create)(), void (*destroy)(void*)) {
    record_->parse = function;
    record_->createCompileInfo = create;
    record_->destroyCompileInfo = destroy;
    return *this;
}
OpImplRegisterV2& OpImplRegisterV2::Parse(ge::graphStatus (*function)(KernelContext*), void* (*create)(),
                                          void (*destroy)(void*)) {
    record_->parseKernel = function;
    record_->createCompileInfo = create;
    record_->destroyCompileInfo = destroy;
    return *this;
}

}  // namespace gert
