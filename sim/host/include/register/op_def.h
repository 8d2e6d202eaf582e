// Declaration of an op: parameters with their dtype columns, attributes, SoCs.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/types.h"
#include "register/op_impl_registry.h"

namespace ge {
class Operator;
}

namespace ops {

enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };
enum class DependScope : uint32_t { ALL, TILING, INVALID_SCOPE };
enum class FollowType : uint32_t { ALL, DTYPE, FORMAT, SHAPE, INVALID_TYPE };
enum class FormatCheckOption : uint32_t { DEFAULT, STRICT, MAX };

struct ParameterRecord {
    std::string name;
    Option type = REQUIRED;
    std::vector<ge::DataType> dtypes;
    std::vector<ge::Format> formats;
    bool dtypeProduct = false, formatProduct = false;  // DataTypeList, FormatList: combined with every column
    std::string follow;
    FollowType followType = FollowType::ALL;
    bool valueDepend = false, ignoreContiguous = false;
    std::optional<uint64_t> initValue;                 // outputs filled before the launch
};

class OpParamDef {
public:
    explicit OpParamDef(const char* name) { record_.name = name; }

    OpParamDef& ParamType(Option type);
    OpParamDef& DataType(std::vector<ge::DataType> types);
    OpParamDef& DataTypeList(std::vector<ge::DataType> types);
    OpParamDef& DataTypeForBinQuery(std::vector<ge::DataType> types);
    OpParamDef& Format(std::vector<ge::Format> formats);
    OpParamDef& FormatList(std::vector<ge::Format> formats);
    OpParamDef& FormatForBinQuery(std::vector<ge::Format> formats);
    OpParamDef& UnknownShapeFormat(std::vector<ge::Format> formats);
    OpParamDef& ValueDepend(Option depend);
    OpParamDef& ValueDepend(Option depend, DependScope scope);
    OpParamDef& IgnoreContiguous();
    OpParamDef& AutoContiguous();
    OpParamDef& Scalar();
    OpParamDef& ScalarList();
    OpParamDef& To(ge::DataType type);
    OpParamDef& To(const char* name);
    OpParamDef& Version(uint32_t version);
    OpParamDef& InitValue(uint64_t value);
    OpParamDef& OutputShapeDependOnCompute();
    OpParamDef& Follow(const char* name);
    OpParamDef& Follow(const char* name, FollowType type);
    OpParamDef& Comment(const char* text);

    const ParameterRecord& Record() const { return record_; }

private:
    ParameterRecord record_;
};

struct AttributeRecord {
    std::string name, type;  // type: "Int" ...
    bool required = true, hasDefault = false;
    bool boolean = false;
    float real = 0;
    int64_t integer = 0;
    std::string text;
    std::vector<bool> booleans;
    std::vector<float> reals;
    std::vector<int64_t> integers;
    std::vector<std::vector<int64_t>> integerLists;
};

class OpAttrDef {
public:
    explicit OpAttrDef(const char* name) { record_.name = name; }

    OpAttrDef& AttrType(Option type);
    OpAttrDef& Bool();
    OpAttrDef& Bool(bool value);
    OpAttrDef& Float();
    OpAttrDef& Float(float value);
    OpAttrDef& Int();
    OpAttrDef& Int(int64_t value);
    OpAttrDef& String();
    OpAttrDef& String(const char* value);
    OpAttrDef& ListBool();
    OpAttrDef& ListBool(std::vector<bool> values);
    OpAttrDef& ListFloat();
    OpAttrDef& ListFloat(std::vector<float> values);
    OpAttrDef& ListInt();
    OpAttrDef& ListInt(std::vector<int64_t> values);
    OpAttrDef& ListListInt();
    OpAttrDef& ListListInt(std::vector<std::vector<int64_t>> values);
    OpAttrDef& Version(uint32_t version);
    OpAttrDef& Comment(const char* text);

