// Arguments of one aclnn call against the OpDef: counts, null handles, dtype columns, formats, attributes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/host/op.h"
#include "sim/opapi/c_api.h"
#include "sim/opapi/handles.h"

namespace sim::opapi {

// What one IR parameter was given. Tensors are copies of the handles: a caller may destroy those after the first phase.
struct Argument {
    const host::Parameter* parameter = nullptr;
    std::vector<aclTensor> tensors;  // none: absent; several: a dynamic parameter
    bool IsDynamic() const { return parameter->type == ops::DYNAMIC; }
    // "x", "x[1]"
    std::string Name(size_t instance) const;
};

// "inputs" or "outputs" of `op`; HostError names the op and the argument.
std::vector<Argument> CollectArguments(const host::Op& op, const char* role, const std::vector<host::Parameter>& parameters,
                                       const aclTensor* const* handles, int32_t count);

// The dtype column of a SoC that all arguments given belong to.
int SelectColumn(const host::Op& op, const host::SocConfig& config, const std::vector<Argument>& inputs,
                 const std::vector<Argument>& outputs);

gert::RuntimeAttrs ReadAttributes(const host::Op& op, const SimAttribute* attributes, int32_t count);

// "x [128, 4, 7168] bfloat16, bias absent"
std::string ArgumentsText(const std::vector<Argument>& arguments);

}  // namespace sim::opapi
