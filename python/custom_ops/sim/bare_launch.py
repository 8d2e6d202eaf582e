"""Bare kernel launch: a kernel file without op_host."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import BuildError
from . import arrays, compiler, execute, kernel_source, runtime, sources, tiling_decode
from .api_list import ARCHES
from .compiler import Unit
from .names import dtype_named, nearest
from .report import OpCall
from .runtime import Options, SimArgument
from .sources import Parameter


def launch(file, entry: str, block_dim: int, args: Sequence[Any] | Mapping[str, Any] = (), tiling=None, *,
           soc: str = "ascend910b", tiling_key: int = 0, outputs: Sequence[str | int] = (), inputs: Sequence[str | int] = (),
           workspace: int = 0, dtypes: Mapping[str, str] | None = None, defines: Mapping[str, Any] | None = None,
           include_dirs: Sequence[Any] = (), checks: bool = True, trace: bool = False, adversarial_seed: int = 0,
           host_threads: int | None = None, timeout: float | None = None, ignore: Sequence[str] = (),
           raise_on_finding: bool = True) -> OpCall:
    """Compiles a kernel file and runs one of its entries on the simulated SoC.

        y = np.empty_like(x)
        report = launch("add.cpp", "add", 8, [x, y], tiling=struct.pack("<I", x.size), outputs=["y"])

    Args:
        file:       kernel source: a path, or the text itself (anything with a line break).
        entry:      name of the `extern "C" __global__ __aicore__` function; macros that make it must be the file's own or `defines`.
        block_dim:  number of blocks (GetBlockNum()), 1 to 65535.
        args:       the entry's arguments in order, or by parameter name: contiguous torch tensors and NumPy arrays for GM
                    pointers (None: null), Python numbers, ctypes values and bytes for parameters passed by value.
                    A parameter called `workspace` is left out, and so is `tiling` when `tiling` is given.
        tiling:     bytes, ctypes structure or NumPy record for the parameter called `tiling` (else the last one).
        outputs:    GM arguments (name or index) that start unwritten: reading them first is a finding. Others are in-out.
        inputs:     GM arguments that the kernel may only read.
        workspace:  bytes of GetUserWorkspace().
        dtypes:     parameter name -> dtype for DTYPE_<NAME>; defaults to the arrays' own.
        defines:    further macros.
        checks, trace, adversarial_seed, host_threads, timeout, ignore, raise_on_finding: see custom_ops.simulate.
    Returns: OpCall, the report of the launch.
    Raises: BuildError, KernelError (findings), TypeError and ValueError for arguments that do not fit the entry.
    """
    options = Options(soc, checks, trace, adversarial_seed, host_threads, timeout, ignore, raise_on_finding)
    if not isinstance(entry, str):
        raise TypeError(f"entry must be the name of a kernel function, got {entry!r}")
    block_dim = runtime.integer(f"{entry}: block_dim", block_dim, 1, 65535)
    tiling_key = runtime.integer(f"{entry}: tiling_key", tiling_key, 0, 2**64 - 1)
    workspace = runtime.integer(f"{entry}: workspace", workspace, 0, 2**63 - 1)
    root, relative = _locate(file, entry)
    source = (root / relative).read_text()
    arch = runtime.arch(soc)
    macros = (*ARCHES[arch], *(f"{k}={v}" for k, v in (defines or {}).items()))
    declared = sources.entries(source)
    if entry not in declared:  # a macro of the file may make its name: `void name##_half(...)`
        declared = sources.entries(compiler.with_macros_expanded(source, macros)) or declared
    if entry not in declared:
        raise BuildError(f"{relative} has no entry {entry}(...) declared __global__; it has {nearest(entry, declared)}")
    parameters = declared[entry]
    values, tiling_name = _bind(entry, parameters, args, tiling)
    kinds = {name: dtype_named(d) for name, d in (dtypes or {}).items()}
    columns = [(name, kinds.get(name) or arrays.dtype_of(v, f"{entry}: {name}"), "FORMAT_ND")
               for name, v in values.items() if arrays.is_array(v) and name != tiling_name]
    columns += [(name, kind, "FORMAT_ND") for name, kind in kinds.items() if not arrays.is_array(values.get(name))]
    # One library serves all entries of a file, except where some may exist on other chips only, or be words in a macro.
    exported = [entry] if "#if" in source or "#define" in source else list(declared)
    unit = Unit(f"{relative} [{arch}]", root,
                text=kernel_source.text(kernel_source.dtype_defines(columns), str(relative),
                                   kernel_source.named_entries(exported), ()),
                includes=(root, *compiler.KERNEL_INCLUDES, (root / relative).parent, *map(Path, include_dirs)),
                defines=macros, kernel=True)
    library, _ = compiler.compile_unit(unit)
    roles = _roles(entry, parameters, outputs, inputs)
    alive: list[Any] = []
    arguments = [_argument(entry, p, values.get(p.name), roles.get(p.name, runtime.IN_OUT), p.name == tiling_name, alive)
                 for p in parameters if p.name != "workspace" or p.name in values]
    if "workspace" not in values and any(p.name == "workspace" for p in parameters):
        position = next(i for i, p in enumerate(parameters) if p.name == "workspace")
        arguments.insert(position, _workspace(entry, workspace, alive))
    runtime.apply(options)
    status = runtime.launch_kernel(library, entry, block_dim, tiling_key, arguments)
    tiling_bytes = _bytes(tiling) if tiling is not None else b""
    calls = execute.collect(status, options, entry,
                            complete=lambda call: _add_tiling(call, tiling_key, tiling, tiling_bytes))
    return calls[-1]


def _locate(file, entry: str) -> tuple[Path, Path]:
    """Root that file names in reports are relative to, and the kernel below it."""
    from . import cache

    if isinstance(file, str) and "\n" in file:
        def make(folder: Path) -> None:
            folder.mkdir()
            (folder / f"{entry}.cpp").write_text(file)

        return cache.obtain("sources", cache.key_of([entry, file]), make)[0], Path(f"{entry}.cpp")
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise BuildError(f"{path} does not exist")
    root = next((p.parent for p in path.parents if p.name == "op_kernel"), path.parent)
    return root, path.relative_to(root)


def _bind(entry: str, parameters: list[Parameter], args, tiling) -> tuple[dict[str, Any], str | None]:
    """Parameter name -> what the caller gave; and which parameter takes the tiling data."""
    names = [p.name for p in parameters]
    tiling_name = None
    if tiling is not None:
        if not names:
            raise TypeError(f"{entry} has no parameters, so it cannot take tiling")
        tiling_name = "tiling" if "tiling" in names else names[-1]
    supplied = [n for n in names if n != tiling_name and n != "workspace"]
    if isinstance(args, Mapping):
        for name in args:
            if name not in names:
                raise TypeError(f"{entry} has no parameter {name!r}; it has {nearest(name, names)}")
        values = dict(args)
    else:
        given = list(args)
        if len(given) == len(names) - (tiling_name is not None) and "workspace" in names:
            supplied = [n for n in names if n != tiling_name]  # the caller's own workspace
        if len(given) != len(supplied):
            raise TypeError(f"{entry} takes {len(supplied)} arguments ({', '.join(supplied)}), got {len(given)}")
        values = dict(zip(supplied, given, strict=True))
    missing = [n for n in supplied if n not in values]
    if missing:
        raise TypeError(f"{entry}: {', '.join(missing)} not given")
    if tiling_name:
        values[tiling_name] = tiling
    return values, tiling_name


def _roles(entry: str, parameters: list[Parameter], outputs, inputs) -> dict[str, int]:
    names = [p.name for p in parameters]
    roles = {}
    for role, chosen in ((runtime.OUTPUT, outputs), (runtime.INPUT, inputs)):
        for item in [chosen] if isinstance(chosen, (str, int)) else chosen:
            is_index = isinstance(item, int) and not isinstance(item, bool)
            if is_index and not -len(names) <= item < len(names):
                raise ValueError(f"{entry} has no parameter {item}; its {len(names)} are {', '.join(names)}, from 0")
            name = names[item] if is_index else item
            if name not in names:
                raise TypeError(f"{entry} has no parameter {item!r}; it has {nearest(str(item), names)}")
            if roles.setdefault(name, role) != role:
                raise ValueError(f"{entry}: {name} is in both inputs= and outputs=; name it in one, or in none when the "
                                 f"kernel reads and writes it")
    return roles


def _argument(entry: str, parameter: Parameter, value: Any, role: int, is_tiling: bool, alive: list) -> SimArgument:
    what = f"{entry}: {parameter.name}"
    name = parameter.name.encode()
    if is_tiling:
        data = _bytes(value)
        kind = runtime.TILING if parameter.is_pointer else runtime.BY_VALUE
        return SimArgument(name, _address(data, alive), len(data), kind)
    if not parameter.is_pointer:
        data = _scalar_bytes(what, parameter, value)
        return SimArgument(name, _address(data, alive), len(data), runtime.BY_VALUE)
    if value is None:
        return SimArgument(name, None, 0, role)
    if not arrays.is_array(value):
        raise TypeError(f"{what} is a GM pointer and takes a torch tensor or a NumPy array, got {type(value).__name__}")
    arrays.require_cpu(value, what)
    if method := arrays.pending(value):
        raise ValueError(f"{what} has a lazy {method.removeprefix('resolve_')} bit and the kernel works on its memory: "
                         f"call .{method}()")
    if not arrays.is_contiguous(value):
        raise ValueError(f"{what} must be contiguous: the kernel works on its memory, shape {tuple(value.shape)}")
    if role != runtime.INPUT and arrays.is_numpy(value) and not value.flags.writeable:
        raise ValueError(f"{what} is read-only: give a writeable array or name it in inputs=")
    view = arrays.view(value, what)
    alive.append(value)
    return SimArgument(name, view.address, view.bytes, role)


def _workspace(entry: str, size: int, alive: list) -> SimArgument:
    try:
        buffer = (ctypes.c_uint8 * max(size, 32))()
    except (MemoryError, OverflowError):
        raise ValueError(f"{entry}: workspace of {size} bytes does not fit in the memory of this machine") from None
    alive.append(buffer)
    return SimArgument(b"workspace", ctypes.addressof(buffer), size, runtime.WORKSPACE)


def _bytes(value: Any) -> bytes:
    """Tiling data as the caller has it."""
    if arrays.is_torch(value):
        value = arrays.contiguous(value).numpy()
    if hasattr(value, "tobytes"):
        return value.tobytes()  # NumPy array or record
    try:
        return bytes(memoryview(value))  # bytes, bytearray, ctypes structure
    except TypeError:
        raise TypeError(f"tiling must be bytes, a ctypes structure or a NumPy record, got {type(value).__name__}") from None


def _address(data: bytes, alive: list) -> int:
    # 64-byte steps: structs in kernels may be read through any fundamental type
    buffer = (ctypes.c_uint64 * (len(data) // 8 + 1))()
    ctypes.memmove(buffer, data, len(data))
    alive.append(buffer)
    return ctypes.addressof(buffer)


def _scalar_bytes(what: str, parameter: Parameter, value: Any) -> bytes:
    if isinstance(value, (ctypes.Structure, ctypes._SimpleCData, bytes, bytearray)):
        return bytes(value) if isinstance(value, (bytes, bytearray)) else bytes(memoryview(value))
    if hasattr(value, "tobytes") and not arrays.is_torch(value):
        return value.tobytes()
    kind = tiling_decode.C_TYPES.get(parameter.type.removeprefix("const ").strip())
    if kind is None or not isinstance(value, (int, float)):
        raise TypeError(f"{what} is a {parameter.type} passed by value: give a number for a fundamental type, else a ctypes "
                        f"structure or bytes; got {type(value).__name__}")
    try:
        raw = kind(value)
    except TypeError:
        raise TypeError(f"{what} is a {parameter.type}, got {value!r}") from None
    if isinstance(value, int) and raw.value != value and not isinstance(raw.value, float):
        raise ValueError(f"{what}: {value} does not fit {parameter.type}")
    return bytes(memoryview(raw))


def _add_tiling(call: OpCall, tiling_key: int, tiling: Any, data: bytes) -> None:
    call.tiling_key, call.tiling_bytes = tiling_key, data
    if isinstance(tiling, ctypes.Structure):
        call.plan = tiling_decode.to_dict(tiling)
    elif getattr(getattr(tiling, "dtype", None), "names", None):
        scalars = {name: tiling[name].item() for name in tiling.dtype.names if tiling[name].size == 1}
        call.plan = {name: tiling_decode.shortest(value) if tiling.dtype[name] == "float32" else value
                     for name, value in scalars.items()}
