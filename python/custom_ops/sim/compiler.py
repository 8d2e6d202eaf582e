"""The C++ compiler of the user's machine: finding it, its flags, cached and parallel compilation."""

from __future__ import annotations

import functools
import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .. import _paths
from ..errors import BuildError
from . import abi, cache, diagnose, sources
from .host import host_cpu
from .progress import Progress

SIM_LIBRARY = "custom_ops_sim"
#: Where kernels and host code find `#include "sim/..."`, the AscendC headers and the CANN host headers.
ROOT = _paths.SOURCE_ROOT
KERNEL_INCLUDES = (ROOT / "sim" / "ascendc" / "include", ROOT)
HOST_INCLUDES = (ROOT / "sim" / "host" / "include", ROOT)
API_INCLUDES = (ROOT / "sim" / "opapi" / "include", *HOST_INCLUDES)

# Float results are those of the written expression: no contraction, no reassociation (as in the simulator itself).
# Kernels look at the same UB bytes, and at the same registers, as different types. Debug lines name the source of a fault.
FLAGS = (
    "-std=c++17", "-O2", "-g1", "-march=native", "-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing", "-fPIC", "-w",
    "-fstack-clash-protection",  # a frame larger than the guard page must touch it: below may lie the stack of another host thread
)  # fmt: skip

_OLDEST = {"gcc": 12, "clang": 15}  # first with _Float16 in C++ on x86
_INSTALL = "install g++ >= 12 or clang++ >= 15 (Debian, Ubuntu: apt install g++), or name one in $CXX"


@dataclass(frozen=True)
class Compiler:
    command: tuple[str, ...]
    identity: str  # what decides its output, besides the flags: version and the CPU that -march=native stands for


@functools.cache
def find(cxx: str | None = None) -> Compiler:
    """$CXX (or `cxx`), else the first of c++, g++, clang++ that is new enough."""
    chosen = cxx or os.environ.get("CXX")
    refused = []
    for candidate in [chosen] if chosen else ["c++", "g++", "clang++"]:
        command = tuple(shlex.split(candidate))
        if not command or not shutil.which(command[0]):
            refused.append(f"{candidate}: not found")
            continue
        macros = subprocess.run([*command, "-dM", "-E", "-x", "c++", os.devnull], capture_output=True, text=True)
        defined = dict(line.split(" ", 2)[1:] for line in macros.stdout.splitlines() if line.count(" ") >= 2)
        kind = "clang" if "__clang__" in defined else "gcc"
        major = int(defined.get("__clang_major__" if kind == "clang" else "__GNUC__", 0))
        # Apple's clang counts differently; its 15 is new enough as well.
        if macros.returncode or major < _OLDEST[kind]:
            refused.append(f"{candidate}: {kind} {major} is too old" if major else f"{candidate}: not a C++ compiler")
            continue
        version = defined.get("__VERSION__", "")
        return Compiler(command, f"{kind} {version} {host_cpu()}")
    raise BuildError(f"no usable C++ compiler ({'; '.join(refused)}): {_INSTALL}")


def with_macros_expanded(text: str, defines: Sequence[str]) -> str:
    """The text as its own macros leave it: `#include` lines are dropped, so that those of headers (__global__ is one) stay as written."""
    own = re.sub(r"^[ \t]*#[ \t]*include\b.*$", "", text, flags=re.MULTILINE)
    command = [*find().command, "-E", "-P", "-w", "-x", "c++", *(f"-D{d}" for d in defines), "-"]
    return subprocess.run(command, input=own, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Unit:
    """One translation unit, or one link of objects, and the file it gives."""

    label: str                                  # what progress and errors call it
    root: Path                                  # the op folder
    source: Path | None = None                  # a file of the user, or
    text: str | None = None                     # a generated source
    objects: tuple[Path, ...] = ()              # to be linked
    includes: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict, hash=False)  # generated, found by #include "name"
    shared: bool = True                         # a library; else an object file
    kernel: bool = False                        # names its source files at run time, so these are part of its content
    c_only: bool = False                        # of the simulator it uses C functions alone
    link: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        return ".so" if self.shared else ".o"


