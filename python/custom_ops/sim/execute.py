"""Runs one call of a built op through the aclnn functions of its package and turns reports into OpCalls and errors."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import KernelError
from . import aclnn_codegen, arrays, compiler, report, runtime, sources, tiling_decode
from .arrays import View
from .builder import Package
from .names import BY_NAME, DType
from .opinfo import OpInfo
from .report import OpCall
from .runtime import Handles, Options

_local = threading.local()


@contextlib.contextmanager
def recording(run: report.Run):
    """Launches of this thread are added to `run` until the block ends; an inner block takes over."""
    stack = _local.__dict__.setdefault("runs", [])
    stack.append(run)
    try:
        yield run
    finally:
        stack.pop()


def infer_shapes(package: Package, op: OpInfo, inputs: Sequence[View | None],
                 attributes: Mapping[str, Any], options: Options) -> list[tuple[tuple[int, ...], DType]]:
    """Shape and dtype of every output, by the op's own InferShape and InferDataType."""
    runtime.apply(options)
    lib = runtime.library()
    with Handles() as handles:
        tensors = (ctypes.c_void_p * max(len(inputs), 1))(*(handles.tensor(v) for v in inputs))
        values = [_attribute(handles, attr.type, attributes[attr.name]) for attr in op.attrs]
        packed = (runtime.SimAttribute * max(len(values), 1))(*values)
        pointer = lib.SimInferShapes(str(package.opapi).encode(), op.type.encode(), tensors, len(inputs), packed, len(values))
        if not pointer:
            raise host_error(op.type, options.soc)
        rows = json.loads(runtime.text(pointer))
    return [(tuple(row["shape"]), BY_NAME[row["dtype"]]) for row in rows]


def run(package: Package, op: OpInfo, inputs: Sequence[View | None], attributes: Mapping[str, Any],
        outputs: Sequence[View], options: Options) -> list[OpCall]:
    """aclnn<Op>GetWorkspaceSize, then aclnn<Op>. Outputs that are references take the input's view."""
    runtime.apply(options)
    lib = runtime.opapi(str(package.opapi))
    with Handles() as handles:
        by_name = {p.name: handles.tensor(v) for p, v in zip(op.inputs, inputs, strict=True)}
        made = {p.name: handles.tensor(v) for p, v in zip(op.outputs, outputs, strict=True) if p.name not in by_name}
        arguments: list[Any] = []
        for parameter in aclnn_codegen.parameters(op):
            if parameter.kind == "attr":
                attr = next(a for a in op.attrs if a.name == parameter.opdef)
                arguments.append(_argument(handles, attr.type, attributes[attr.name]))
            else:
                arguments.append(ctypes.c_void_p((by_name if parameter.kind == "input" else made)[parameter.opdef]))
        workspace_bytes, executor = ctypes.c_uint64(), ctypes.c_void_p()
        status = getattr(lib, f"aclnn{op.type}GetWorkspaceSize")(
            *arguments, ctypes.byref(workspace_bytes), ctypes.byref(executor))
        if status:
            raise host_error(op.type, options.soc)
        workspace = handles.keep((ctypes.c_uint8 * workspace_bytes.value)()) if workspace_bytes.value else None
        address = ctypes.c_void_p(ctypes.addressof(workspace) if workspace else None)
        status = getattr(lib, f"aclnn{op.type}")(address, workspace_bytes, executor, None)
    return collect(status, options, op.type, functools.partial(decode, package, op))


def collect(status: int, options: Options, op_type: str, decoder=None, complete=None) -> list[OpCall]:
    """Takes the reports of this thread; raises when a launch had findings (and the options say so) or failed.

    `complete(call)` adds what the library cannot know.
    """
    calls = [report.from_json(raw, runtime.find_soc(raw["soc"])["clockHz"], decoder) for raw in runtime.take_reports()]
    if options.trace and calls:
        calls[-1].trace_events = runtime.take_trace()
    for call in calls:
        if complete:
            complete(call)
        for active in _local.__dict__.get("runs", ())[-1:]:
            active.add(call)
    errors = [error for call in calls if (error := call.error())]
    if errors and options.raise_on_finding:
        raise errors[0]
    if status and not errors:
        raise host_error(op_type, options.soc)
    return calls


def host_error(op_type: str, soc: str) -> KernelError:
    message = runtime.last_error()
    return KernelError(message, op=op_type, soc=soc, rule="host", message=message)


def decode(package: Package, op: OpInfo, tiling_key: int, data: bytes) -> dict[str, Any]:
    """Tiling bytes of a launch as {field: value}; {} when neither reflection nor a plain struct explains them."""
    classes = {c.key: c for c in op.tiling_classes}
    chosen = classes.get(tiling_key) or classes.get(None)
    if chosen and chosen.bytes <= len(data):
        return tiling_decode.decode_class(chosen, data)
    structure = _plain_struct(package.kernels[op.type], package.root, tiling_key, len(data))
    return tiling_decode.decode_struct(structure, data) if structure else {}


@functools.lru_cache(maxsize=256)
def _plain_struct(kernel: Path, root: Path, tiling_key: int, size: int):
    """The plain struct that the kernel reads its tiling data as."""
    files = sources.closure(kernel, [root, *compiler.KERNEL_INCLUDES])
    own = [data.decode("utf-8", "replace") for path, data in files.items()
           if path.is_relative_to(root / "op_kernel") or path.parent == kernel.parent]
    api = [data.decode() for path, data in files.items() if path.parent.name == "kernel_tiling"]
    known: dict[str, type] = {}
    before = -1
    while before != len(known):  # a struct may hold one of a header that is read later
        before = len(known)
        for text in (*api, *own):
            if "struct" in text:
                known.update(tiling_decode.structs(text, known))
    return tiling_decode.struct_for("\n".join(own), tiling_key, known, size)


def _attribute(handles: Handles, kind: str, value: Any) -> runtime.SimAttribute:
    """As SimInferShapes takes it: kind and address (of the number; text and lists are addresses already)."""
    number = aclnn_codegen.ATTRIBUTES[kind][1]
    if kind in ("int", "float", "bool"):
        box = handles.keep({"int": ctypes.c_int64, "float": ctypes.c_double, "bool": ctypes.c_bool}[kind](value))
        return runtime.SimAttribute(number, ctypes.addressof(box))
    if kind == "str":
        box = handles.keep(ctypes.create_string_buffer(value.encode()))
        return runtime.SimAttribute(number, ctypes.addressof(box))
    return runtime.SimAttribute(number, handles.list_of(kind, value))


def _argument(handles: Handles, kind: str, value: Any) -> Any:
    """As the C function takes it."""
    if kind == "str":
        return ctypes.c_char_p(value.encode())
    if kind.startswith("list"):
        return ctypes.c_void_p(handles.list_of(kind, value))
    return {"int": ctypes.c_int64, "float": ctypes.c_double, "bool": ctypes.c_bool}[kind](value)


def views(values: Sequence[Any], names: Sequence[str]) -> list[View | None]:
    return [None if v is None else arrays.view(v, name) for v, name in zip(values, names, strict=True)]
