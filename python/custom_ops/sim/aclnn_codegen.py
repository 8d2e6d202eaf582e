"""Generates the two-phase aclnn functions of an op: aclnn_<op>.h and its implementation on SimOpPrepare / SimOpRun.

    aclnnStatus aclnnHcPostGetWorkspaceSize(inputs..., attributes..., outputs..., uint64_t* workspaceSize, aclOpExecutor** executor);
    aclnnStatus aclnnHcPost(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

An output named like an input is that input, written in place: one parameter for both.
"""

from __future__ import annotations

from dataclasses import dataclass

from .names import camel
from .opinfo import OpInfo

#: attribute type -> (C type, SimAttribute kind, how the value's address is taken)
ATTRIBUTES = {
    "int": ("int64_t", 0, "&{0}"),
    "float": ("double", 1, "&{0}"),
    "bool": ("bool", 2, "&{0}"),
    "str": ("char*", 3, "{0}"),
    "list_int": ("const aclIntArray*", 4, "{0}"),
    "list_float": ("const aclFloatArray*", 5, "{0}"),
    "list_bool": ("const aclBoolArray*", 6, "{0}"),
}


@dataclass(frozen=True)
class Parameter:
    kind: str       # "input" | "attr" | "output"
    opdef: str      # OpDef name
    name: str       # C name
    type: str       # C type


def parameters(op: OpInfo) -> list[Parameter]:
    """C parameters between the function's name and the workspace size, in order."""
    found = [Parameter("input", p.name,
                       camel(p.name) + ("Ref" if p.name in op.references else "Optional" if p.optional else ""),
                       "aclTensor*" if p.name in op.references else "const aclTensor*") for p in op.inputs]
    found += [Parameter("attr", a.name, camel(a.name) + ("" if a.required else "Optional"), ATTRIBUTES[a.type][0])
              for a in op.attrs]
    taken = {p.name for p in found} | {"workspaceSize", "executor"}
    for output in op.outputs:
        if output.name not in op.references:
            name = camel(output.name)
            found.append(Parameter("output", output.name, name + ("Out" if name in taken else ""), "const aclTensor*"))
    return found


def header_name(op: OpInfo) -> str:
    return f"aclnn_{op.snake}.h"


def header(op: OpInfo) -> str:
    arguments = "".join(f"    {p.type} {p.name},\n" for p in parameters(op))
    guard = f"ACLNN_{op.snake.upper()}_H_"
    return f"""\
// Generated from the OpDef: {op.signature()}
#ifndef {guard}
#define {guard}

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {{
#endif

__attribute__((visibility("default"))) aclnnStatus aclnn{op.type}GetWorkspaceSize(
{arguments}    uint64_t* workspaceSize,
    aclOpExecutor** executor);

__attribute__((visibility("default"))) aclnnStatus aclnn{op.type}(
    void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}}
#endif

#endif  // {guard}
"""


def implementation(ops: list[OpInfo]) -> str:
    """Source of libcust_opapi.so."""
    includes = "\n".join(f'#include "{header_name(op)}"' for op in ops)
    return f"""\
{includes}

#include <dlfcn.h>

#include "sim/opapi/c_api.h"

namespace {{
const char* PackagePath() {{  // this library's own file: it lies inside the op package
    static const char* const path = [] {{
        Dl_info info;
        return dladdr(reinterpret_cast<void*>(&PackagePath), &info) ? info.dli_fname : "";
    }}();
    return path;
}}
}}  // namespace

{"".join(_functions(op) for op in ops)}"""


def _functions(op: OpInfo) -> str:
    by_name = {(p.kind, p.opdef): p.name for p in parameters(op)}
    inputs = [by_name["input", p.name] for p in op.inputs]
    outputs = [by_name["input" if o.name in op.references else "output", o.name] for o in op.outputs]
    attributes = [f"{{{ATTRIBUTES[a.type][1]}, {ATTRIBUTES[a.type][2].format(by_name['attr', a.name])}}}" for a in op.attrs]
    arguments = "".join(f"    {p.type} {p.name},\n" for p in parameters(op))
    return f"""\
extern "C" aclnnStatus aclnn{op.type}GetWorkspaceSize(
{arguments}    uint64_t* workspaceSize,
    aclOpExecutor** executor) {{
    {_array("const aclTensor* const", "inputs", inputs)}
    {_array("const SimAttribute", "attributes", attributes)}
    {_array("const aclTensor* const", "outputs", outputs)}
    return SimOpPrepare(PackagePath(), "{op.type}", inputs, {len(inputs)}, attributes, {len(attributes)},
                        outputs, {len(outputs)}, workspaceSize, executor);
}}

extern "C" aclnnStatus aclnn{op.type}(
    void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {{
    return SimOpRun(workspace, workspaceSize, executor, stream);
}}

"""


def _array(element: str, name: str, values: list[str]) -> str:
    return f"{element} {name}[] = {{{', '.join(values)}}};" if values else f"{element}* {name} = nullptr;"
