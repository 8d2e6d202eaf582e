#include "sim/opapi/arguments.h"

#include <algorithm>

#include "sim/host/text.h"
#include "sim/opapi/stream.h"

namespace sim::opapi {

using host::DtypeName;
using host::Format;
using host::Refuse;
using host::Join;
using host::kInvalidParameter;
using host::kNullPointer;
using host::ShapeText;

std::string Argument::Name(size_t instance) const {
    return IsDynamic() ? parameter->name + "[" + std::to_string(instance) + "]" : parameter->name;
}

std::string ArgumentsText(const std::vector<Argument>& arguments) {
    std::vector<std::string> texts;
    for (const Argument& argument : arguments) {
        if (argument.tensors.empty()) texts.push_back(argument.parameter->name + " absent");
        for (size_t i = 0; i < argument.tensors.size(); ++i) {
            const aclTensor& tensor = argument.tensors[i];
            texts.push_back(argument.Name(i) + " " + ShapeText(tensor.shape) + " " + DtypeName(tensor.dtype));
        }
    }
    return Join(texts);
}

namespace {

void CheckMemory(const host::Op& op, const std::string& name, const aclTensor& tensor) {
    const char* type = op.type.c_str();
    if (tensor.ElementBytes() < 0)
        Refuse(kInvalidParameter, "%s: %s has dtype %s, which has no whole number of bytes and is not modelled", type,
               name.c_str(), DtypeName(tensor.dtype).c_str());
    if (tensor.Elements() == 0) return;
    if (tensor.data == nullptr)
        Refuse(kNullPointer, "%s: %s %s has no memory: its data pointer is null", type, name.c_str(),
               ShapeText(tensor.shape).c_str());
    if (IsDeviceAddress(tensor.data))
        if (const std::string refusal = DeviceRefusal(); !refusal.empty())
            Refuse(host::kRuntimeError, "%s: %s", type, refusal.c_str());
    if (tensor.storageDims.empty()) return;
    int64_t storage = 1;
    for (const int64_t dim : tensor.storageDims) storage *= dim;
    if (tensor.offset < 0 || tensor.Reach() > storage)
        Refuse(kInvalidParameter, "%s: %s %s starts at element %lld and reaches element %lld of a storage of %lld", type,
               name.c_str(), ShapeText(tensor.shape).c_str(), static_cast<long long>(tensor.offset),
               static_cast<long long>(tensor.Reach() - 1), static_cast<long long>(storage));
}

}  // namespace

std::vector<Argument> CollectArguments(const host::Op& op, const char* role, const std::vector<host::Parameter>& parameters,
                                       const aclTensor* const* handles, int32_t count) {
    if (count < 0 || static_cast<size_t>(count) != parameters.size()) {
        std::vector<std::string> names;
        for (const auto& parameter : parameters) names.push_back(parameter.name);
        Refuse(kInvalidParameter, "%s has %zu %s (%s), got %d", op.type.c_str(), parameters.size(), role,
               Join(names).c_str(), count);
    }
    std::vector<Argument> arguments;
    for (size_t i = 0; i < parameters.size(); ++i) {
        Argument argument{&parameters[i], {}};
        if (handles[i] == nullptr) {
            if (parameters[i].type == ops::REQUIRED)
                Refuse(kNullPointer, "%s: %s is required, got a null tensor", op.type.c_str(),
                       parameters[i].name.c_str());
        } else if (argument.IsDynamic()) {
            const auto& list = *reinterpret_cast<const aclTensorList*>(handles[i]);
            for (const aclTensor* tensor : list.tensors) argument.tensors.push_back(*tensor);
        } else {
            argument.tensors.push_back(*handles[i]);
        }
        for (size_t k = 0; k < argument.tensors.size(); ++k) CheckMemory(op, argument.Name(k), argument.tensors[k]);
        arguments.push_back(std::move(argument));
    }
    return arguments;
}

namespace {

// Formats that only name the axes of a plain array; the bytes are those of ND.
bool IsPlain(ge::Format format) {
    switch (format) {
        case ge::FORMAT_ND: case ge::FORMAT_NCHW: case ge::FORMAT_NHWC: case ge::FORMAT_CHWN: case ge::FORMAT_HWCN:
        case ge::FORMAT_NDHWC: case ge::FORMAT_NCDHW: case ge::FORMAT_DHWCN: case ge::FORMAT_DHWNC: case ge::FORMAT_CN:
        case ge::FORMAT_NC: case ge::FORMAT_NCL: return true;
        default: return false;
    }
}

enum class FormatMatch { Exact, Plain };

bool Fits(const Argument& argument, int column, FormatMatch match, bool dtypes, bool formats) {
    const size_t index = static_cast<size_t>(column);
    const ge::DataType dtype = argument.parameter->dtypes[index];
    const ge::Format format = argument.parameter->formats[index];
    return std::all_of(argument.tensors.begin(), argument.tensors.end(), [&](const aclTensor& tensor) {
        const bool sameFormat = tensor.format == format ||
                                (match == FormatMatch::Plain && IsPlain(format) && IsPlain(tensor.format));
        return (!dtypes || tensor.dtype == dtype) && (!formats || sameFormat);
    });
}

// Throws when no column at all accepts the argument by itself.
void CheckAlone(const host::Op& op, const host::SocConfig& config, const Argument& argument) {
    std::vector<std::string> dtypes, formats;
    const auto add = [](std::vector<std::string>& list, const std::string& value) {
        if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
    };
    bool dtypeFits = false, formatFits = false;
    for (const int column : config.columns) {
        dtypeFits |= Fits(argument, column, FormatMatch::Plain, true, false);
        formatFits |= Fits(argument, column, FormatMatch::Plain, false, true);
        add(dtypes, DtypeName(argument.parameter->dtypes[static_cast<size_t>(column)]));
        add(formats, host::FormatSymbol(argument.parameter->formats[static_cast<size_t>(column)]));
    }
    const std::string where = op.type + ": " + argument.parameter->name;
    if (!dtypeFits)
        Refuse(kInvalidParameter, "%s has dtype %s, supported on %s: %s", where.c_str(),
               DtypeName(argument.tensors.front().dtype).c_str(), config.soc.c_str(), Join(dtypes).c_str());
    if (!formatFits)
        Refuse(kInvalidParameter, "%s has format %s, supported on %s: %s", where.c_str(),
               host::FormatSymbol(argument.tensors.front().format).c_str(), config.soc.c_str(), Join(formats).c_str());
}

[[noreturn]] void FailTogether(const host::Op& op, const host::SocConfig& config, const std::vector<const Argument*>& arguments) {
    constexpr size_t kShown = 8;
    std::vector<std::string> given, supported;
    std::vector<const Argument*> present;
    for (const Argument* argument : arguments)
        if (!argument->tensors.empty()) present.push_back(argument);
    for (const Argument* argument : present)
        given.push_back(argument->parameter->name + " " + DtypeName(argument->tensors.front().dtype));
    for (const int column : config.columns) {
        std::vector<std::string> dtypes;
        for (const Argument* argument : present) {
            const host::Parameter& parameter = *argument->parameter;
            dtypes.push_back(parameter.name + " " + DtypeName(parameter.dtypes[static_cast<size_t>(column)]));
        }
        const std::string text = "(" + Join(dtypes) + ")";
        if (std::find(supported.begin(), supported.end(), text) == supported.end()) supported.push_back(text);
    }
    const size_t more = supported.size() > kShown ? supported.size() - kShown : 0;
    if (more != 0) supported.resize(kShown);
    Refuse(kInvalidParameter, "%s: the dtypes (%s) are no supported combination on %s; those are %s%s", op.type.c_str(),
           Join(given).c_str(), config.soc.c_str(), Join(supported).c_str(),
           more == 0 ? "" : Format(" and %zu more", more).c_str());
}

}  // namespace

int SelectColumn(const host::Op& op, const host::SocConfig& config, const std::vector<Argument>& inputs,
                 const std::vector<Argument>& outputs) {
    std::vector<const Argument*> arguments;
    for (const Argument& argument : inputs) arguments.push_back(&argument);
    for (const Argument& argument : outputs) arguments.push_back(&argument);
    for (const FormatMatch match : {FormatMatch::Exact, FormatMatch::Plain})
        for (const int column : config.columns) {
            const auto fits = [&](const Argument* argument) { return Fits(*argument, column, match, true, true); };
            if (std::all_of(arguments.begin(), arguments.end(), fits)) return column;
        }
    for (const Argument* argument : arguments) CheckAlone(op, config, *argument);
    FailTogether(op, config, arguments);
}

namespace {

constexpr const char* kKinds[] = {"Int", "Float", "Bool", "String", "ListInt", "ListFloat", "ListBool"};  // by SimAttribute::kind

void AppendDefault(const ops::AttributeRecord& attribute, gert::RuntimeAttrs& values) {
    const std::string& type = attribute.type;
    if (type == "Bool") values.Append(&attribute.boolean, sizeof attribute.boolean);
    else if (type == "Int") values.Append(&attribute.integer, sizeof attribute.integer);
    else if (type == "Float") values.Append(&attribute.real, sizeof attribute.real);
    else if (type == "String") values.Append(attribute.text.c_str(), attribute.text.size() + 1);
    else if (type == "ListInt") values.AppendList(attribute.integers.data(), attribute.integers.size());
    else if (type == "ListFloat") values.AppendList(attribute.reals.data(), attribute.reals.size());
    else if (type == "ListBool") {
        const std::vector<uint8_t> bytes(attribute.booleans.begin(), attribute.booleans.end());
        values.AppendList(bytes.data(), bytes.size());
    }
}

void AppendGiven(const SimAttribute& given, gert::RuntimeAttrs& values) {
    switch (given.kind) {
        case 0: values.Append(given.value, sizeof(int64_t)); break;
        case 1: {
            const float narrowed = static_cast<float>(*static_cast<const double*>(given.value));  // aclnn double, OpDef float
            values.Append(&narrowed, sizeof narrowed);
            break;
        }
        case 2: values.Append(given.value, sizeof(bool)); break;
        case 3: values.Append(given.value, std::char_traits<char>::length(static_cast<const char*>(given.value)) + 1); break;
        case 4: {
            const auto& list = static_cast<const aclIntArray*>(given.value)->values;
            values.AppendList(list.data(), list.size());
            break;
        }
        case 5: {
            const auto& list = static_cast<const aclFloatArray*>(given.value)->values;
            values.AppendList(list.data(), list.size());
            break;
        }
        default: {
            const auto& list = static_cast<const aclBoolArray*>(given.value)->values;
            values.AppendList(list.data(), list.size());
        }
    }
}

}  // namespace

gert::RuntimeAttrs ReadAttributes(const host::Op& op, const SimAttribute* attributes, int32_t count) {
    if (count < 0 || static_cast<size_t>(count) != op.attributes.size()) {
        std::vector<std::string> names;
        for (const auto& attribute : op.attributes) names.push_back(attribute.name);
        Refuse(kInvalidParameter, "%s has %zu attributes (%s), got %d", op.type.c_str(), op.attributes.size(),
               Join(names).c_str(), count);
    }
    gert::RuntimeAttrs values;
    for (size_t i = 0; i < op.attributes.size(); ++i) {
        const ops::AttributeRecord& attribute = op.attributes[i];
        const SimAttribute& given = attributes[i];
        if (given.value == nullptr) {
            if (!attribute.hasDefault || attribute.type == "ListListInt")
                Refuse(kNullPointer, "%s: attribute %s (%s) has no default, got null", op.type.c_str(),
                       attribute.name.c_str(), attribute.type.c_str());
            AppendDefault(attribute, values);
            continue;
        }
        const bool known = given.kind >= 0 && given.kind < static_cast<int32_t>(sizeof kKinds / sizeof *kKinds);
        if (!known || attribute.type != kKinds[given.kind])
            Refuse(kInvalidParameter, "%s: attribute %s is %s, got %s", op.type.c_str(), attribute.name.c_str(),
                   attribute.type.c_str(), known ? kKinds[given.kind] : "an unknown kind");
        AppendGiven(given, values);
    }
    return values;
}

}  // namespace sim::opapi
