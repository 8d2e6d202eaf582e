"""ctypes binding of libcustom_ops_sim.so (sim/opapi/c_api.h and the acl functions it exports). Loaded at first use.

Options, reports and error messages of the library belong to the calling host thread, so everything between
`apply(options)` and `take_reports()` happens on one thread. ctypes releases the GIL during calls.
"""

from __future__ import annotations

import ctypes
import functools
import json
import numbers
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _paths
from .arrays import View
from .names import FORMAT_ND, nearest


class SimOptions(ctypes.Structure):
    _fields_ = [("soc", ctypes.c_char_p), ("checks", ctypes.c_int32), ("trace", ctypes.c_int32),
                ("adversarialSeed", ctypes.c_uint64), ("hostThreads", ctypes.c_int32),
                ("timeoutSeconds", ctypes.c_double), ("ignoredRules", ctypes.c_uint64), ("raise_", ctypes.c_int32)]


class SimArgument(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("kind", ctypes.c_int32)]


class SimAttribute(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("value", ctypes.c_void_p)]


#: SimArgument::kind
INPUT, OUTPUT, IN_OUT, WORKSPACE, TILING, BY_VALUE = range(6)


@dataclass(frozen=True)
class Options:
    """How launches run; the fields are documented in custom_ops.simulate."""

    soc: str = "ascend910b"
    checks: bool = True
    trace: bool = False
    adversarial_seed: int = 0
    host_threads: int | None = None
    timeout: float | None = None
    ignore: tuple[str, ...] = ()
    raise_on_finding: bool = True

    def __post_init__(self):
        if not isinstance(self.soc, str):
            raise TypeError(f'soc must be a name like "ascend910b", got {self.soc!r}')
        object.__setattr__(self, "ignore", _rule_names(self.ignore))
        object.__setattr__(self, "adversarial_seed", integer("adversarial_seed", self.adversarial_seed, 0, 2**64 - 1))
        if self.host_threads is not None:
            threads = integer("host_threads", self.host_threads, 1, 2**31 - 1, otherwise="None for all, or ")
            object.__setattr__(self, "host_threads", threads)
        if self.timeout is not None:
            accepted = "timeout must be None or a finite number of seconds above 0"
            if not isinstance(self.timeout, numbers.Real) or isinstance(self.timeout, bool):
                raise TypeError(f"{accepted}, got {self.timeout!r}")
            if not 0 < self.timeout <= sys.float_info.max:
                raise ValueError(f"{accepted}, got {self.timeout!r}")


def integer(what: str, value: Any, low: int, high: int, otherwise: str = "") -> int:
    """`value` as an int from `low` to `high`; bools are no ints here, NumPy integers are welcome."""
    accepted = f"{what} must be {otherwise}an int from {low} to {high}"
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{accepted}, got {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{accepted}, got {value!r}")
    return int(value)


def _rule_names(ignore: Any) -> tuple[str, ...]:
    if isinstance(ignore, str):
        raise TypeError(f'ignore must be a sequence of rule names, got {ignore!r}: give ["{ignore}"]')
    names = tuple(ignore) if isinstance(ignore, Iterable) else (ignore,)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f'ignore must be a sequence of rule names like ["hazard"], got {ignore!r}')
    return names


