#include "sim/ge/builtin_ops.h"

#include <vector>

namespace sim {
namespace {

struct Names {
    const char* name;
    ops::Option type = ops::REQUIRED;
};

std::vector<host::Parameter> Parameters(const std::vector<Names>& names) {
    std::vector<host::Parameter> parameters;
    for (const Names& one : names) {
        host::Parameter parameter;
        parameter.name = one.name;
        parameter.type = one.type;
        parameters.push_back(std::move(parameter));
    }
    return parameters;
}

host::Op Builtin(const char* type, const std::vector<Names>& inputs, const std::vector<Names>& outputs, const char* attribute = nullptr,
                 const char* attributeType = nullptr) {
    host::Op op;
    op.type = type;
    op.inputs = Parameters(inputs);
    op.outputs = Parameters(outputs);
    if (attribute != nullptr) {
        ops::AttributeRecord record;
        record.name = attribute;
        record.type = attributeType;
        op.attributes.push_back(std::move(record));
    }
    return op;
}

}  // namespace

const host::Op* FindBuiltinOp(const std::string& type) {
    static const std::vector<host::Op> known = {
        Builtin("Data", {{"x", ops::OPTIONAL}}, {{"y"}}, "index", "Int"),
        Builtin("Const", {}, {{"y"}}, "value", "Tensor"),
        Builtin("Transpose", {{"x"}, {"perm"}}, {{"y"}}),
        Builtin("PartitionedCall", {{"args", ops::DYNAMIC}}, {{"output", ops::DYNAMIC}}),
    };
    for (const host::Op& op : known)
        if (op.type == type) return &op;
    return nullptr;
}

}  // namespace sim
