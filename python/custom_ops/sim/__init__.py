"""AscendC kernels on the CPU: build op folders, launch kernels, see what the device would object to.

    op = custom_ops.sim.build("path/to/op", soc="ascend950")
    y = op(x=x, epsilon=1e-6)
    print(op.report.summary())

    custom_ops.sim.launch("kernel.cpp", "entry", block_dim, [x, y], tiling)

Nothing is loaded before the first call.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import BuildError, KernelError

if TYPE_CHECKING:
    from .bare_launch import launch
    from .op import Op, OpPackage

__all__ = ["BuildError", "KernelError", "Op", "OpPackage", "build", "launch", "socs", "rules", "apis", "cache_dir"]


def build(path, soc: str = "ascend910b", *, ops: Sequence[str] | None = None, jobs: int | None = None,
          progress: bool | None = None, checks: bool = True, trace: bool = False, adversarial_seed: int = 0,
          host_threads: int | None = None, timeout: float | None = None, ignore: Sequence[str] = (),
          raise_on_finding: bool = True):
    """Builds an op folder in the standard layout (op_host/, op_kernel/) for a SoC.

    Args:
        path:     folder that holds op_host/*.cpp and op_kernel/*.cpp, directly or one level deeper per operator.
        soc:      family or SKU name: "ascend910b" (the 910B3), "ascend910_93", "ascend950", "Ascend910B1" ...
        ops:      OpTypes to build, all by default.
        jobs:     compilers at a time, all host threads by default.
        progress: True, False, or None: on a terminal.
        checks, trace, adversarial_seed, host_threads, timeout, ignore, raise_on_finding: see custom_ops.simulate.
    Returns: an Op when the folder holds one operator, else a mapping of OpType to Op.
    Raises: BuildError with the compiler's errors; an API that is not modelled is named with those that are.
    """
    from . import builder, runtime
    from .op import Op, OpPackage

    options = runtime.Options(soc, checks, trace, adversarial_seed, host_threads, timeout, ignore, raise_on_finding)
    package = builder.build_package(path, soc, ops, jobs, progress)
    family = runtime.find_soc(soc)["family"]
    built = {name: Op(package, info, family, options) for name, info in package.ops.items()}
    return next(iter(built.values())) if len(built) == 1 else OpPackage(built)


def socs() -> list[dict]:
    """The SoC table, one dict per SKU."""
    from . import runtime

    return [dict(soc) for soc in runtime.socs()]


def rules() -> dict[str, str]:
    """Rules that a finding can name and `ignore=` takes: name -> what the device would do."""
    from . import runtime

    return {rule["name"]: rule["summary"] for rule in runtime.rules()}


def apis(pattern: str | None = None) -> list:
    """The AscendC APIs that are modelled: name, kind, header, arches. `pattern` is a case-insensitive regular expression."""
    import re

    from . import api_list

    return [api for api in api_list.modelled() if pattern is None or re.search(pattern, api.name, re.IGNORECASE)]


def cache_dir() -> Path:
    """Where builds are kept."""
    from . import cache

    return cache.root()


_LAZY = {"launch": "bare_launch", "Op": "op", "OpPackage": "op"}  # name: module that has it


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)


def __dir__():
    return sorted({*globals(), *_LAZY})