    const AttributeRecord& Record() const { return record_; }

private:
    OpAttrDef& Type(const char* type, bool hasDefault);
    AttributeRecord record_;
};

class OpAICoreConfig {
public:
    OpAICoreConfig() = default;
    explicit OpAICoreConfig(const char* soc) { (void)soc; }

    OpParamDef& Input(const char* name);
    OpParamDef& Output(const char* name);
    OpAICoreConfig& DynamicCompileStaticFlag(bool flag);
    OpAICoreConfig& DynamicFormatFlag(bool flag);
    OpAICoreConfig& DynamicRankSupportFlag(bool flag);
    OpAICoreConfig& DynamicShapeSupportFlag(bool flag);
    OpAICoreConfig& NeedCheckSupportFlag(bool flag);
    OpAICoreConfig& PrecisionReduceFlag(bool flag);
    OpAICoreConfig& ExtendCfgInfo(const char* key, const char* value);

    const std::deque<OpParamDef>& Inputs() const { return inputs_; }
    const std::deque<OpParamDef>& Outputs() const { return outputs_; }
    std::string Extended(const std::string& key) const;  // "" when not set

private:
    std::deque<OpParamDef> inputs_, outputs_;
    std::vector<std::pair<std::string, std::string>> extended_;
};

using SupportFunc = ge::graphStatus (*)(const ge::Operator&, ge::AscendString&);
using GeneralizeFunc = ge::graphStatus (*)(const ge::Operator&, const ge::AscendString&, ge::AscendString&);

class OpAICoreDef {
public:
    OpAICoreDef& SetTiling(gert::TilingFunc function);
    OpAICoreDef& SetCheckSupport(SupportFunc function);  // consulted by the graph engine's op selection only, as the next three
    OpAICoreDef& SetOpSelectFormat(SupportFunc function);
    OpAICoreDef& SetOpSupportInfo(SupportFunc function);
    OpAICoreDef& SetOpSpecInfo(SupportFunc function);
    OpAICoreDef& SetParamGeneralize(GeneralizeFunc function);
    OpAICoreDef& AddConfig(const char* soc);
    OpAICoreDef& AddConfig(const char* soc, const OpAICoreConfig& config);

    gert::TilingFunc Tiling() const { return tiling_; }
    const std::vector<std::pair<std::string, OpAICoreConfig>>& Configs() const { return configs_; }

private:
    gert::TilingFunc tiling_ = nullptr;
    std::vector<std::pair<std::string, OpAICoreConfig>> configs_;
};

class OpDef {
public:
    explicit OpDef(const char* type) : type_(type) {}

    OpParamDef& Input(const char* name);
    OpParamDef& Output(const char* name);
    OpAttrDef& Attr(const char* name);
    OpDef& SetInferShape(gert::InferShapeFunc function);
    OpDef& SetInferShapeRange(gert::InferShapeRangeFunc function);
    OpDef& SetInferDataType(gert::InferDataTypeFunc function);
    OpAICoreDef& AICore() { return aiCore_; }
    OpDef& FormatMatchMode(FormatCheckOption option);
    OpDef& EnableFallBack();
    OpDef& Comment(const char* text);

    const std::string& Type() const { return type_; }
    const std::deque<OpParamDef>& Inputs() const { return inputs_; }
    const std::deque<OpParamDef>& Outputs() const { return outputs_; }
    const std::deque<OpAttrDef>& Attributes() const { return attributes_; }
    const OpAICoreDef& AICore() const { return aiCore_; }
    gert::InferShapeFunc InferShape() const { return inferShape_; }
    gert::InferDataTypeFunc InferDataType() const { return inferDataType_; }

private:
    std::string type_;
    std::deque<OpParamDef> inputs_, outputs_;
    std::deque<OpAttrDef> attributes_;
    OpAICoreDef aiCore_;
    gert::InferShapeFunc inferShape_ = nullptr;
    gert::InferDataTypeFunc inferDataType_ = nullptr;
};

}  // namespace ops
