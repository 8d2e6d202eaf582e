// OpDef's chained setters: they only record.
#include "register/op_def.h"

namespace ops {
namespace {

template <typename Record>
Record& Named(std::deque<Record>& records, const char* name) {
    for (Record& record : records)
        if (record.Record().name == name) return record;
    return records.emplace_back(name);
}

}  // namespace

OpParamDef& OpParamDef::ParamType(Option type) {
    record_.type = type;
    return *this;
}
OpParamDef& OpParamDef::DataType(std::vector<ge::DataType> types) {
    record_.dtypes = std::move(types);
    record_.dtypeProduct = false;
    return *this;
}
OpParamDef& OpParamDef::DataTypeList(std::vector<ge::DataType> types) {
    record_.dtypes = std::move(types);
    record_.dtypeProduct = true;
    return *this;
}
OpParamDef& OpParamDef::Format(std::vector<ge::Format> formats) {
    record_.formats = std::move(formats);
    record_.formatProduct = false;
    return *this;
}
OpParamDef& OpParamDef::FormatList(std::vector<ge::Format> formats) {
    record_.formats = std::move(formats);
    record_.formatProduct = true;
    return *this;
}
OpParamDef& OpParamDef::ValueDepend(Option depend) {
    record_.valueDepend = depend == REQUIRED || depend == OPTIONAL;
    return *this;
}
OpParamDef& OpParamDef::ValueDepend(Option depend, DependScope) { return ValueDepend(depend); }
OpParamDef& OpParamDef::IgnoreContiguous() {
    record_.ignoreContiguous = true;
    return *this;
}
OpParamDef& OpParamDef::AutoContiguous() {
    record_.ignoreContiguous = false;
    return *this;
}
OpParamDef& OpParamDef::InitValue(uint64_t value) {
    record_.initValue = value;
    return *this;
}
OpParamDef& OpParamDef::Follow(const char* name) { return Follow(name, FollowType::ALL); }
OpParamDef& OpParamDef::Follow(const char* name, FollowType type) {
    record_.follow = name;
    record_.followType = type;
    return *this;
}
// Without a meaning for a single launch: how a binary is searched, graph modes, documentation.
OpParamDef& OpParamDef::DataTypeForBinQuery(std::vector<ge::DataType>) { return *this; }
OpParamDef& OpParamDef::FormatForBinQuery(std::vector<ge::Format>) { return *this; }
OpParamDef& OpParamDef::UnknownShapeFormat(std::vector<ge::Format>) { return *this; }
OpParamDef& OpParamDef::Scalar() { return *this; }
OpParamDef& OpParamDef::ScalarList() { return *this; }
OpParamDef& OpParamDef::To(ge::DataType) { return *this; }
OpParamDef& OpParamDef::To(const char*) { return *this; }
OpParamDef& OpParamDef::Version(uint32_t) { return *this; }
OpParamDef& OpParamDef::OutputShapeDependOnCompute() { return *this; }
OpParamDef& OpParamDef::Comment(const char*) { return *this; }

OpAttrDef& OpAttrDef::Type(const char* type, bool hasDefault) {
    record_.type = type;
    record_.hasDefault = hasDefault;
    return *this;
}
OpAttrDef& OpAttrDef::AttrType(Option type) {
    record_.required = type == REQUIRED;
    return *this;
}
OpAttrDef& OpAttrDef::Bool() { return Type("Bool", false); }
OpAttrDef& OpAttrDef::Bool(bool value) {
    record_.boolean = value;
    return Type("Bool", true);
}
OpAttrDef& OpAttrDef::Float() { return Type("Float", false); }
OpAttrDef& OpAttrDef::Float(float value) {
    record_.real = value;
    return Type("Float", true);
}
OpAttrDef& OpAttrDef::Int() { return Type("Int", false); }
OpAttrDef& OpAttrDef::Int(int64_t value) {
    record_.integer = value;
    return Type("Int", true);
}
OpAttrDef& OpAttrDef::String() { return Type("String", false); }
OpAttrDef& OpAttrDef::String(const char* value) {
    record_.text = value;
    return Type("String", true);
}
OpAttrDef& OpAttrDef::ListBool() { return Type("ListBool", false); }
OpAttrDef& OpAttrDef::ListBool(std::vector<bool> values) {
    record_.booleans = std::move(values);
    return Type("ListBool", true);
}
OpAttrDef& OpAttrDef::ListFloat() { return Type("ListFloat", false); }
OpAttrDef& OpAttrDef::ListFloat(std::vector<float> values) {
    record_.reals = std::move(values);
    return Type("ListFloat", true);
}
OpAttrDef& OpAttrDef::ListInt() { return Type("ListInt", false); }
OpAttrDef& OpAttrDef::ListInt(std::vector<int64_t> values) {
    record_.integers = std::move(values);
    return Type("ListInt", true);
}
OpAttrDef& OpAttrDef::ListListInt() { return Type("ListListInt", false); }
OpAttrDef& OpAttrDef::ListListInt(std::vector<std::vector<int64_t>> values) {
    record_.integerLists = std::move(values);
    return Type("ListListInt", true);
}
OpAttrDef& OpAttrDef::Version(uint32_t) { return *this; }
OpAttrDef& OpAttrDef::Comment(const char*) { return *this; }

OpParamDef& OpAICoreConfig::Input(const char* name) { return Named(inputs_, name); }
OpParamDef& OpAICoreConfig::Output(const char* name) { return Named(outputs_, name); }
OpAICoreConfig& OpAICoreConfig::ExtendCfgInfo(const char* key, const char* value) {
    extended_.emplace_back(key, value);
    return *this;
}
std::string OpAICoreConfig::Extended(const std::string& key) const {
    for (auto entry = extended_.rbegin(); entry != extended_.rend(); ++entry)
        if (entry->first == key) return entry->second;
    return "";
}
// How the graph compiler treats the op; a launch has fixed shapes.
OpAICoreConfig& OpAICoreConfig::DynamicCompileStaticFlag(bool) { return *this; }
OpAICoreConfig& OpAICoreConfig::DynamicFormatFlag(bool) { return *this; }
OpAICoreConfig& OpAICoreConfig::DynamicRankSupportFlag(bool) { return *this; }
OpAICoreConfig& OpAICoreConfig::DynamicShapeSupportFlag(bool) { return *this; }
OpAICoreConfig& OpAICoreConfig::NeedCheckSupportFlag(bool) { return *this; }
OpAICoreConfig& OpAICoreConfig::PrecisionReduceFlag(bool) { return *this; }

OpAICoreDef& OpAICoreDef::SetTiling(gert::TilingFunc function) {
    tiling_ = function;
    return *this;
}
OpAICoreDef& OpAICoreDef::AddConfig(const char* soc) { return AddConfig(soc, OpAICoreConfig()); }
OpAICoreDef& OpAICoreDef::AddConfig(const char* soc, const OpAICoreConfig& config) {
    configs_.emplace_back(soc, config);
    return *this;
}
OpAICoreDef& OpAICoreDef::SetCheckSupport(SupportFunc) { return *this; }
OpAICoreDef& OpAICoreDef::SetOpSelectFormat(SupportFunc) { return *this; }
OpAICoreDef& OpAICoreDef::SetOpSupportInfo(SupportFunc) { return *this; }
OpAICoreDef& OpAICoreDef::SetOpSpecInfo(SupportFunc) { return *this; }
OpAICoreDef& OpAICoreDef::SetParamGeneralize(GeneralizeFunc) { return *this; }

OpParamDef& OpDef::Input(const char* name) { return Named(inputs_, name); }
OpParamDef& OpDef::Output(const char* name) { return Named(outputs_, name); }
OpAttrDef& OpDef::Attr(const char* name) { return Named(attributes_, name); }
OpDef& OpDef::SetInferShape(gert::InferShapeFunc function) {
    inferShape_ = function;
    return *this;
}
OpDef& OpDef::SetInferDataType(gert::InferDataTypeFunc function) {
    inferDataType_ = function;
    return *this;
}
OpDef& OpDef::SetInferShapeRange(gert::InferShapeRangeFunc) { return *this; }
OpDef& OpDef::FormatMatchMode(FormatCheckOption) { return *this; }
OpDef& OpDef::EnableFallBack() { return *this; }
OpDef& OpDef::Comment(const char*) { return *this; }

}  // namespace ops
