"""The translation unit around one kernel file: dtype column macros, generated tiling structs, the kernel, its entry hook."""

from __future__ import annotations

from collections.abc import Iterable

from .names import DType
from .opinfo import OpInfo, TilingClass


def dtype_defines(params: Iterable[tuple[str, DType, str]]) -> str:
    """DTYPE_X, ORIG_DTYPE_X and FORMAT_X for every (name, dtype, format)."""
    lines = []
    for name, dtype, layout in params:
        upper = name.upper()
        lines += [f"#define DTYPE_{upper} {dtype.cpp}", f"#define ORIG_DTYPE_{upper} {dtype.symbol}",
                  f"#define FORMAT_{upper} {layout}"]
    return "\n".join(lines)


def column_defines(op: OpInfo, column: int) -> str:
    inputs = {p.name for p in op.inputs}
    rows = [(p.name, p.dtype(column), _layout(p.format(column))) for p in op.inputs]
    rows += [(p.name + ("_REF" if p.name in inputs else ""), p.dtype(column), _layout(p.format(column)))
             for p in op.outputs]
    return dtype_defines(rows)


def _layout(name: str) -> str:
    return name if name.startswith("FORMAT_") else f"FORMAT_{name}"


#: Tiling classes of the API itself: the kernel's headers have them as plain structs.
API_STRUCTS = ("TCubeTiling",)


def tiling_structs(classes: Iterable[TilingClass]) -> str:
    """Plain structs of the macro-declared tiling classes, as a kernel sees them; the default one is announced by
    CUSTOM_OPS_DEFAULT_TILING (sim/ascendc/include/ascendc/tiling_access.h)."""
    classes = list(classes)
    written: dict[str, str] = {}
    for tiling_class in classes:
        _write_struct(tiling_class, written)
    default = [c.name for c in classes if c.key is None]
    announce = [f"#define CUSTOM_OPS_DEFAULT_TILING {default[0]}"] if default else []
    return "\n".join([*written.values(), *announce])


def _write_struct(tiling_class: TilingClass, written: dict[str, str]) -> None:
    if tiling_class.name in written:
        return
    members = []
    for field in tiling_class.fields:
        if field.nested:
            _write_struct(field.nested, written)
        bound = f"[{field.count}]" if field.count > 1 else ""
        members.append(f"    {field.type} {field.name}{bound};")
    body = "\n".join(members)
    declared = f"struct {tiling_class.name} {{\n{body}\n}};"
    if tiling_class.name in API_STRUCTS:
        declared = '#include "kernel_tiling/kernel_tiling.h"'
    written[tiling_class.name] = f"{declared}\nstatic_assert(sizeof({tiling_class.name}) == {tiling_class.bytes});"


def text(defines: str, kernel: str, hooks: str, classes: Iterable[TilingClass] = ()) -> str:
    """The whole translation unit; `kernel` is found by #include, `hooks` export its entries."""
    structs = tiling_structs(classes)
    return f"""\
#include <cstdint>
{defines}
{structs}
#include "{kernel}"
#include "ascendc/kernel_entry.h"
{hooks}
"""


def only_entry(entry: str) -> str:
    return f"CUSTOM_OPS_KERNEL({entry})"


def named_entries(entries: Iterable[str]) -> str:
    return "\n".join(f"CUSTOM_OPS_KERNEL_ENTRY({entry})" for entry in entries)
