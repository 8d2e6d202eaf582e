// An op as launches need it: what its library registered, brought into one place and checked.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "register/op_def.h"
#include "register/op_impl_registry.h"
#include "register/tilingdata_base.h"

namespace sim::host {

struct OpImplRecord {
    gert::InferShapeFunc inferShape = nullptr;
    gert::InferDataTypeFunc inferDataType = nullptr;
    gert::TilingFunc tiling = nullptr;
    size_t tilingCapacity = 2048;  // what a tiling function may write at most, by default
    gert::TilingParseFunc parse = nullptr;
    ge::graphStatus (*parseKernel)(gert::KernelContext*) = nullptr;
    void* (*createCompileInfo)() = nullptr;
    void (*destroyCompileInfo)(void*) = nullptr;
    std::set<int32_t> dataDependency;  // IR inputs
};

// Entry i of dtypes and formats belongs to column i.
struct Parameter {
    std::string name;
    ops::Option type = ops::REQUIRED;
    std::vector<ge::DataType> dtypes;
    std::vector<ge::Format> formats;
    bool valueDepend = false, ignoreContiguous = false;
    std::optional<uint64_t> initValue;
    int inPlace = -1;  // of an output: the input of the same name
};

struct SocConfig {
    std::string soc;   // family
    std::string file;  // kernel source without ".cpp"
    std::vector<int> columns;
};

struct TilingClass {
    std::optional<uint64_t> key;
    std::shared_ptr<optiling::TilingDef> layout;
};

struct Op {
    std::string type, file;
    std::vector<Parameter> inputs, outputs;
    std::vector<ops::AttributeRecord> attributes;
    std::vector<SocConfig> configs;
    std::vector<TilingClass> tilingClasses;
    OpImplRecord impl;

    const SocConfig* Config(const std::string& family) const;
};

// "HcPreInvRms" -> "hc_pre_inv_rms", "Conv2DCustom" -> "conv2_d_custom"
std::string SnakeCase(const std::string& opType);

// Fills inputs, outputs and configs of `op`: one column space for all SoCs. HostError when the lists do not fit together.
void ResolveColumns(const ops::OpDef& definition, Op& op);

}  // namespace sim::host
