"""The NPU's implementation of the operators: libcustom_ops_torch_npu-<version of torch_npu>.so.

It is on torch_npu's C++ interface, so it belongs to one version of torch_npu and can only be built where that is. A wheel built with
torch_npu beside it brings the library; elsewhere it is compiled, once, from the sources in framework/torch/npu.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from .. import _paths

SOURCES = _paths.SOURCE_ROOT / "framework" / "torch"
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-w")
# The oldest stable ABI the library needs, as in framework/torch/CMakeLists.txt; files on torch_npu's headers are not on it.
_STABLE = "-DTORCH_TARGET_VERSION=0x020a000000000000"


def load() -> None:
    """Registers the operators for NPU tensors. A library that cannot be built is a warning; the first call on an NPU tensor then raises."""
    import torch

    try:
        path = find() or build()
    except (RuntimeError, OSError) as error:  # BuildError is a RuntimeError
        warnings.warn(f"custom_ops: no operators on NPU tensors, their library could not be built: {error}", stacklevel=2)
        _refuse(str(error))
        return
    torch.ops.load_library(str(path))


def find() -> Path | None:
    """The library for the torch_npu that is there, if it exists."""
    path = _paths.LIBRARY_DIR / f"libcustom_ops_torch_npu-{versions()[1]}.so"
    if not path.is_file():
        path = _cached()
    return path if path.is_file() else None


def versions() -> tuple[str, str]:
    """Of torch and torch_npu, without importing them."""
    return version("torch"), version("torch_npu")


def build() -> Path:
    """Compiles it into the cache, which stderr shows."""
    from ..sim import cache

    path, _ = cache.obtain("npu", _cached().name, _make)
    return path


def _cached() -> Path:
    from ..sim import cache, sources

    parts: list[str | bytes] = [*versions(), *_FLAGS]
    read: dict[Path, bytes] = {}
    for source in sorted((SOURCES / "npu").glob("*.cpp")):
        sources.closure(source, [], read)
    for path, data in read.items():
        parts += [path.name, data]
    return cache.root() / "npu" / f"libcustom_ops_torch_npu-{cache.key_of(parts)}.so"


def _make(output: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from ..sim import compiler
    from ..sim.progress import Progress

    tool = compiler.find()
    torch, torch_npu = _folder("torch"), _folder("torch_npu")
    headers = [torch / "include", torch_npu / "include", torch_npu / "include" / "third_party" / "acl" / "inc"]
    files = sorted((SOURCES / "npu").glob("*.cpp"))
    libraries = [_paths.library("custom_ops_torch"), torch_npu / "lib" / "libtorch_npu.so",
                 torch / "lib" / "libtorch_cpu.so", torch / "lib" / "libc10.so"]
    title = f"compiling its operators for torch_npu {versions()[1]} (once, about half a minute)"
    with Progress(title, line=True) as progress, ThreadPoolExecutor(os.cpu_count()) as pool:
        progress.expect(len(files) + 1)

        def compiled(file: Path) -> str:
            target = str(output.parent / f"{file.stem}.o")
            stable = [] if "<torch_npu/" in file.read_text() else [_STABLE]
            _run([*tool.command, *_FLAGS, *stable, *(f"-isystem{h}" for h in headers), "-c", str(file), "-o", target], file.name)
            progress.done(file.name)
            return target

        objects = list(pool.map(compiled, files))
        # libtorch_npu's own CANN libraries are the run-time's business.
        _run([*tool.command, "-shared", "-Wl,--allow-shlib-undefined", *objects, *map(str, libraries), "-ldl", "-o", str(output)], "link")


def _run(command: Sequence[str], what: str) -> None:
    from ..errors import BuildError

    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line][:5] or done.stderr.splitlines()[-3:]
        raise BuildError("\n  ".join([f"framework/torch/npu, {what}: does not compile against the installed torch_npu", *errors]),
                         output=done.stderr, command=command)


def _folder(package: str) -> Path:
    loaded = sys.modules.get(package)
    spec = getattr(loaded, "__spec__", None) or importlib.util.find_spec(package)
    return Path(spec.origin).parent


def version(package: str) -> str:
    """From the package's version.py, which has the local part ("+cpu") that metadata may lack."""
    text = (_folder(package) / "version.py").read_text()
    return re.search(r"^__version__ = ['\"](.+?)['\"]", text, re.MULTILINE)[1]


def _refuse(reason: str) -> None:
    import torch

    from .. import ops

    def implementation(*_, **__):
        raise RuntimeError(f"custom_ops has no operators on NPU tensors in this process, their library could not be built: {reason}")

    global _refusals
    _refusals = torch.library.Library("custom", "IMPL", "PrivateUse1")
    for name in ops.BY_NAME:
        _refusals.impl(name, implementation, "PrivateUse1")