@functools.cache
def library() -> ctypes.CDLL:
    lib = ctypes.CDLL(str(_paths.library("custom_ops_sim")), mode=ctypes.RTLD_GLOBAL)
    text, status, size, pointer = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p
    sizes = ctypes.POINTER(ctypes.c_int64)
    signatures = {
        "SimSetOptions": (status, [ctypes.POINTER(SimOptions)]),
        "SimSocTable": (text, []),
        "SimRules": (text, []),
        "SimDescribeHostLibrary": (text, [ctypes.c_char_p]),
        "SimLaunchKernel": (status, [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64,
                                     ctypes.POINTER(SimArgument), ctypes.c_int32]),
        "SimTakeReports": (text, []),
        "SimTakeTrace": (text, []),
        "SimFree": (None, [text]),
        "SimMemorySize": (size, [ctypes.c_char_p]),
        "SimInferShapes": (text, [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(pointer), ctypes.c_int32,
                                  ctypes.POINTER(SimAttribute), ctypes.c_int32]),
        "aclGetRecentErrMsg": (ctypes.c_char_p, []),
        "aclCreateTensor": (pointer, [sizes, size, ctypes.c_int, sizes, ctypes.c_int64, ctypes.c_int, sizes, size, pointer]),
        "aclDestroyTensor": (status, [pointer]),
        "aclCreateIntArray": (pointer, [sizes, size]),
        "aclDestroyIntArray": (status, [pointer]),
        "aclCreateFloatArray": (pointer, [ctypes.POINTER(ctypes.c_float), size]),
        "aclDestroyFloatArray": (status, [pointer]),
        "aclCreateBoolArray": (pointer, [ctypes.POINTER(ctypes.c_bool), size]),
        "aclDestroyBoolArray": (status, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


@functools.lru_cache(maxsize=None)
def opapi(path: str) -> ctypes.CDLL:
    """The aclnn library of an op package."""
    library()
    return ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)


def text(pointer: int | None) -> str:
    if not pointer:
        raise RuntimeError(last_error())
    try:
        return ctypes.string_at(pointer).decode("utf-8", "replace")
    finally:
        library().SimFree(pointer)


def last_error() -> str:
    message = library().aclGetRecentErrMsg()
    return message.decode("utf-8", "replace") if message else "the simulator gave no message"


@functools.cache
def socs() -> list[dict]:
    """The SoC table: one dict per SKU with the fields of sim/core/soc.h."""
    return json.loads(text(library().SimSocTable()))


@functools.cache
def rules() -> list[dict]:
    """{"name", "summary"} of each rule the checkers know."""
    return json.loads(text(library().SimRules()))


def find_soc(name: str) -> dict:
    """By SKU name or alias ("ascend910b" is the 910B3), case-insensitive, as sim::FindSoc."""
    for names in (lambda soc: [soc["name"]], lambda soc: soc["aliases"]):
        for soc in socs():
            if name.lower() in (known.lower() for known in names(soc)):
                return soc
    library().SimSetOptions(ctypes.byref(SimOptions(name.encode())))  # refuses it, in the words for all callers
    raise ValueError(last_error())


def arch(soc: str) -> str:
    return "regbase" if find_soc(soc)["npuArch"] >= 3000 else "membase"


def ignored_bits(names: Iterable[str]) -> int:
    known = [rule["name"] for rule in rules()]
    bits = 0
    for name in names:
        if name not in known:
            raise ValueError(f"rule {name!r} is not known; known are {nearest(name, known)}")
        bits |= 1 << known.index(name)
    return bits


def apply(options: Options) -> None:
    """Sets the options of this host thread. Findings are never raised by the library: Python decides."""
    find_soc(options.soc)
    raw = SimOptions(options.soc.encode(), int(options.checks), int(options.trace), options.adversarial_seed,
                     options.host_threads or 0, options.timeout or 0.0, ignored_bits(options.ignore), 0)
    if library().SimSetOptions(ctypes.byref(raw)):
        raise RuntimeError(last_error())
    # What this thread launched through the C functions itself is not part of the run that begins here.
    take_reports()
    take_trace()


def take_reports() -> list[dict]:
    return json.loads(text(library().SimTakeReports()))


def take_trace() -> list[dict]:
    return json.loads(text(library().SimTakeTrace()))


def describe_host_library(path: Path) -> str:
    return text(library().SimDescribeHostLibrary(str(path).encode()))


def launch_kernel(path: Path, op: str, block_dim: int, tiling_key: int, arguments: Sequence[SimArgument]) -> int:
    packed = (SimArgument * max(len(arguments), 1))(*arguments)
    return library().SimLaunchKernel(str(path).encode(), op.encode(), block_dim, tiling_key, packed, len(arguments))


class Handles:
    """acl objects of one call; destroyed together."""

    def __init__(self):
        self._owned: list[tuple[Any, int]] = []
        self._alive: list[Any] = []

    def __enter__(self) -> Handles:
        return self

    def __exit__(self, *_) -> None:
        for destroy, handle in reversed(self._owned):
            destroy(handle)

    def tensor(self, view: View | None) -> int | None:
        if view is None:
            return None
        rank = len(view.shape)
        shape = (ctypes.c_int64 * max(rank, 1))(*view.shape)
        strides, step = [0] * rank, 1
        for axis in reversed(range(rank)):
            strides[axis], step = step, step * view.shape[axis]
        packed = (ctypes.c_int64 * max(rank, 1))(*strides)
        lib = library()
        handle = lib.aclCreateTensor(shape, rank, view.dtype.code, packed, 0, FORMAT_ND, shape, rank, view.address)
        return self._own(lib.aclDestroyTensor, handle)

    def list_of(self, kind: str, values: Sequence) -> int:
        lib = library()
        create, destroy, item = {
            "list_int": (lib.aclCreateIntArray, lib.aclDestroyIntArray, ctypes.c_int64),
            "list_float": (lib.aclCreateFloatArray, lib.aclDestroyFloatArray, ctypes.c_float),
            "list_bool": (lib.aclCreateBoolArray, lib.aclDestroyBoolArray, ctypes.c_bool)}[kind]
        return self._own(destroy, create((item * max(len(values), 1))(*values), len(values)))

    def keep(self, value: Any) -> Any:
        """Keeps a ctypes object alive until the call is over."""
        self._alive.append(value)
        return value

    def _own(self, destroy, handle: int | None) -> int:
        if not handle:
            raise RuntimeError(last_error())
        self._owned.append((destroy, handle))
        return handle
