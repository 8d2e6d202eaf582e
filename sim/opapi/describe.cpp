// What a host library registered, the SoC table and the rules, as JSON.
#include "sim/core/json.h"
#include "sim/core/soc.h"
#include "sim/core/soc_table.h"
#include "sim/core/types.h"
#include "sim/host/host_library.h"
#include "sim/opapi/c_api.h"
#include "sim/opapi/session.h"

namespace sim::opapi {
namespace {

const char* ParamType(ops::Option type) {
    return type == ops::REQUIRED ? "required" : type == ops::DYNAMIC ? "dynamic" : "optional";
}

void Write(JsonWriter& json, const char* role, const std::vector<host::Parameter>& parameters) {
    json.Key(role).BeginArray();
    for (const host::Parameter& parameter : parameters) {
        json.BeginObject().Field("name", parameter.name).Field("paramType", ParamType(parameter.type));
        json.Key("dtypes").BeginArray();
        for (const ge::DataType dtype : parameter.dtypes) json.Value(host::DtypeSymbol(dtype));
        json.EndArray().Key("formats").BeginArray();
        for (const ge::Format format : parameter.formats) json.Value(host::FormatSymbol(format));
        json.EndArray().Field("valueDepend", parameter.valueDepend).Field("ignoreContiguous", parameter.ignoreContiguous);
        json.Field("inPlace", parameter.inPlace >= 0).EndObject();
    }
    json.EndArray();
}

template <typename List>
void WriteList(JsonWriter& json, const List& values) {
    json.BeginArray();
    for (const auto& value : values) {
        if constexpr (std::is_same_v<List, std::vector<std::vector<int64_t>>>) WriteList(json, value);
        else if constexpr (std::is_same_v<List, std::vector<bool>>) json.Value(static_cast<bool>(value));
        else if constexpr (std::is_same_v<List, std::vector<float>>) json.Value(static_cast<double>(value));
        else json.Value(value);
    }
    json.EndArray();
}

// The shortest decimal that is this float: an OpDef's 1e-6 reads 1e-6 and not 9.99999997e-07.
void WriteFloat(JsonWriter& json, float value) {
    for (int digits = 1; digits <= 9; ++digits) {
        const std::string text = host::Format("%.*g", digits, static_cast<double>(value));
        if (std::stof(text) == value && std::isfinite(value)) {
            json.Raw(text);
            return;
        }
    }
    json.Value(static_cast<double>(value));
}

void Write(JsonWriter& json, const ops::AttributeRecord& attribute) {
    json.BeginObject().Field("name", attribute.name).Field("type", attribute.type);
    json.Field("required", attribute.required).Key("default");
    const std::string& type = attribute.type;
    if (!attribute.hasDefault) json.Null();
    else if (type == "Bool") json.Value(attribute.boolean);
    else if (type == "Int") json.Value(attribute.integer);
    else if (type == "Float") WriteFloat(json, attribute.real);
    else if (type == "String") json.Value(attribute.text);
    else if (type == "ListBool") WriteList(json, attribute.booleans);
    else if (type == "ListInt") WriteList(json, attribute.integers);
    else if (type == "ListFloat") {
        json.BeginArray();
        for (const float value : attribute.reals) WriteFloat(json, value);
        json.EndArray();
    } else WriteList(json, attribute.integerLists);
    json.EndObject();
}

void WriteFields(JsonWriter& json, const optiling::TilingDef& layout) {
    json.Field("bytes", layout.GetDataSize()).Key("fields").BeginArray();
    for (const optiling::FieldInfo& field : layout.GetFieldInfo()) {
        json.BeginObject().Field("name", field.name).Field("type", field.type);
        json.Field("count", field.count).Field("offset", field.offset);
        if (field.isStruct) WriteFields(json, layout.Nested(field));
        json.EndObject();
    }
    json.EndArray();
}

void Write(JsonWriter& json, const host::Op& op) {
    json.BeginObject().Field("type", op.type).Field("file", op.file);
    Write(json, "inputs", op.inputs);
    Write(json, "outputs", op.outputs);
    json.Key("attrs").BeginArray();
    for (const ops::AttributeRecord& attribute : op.attributes) Write(json, attribute);
    json.EndArray().Key("socs").BeginArray();
    for (const host::SocConfig& config : op.configs) json.Value(config.soc);
    json.EndArray().Key("configs").BeginArray();
    for (const host::SocConfig& config : op.configs) {
        json.BeginObject().Field("soc", config.soc).Field("file", config.file).Key("columns");
        WriteList(json, config.columns);
        json.EndObject();
    }
    json.EndArray().Field("hasInferShape", op.impl.inferShape != nullptr);
    json.Field("hasInferDataType", op.impl.inferDataType != nullptr);
    json.Field("hasTiling", op.impl.tiling != nullptr).Key("tilingClasses").BeginArray();
    for (const host::TilingClass& tiling : op.tilingClasses) {
        json.BeginObject().Key("key");
        if (tiling.key) json.Value(*tiling.key);
        else json.Null();
        json.Field("class", tiling.layout->GetTilingClassName());
        WriteFields(json, *tiling.layout);
        json.EndObject();
    }
    json.EndArray().EndObject();
}

void Write(JsonWriter& json, const SocSpec& soc) {
    json.BeginObject().Field("name", soc.name).Field("family", soc.family).Field("npuArch", soc.npuArch);
    json.Key("aliases").BeginArray();
    for (int i = 0; i < kSocAliasCount; ++i)
        if (&kSocTable[kSocAliases[i].index] == &soc) json.Value(kSocAliases[i].alias);
    json.EndArray();
    json.Field("cubeCores", soc.cubeCores).Field("vectorCores", soc.vectorCores).Field("clockHz", soc.clockHz);
    json.Field("ubBytes", soc.ubBytes).Field("l1Bytes", soc.l1Bytes);
    json.Field("l0aBytes", soc.l0aBytes).Field("l0bBytes", soc.l0bBytes);
    json.Field("l0cBytes", soc.l0cBytes).Field("btBytes", soc.btBytes).Field("fbBytes", soc.fbBytes);
    json.Field("l2Bytes", soc.l2Bytes).Field("hbmBytes", soc.hbmBytes).Field("hbmBytesPerSecond", soc.hbmBytesPerSecond);
    json.Field("gmReadBytesPerCycle", soc.gmReadBytesPerCycle).Field("gmWriteBytesPerCycle", soc.gmWriteBytesPerCycle);
    json.Field("gmLatencyCycles", soc.gmLatencyCycles).Field("ubCopyBytesPerCycle", soc.ubCopyBytesPerCycle);
    json.Field("launchSeconds", soc.launchSeconds).Field("issueCycles", soc.issueCycles);
    json.Field("vectorStartCycles", soc.vectorStartCycles);
    json.Field("syncCycles", soc.syncCycles).Field("syncAllCycles", soc.syncAllCycles);
    json.Field("scalarCycles", soc.scalarCycles).Field("vectorSimple", soc.vectorSimple).Field("vectorExp", soc.vectorExp);
    json.Field("vectorMulAdd", soc.vectorMulAdd).Field("vectorCast", soc.vectorCast).Field("vectorCast64", soc.vectorCast64);
    json.Field("vectorWholeReduce", soc.vectorWholeReduce).Field("vectorBlockReduce16", soc.vectorBlockReduce16);
    json.Field("vectorGather", soc.vectorGather).Field("vectorGatherBlock", soc.vectorGatherBlock);
    json.Field("vectorSort", soc.vectorSort).Field("vectorPipeOrdered", soc.vectorPipeOrdered).EndObject();
}

}  // namespace
}  // namespace sim::opapi