def compile_unit(unit: Unit, compiler: Compiler | None = None) -> tuple[Path, bool]:
    """Cached output of the unit and whether it was compiled before. Raises BuildError."""
    compiler = compiler or find()
    flags = [*FLAGS, *(f"-D{d}" for d in unit.defines)]
    if compiler.identity.startswith("gcc"):
        flags.append("-fno-gnu-unique")  # statics of inline functions stay apart between two builds of one source
    if unit.shared:
        flags += ["-shared", "-Wl,-z,defs" if platform.system() == "Linux" else "", *unit.link, *_sim_link()]
    flags = [f for f in flags if f]
    built_for = abi.symbol(ROOT) if unit.shared and not unit.c_only else ""
    parts: list[str | bytes] = [compiler.identity, *compiler.command, *flags, unit.suffix, built_for]
    seen: dict[Path, bytes] = {}
    for name, text in sorted(unit.headers.items()):
        parts += [name, text]
    include_dirs = list(unit.includes)
    if unit.text is not None:
        parts.append(unit.text)
        for name in (n.decode() for _, n in sources._INCLUDE.findall(unit.text.encode())):
            for place in [Path("/"), *include_dirs]:
                if (place / name).is_file():
                    sources.closure(place / name, include_dirs, seen)
                    break
    for path in ([unit.source] if unit.source else []) + list(unit.objects):
        sources.closure(path, include_dirs, seen) if path.suffix != ".o" else seen.setdefault(path, path.read_bytes())
    for path, data in seen.items():
        parts += [str(path) if unit.kernel else _relative(path, unit.root), data]

    def make(output: Path) -> None:
        scratch = output.parent
        for name, text in unit.headers.items():
            (scratch / name).write_text(text)
        inputs = [str(p) for p in unit.objects]
        if unit.source:
            inputs.append(str(unit.source))
        if unit.text is not None:
            generated = scratch / f"{unit.label.replace('/', '_')}.cpp"
            generated.write_text(unit.text)
            inputs.append(str(generated))
        if built_for:
            (scratch / "built_for.cpp").write_text(abi.reference(built_for))
            inputs.append(str(scratch / "built_for.cpp"))
        command = [*compiler.command, *flags, f"-I{scratch}", *(f"-I{d}" for d in include_dirs),
                   *([] if unit.shared else ["-c"]), *inputs, "-o", str(output)]
        # Libraries come after the objects that need them.
        command = [c for c in command if not c.startswith("-l")] + [c for c in command if c.startswith("-l")]
        environment = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise diagnose.build_error(unit, done.stderr, command)

    return cache.obtain("units", cache.key_of(parts) + unit.suffix, make)


def _sim_link() -> list[str]:
    directory = _paths.library(SIM_LIBRARY).parent
    return [f"-L{directory}", f"-Wl,-rpath,{directory}", f"-l{SIM_LIBRARY}"]


def _relative(path: Path, root: Path) -> str:
    for base in (root, ROOT):
        if path.is_relative_to(base):
            return str(path.relative_to(base))
    return str(path)


def compile_all(units: Sequence[Unit], jobs: int | None = None, progress: Progress | None = None) -> list[Path]:
    """Outputs of all units, compiled in parallel.

    The first error wins, in the order of the units, so that a message does not depend on timing.
    """
    from concurrent.futures import ThreadPoolExecutor

    compiler = find()
    if progress:
        progress.expect(len(units))

    def one(unit: Unit) -> Path:
        path, _ = compile_unit(unit, compiler)
        if progress:
            progress.done(unit.label)
        return path

    with ThreadPoolExecutor(max_workers=jobs or os.cpu_count() or 1) as pool:
        futures = [pool.submit(one, unit) for unit in units]
        try:
            return [future.result() for future in futures]
        except BuildError:
            for future in futures:
                future.cancel()
            raise