char* SimDescribeHostLibrary(const char* path) {
    return sim::opapi::Guard<char*>(nullptr, [&] {
        if (path == nullptr) sim::host::Refuse(sim::host::kNullPointer, "SimDescribeHostLibrary: path is null");
        sim::JsonWriter json;
        json.BeginArray();
        for (const sim::host::Op& op : sim::host::LoadHostLibrary(path)->Ops()) sim::opapi::Write(json, op);
        return sim::opapi::Hand(json.EndArray().Take());
    });
}

char* SimSocTable() {
    return sim::opapi::Guard<char*>(nullptr, [] {
        int count = 0;
        const sim::SocSpec* table = sim::SocTable(&count);
        sim::JsonWriter json;
        json.BeginArray();
        for (int i = 0; i < count; ++i) sim::opapi::Write(json, table[i]);
        return sim::opapi::Hand(json.EndArray().Take());
    });
}

char* SimRules() {
    return sim::opapi::Guard<char*>(nullptr, [] {
        sim::JsonWriter json;
        json.BeginArray();
        for (int i = 0; i < static_cast<int>(sim::Rule::kCount); ++i) {
            const auto rule = static_cast<sim::Rule>(i);
            json.BeginObject().Field("name", sim::RuleName(rule)).Field("summary", sim::RuleSummary(rule)).EndObject();
        }
        return sim::opapi::Hand(json.EndArray().Take());
    });
}
