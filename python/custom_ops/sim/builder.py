"""Builds an op folder (op_host/, op_kernel/) into an op package:

    <package>/op_host/libcust_opmaster.so            OpDef, inference and tiling
    <package>/op_api/lib/libcust_opapi.so            generated aclnn functions
    <package>/op_api/include/aclnn_<op>.h
    <package>/kernel/<arch>/<file>_<column>.so       one per dtype column; arch is membase or regbase
    <package>/op_info.json

Every compiled file is a cached unit; a package is a copy of its units, named by what it is made of.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import _paths
from ..errors import BuildError
from . import aclnn_codegen, cache, compiler, kernel_source, opinfo, runtime, sources
from .api_list import ARCHES
from .compiler import Unit
from .names import nearest
from .opinfo import OpInfo
from .progress import Progress

_SKIPPED = {"op_api", "tests", "test", "ut", "st", "build", "examples"}


@dataclass(frozen=True)
class Package:
    """A built op package and the sources it came from."""

    path: Path
    root: Path                    # the op folder
    arch: str
    ops: dict[str, OpInfo]        # by OpType
    kernels: dict[str, Path]      # kernel source by OpType

    @property
    def opapi(self) -> Path:
        return self.path / "op_api" / "lib" / "libcust_opapi.so"


def build_package(path, soc: str, ops: Sequence[str] | None = None, jobs: int | None = None,
                  progress: bool | None = None, title: str | None = None) -> Package:
    """Compiles what the package of `soc` needs. `ops` limits it to some operators, by OpType or in snake case.

    `progress` is the `enabled` of progress.Progress. With a `title`, that is said also where stderr is no terminal.
    """
    root = Path(path).expanduser().resolve()
    family = runtime.find_soc(soc)["family"]
    arch = runtime.arch(soc)
    hosts = _host_sources(root)
    whose = "its operators" if root == _paths.SOURCE_ROOT else root.name
    with Progress(title or f"building {whose} for the simulated {family}", progress, line=title is not None) as shown:
        return _build(root, hosts, family, arch, ops, jobs, shown)


def _build(root: Path, hosts: list[Path], family: str, arch: str, ops: Sequence[str] | None, jobs: int | None, shown: Progress) -> Package:
    master = _compile_host(root, hosts, jobs, shown)
    known = {op.type: op for op in opinfo.parse(_describe(master))}
    if not known:
        raise BuildError(f"{root / 'op_host'} registers no operator: OP_ADD(<OpType>) is missing")
    chosen = _choose(known, ops, family, root)
    kernels = {op.type: _kernel_source(root, op, family) for op in chosen}
    units, places = [_opapi_unit(root, chosen)], ["op_api/lib/libcust_opapi.so"]
    for op in chosen:
        for column in op.columns(family):
            units.append(_kernel_unit(root, op, kernels[op.type], arch, column))
            places.append(f"kernel/{arch}/{op.config(family).file}_{column}.so")
    built = compiler.compile_all(units, jobs, shown)
    files = {"op_host/libcust_opmaster.so": master, **dict(zip(places, built, strict=True))}
    return Package(_assemble(files, chosen, root.name), root, arch, {op.type: op for op in chosen}, kernels)


def export(packages: Sequence[Package], output: Path) -> None:
    """One package in `output` of those that one op folder gives for several SoCs: every operator and every kernel of any of them.

    An operator may be configured for some of the SoCs only, so each package alone has its own list of operators.
    """
    ops = {name: op for package in packages for name, op in package.ops.items()}
    for package in packages:
        shutil.copytree(package.path, output, dirs_exist_ok=True)
    opapi, _ = compiler.compile_unit(_opapi_unit(packages[0].root, list(ops.values())))
    shutil.copyfile(opapi, output / "op_api" / "lib" / "libcust_opapi.so")
    (output / "op_info.json").write_text(_info(list(ops.values())))


def _host_sources(root: Path) -> list[Path]:
    if not (root / "op_host").is_dir() or not (root / "op_kernel").is_dir():
        lacking = " and ".join(f"{n}/" for n in ("op_host", "op_kernel") if not (root / n).is_dir())
        reason = f"it has no {lacking}" if root.is_dir() else "there is no such folder"
        raise BuildError(f"{root} is not an op folder (op_host/ and op_kernel/): {reason}")
    found = [p for pattern in ("*.cpp", "*/*.cpp") for p in sorted((root / "op_host").glob(pattern))
             if p.parent.name not in _SKIPPED]
    if not found:
        raise BuildError(f"{root / 'op_host'} holds no .cpp file")
    return found


def _compile_host(root: Path, hosts: list[Path], jobs: int | None, shown: Progress) -> Path:
    includes = (*compiler.HOST_INCLUDES, root, root / "op_host", root / "op_kernel")
    units = [Unit(str(p.relative_to(root)), root, source=p, includes=includes, shared=False) for p in hosts]
    objects = compiler.compile_all(units, jobs, shown)
    return compiler.compile_unit(Unit("libcust_opmaster.so", root, objects=tuple(objects)))[0]


def _describe(master: Path) -> str:
    """The description is cached beside the library, so that a later build does not load it."""
    simulator = _paths.library(compiler.SIM_LIBRARY).stat()
    key = cache.key_of(["describe", master.name, str(simulator.st_size), str(simulator.st_mtime_ns)])
    path, _ = cache.obtain("units", key + ".info.json", lambda p: p.write_text(runtime.describe_host_library(master)))
    return path.read_text()


def _choose(known: dict[str, OpInfo], ops: Sequence[str] | None, family: str, root: Path) -> list[OpInfo]:
    types = {op.snake: op.type for op in known.values()} | {name: name for name in known}
    for name in ops or ():
        if name not in types:
            raise ValueError(f"{root} has no operator {name!r}; it has {nearest(name, known)}")
    ops = None if ops is None else [types[name] for name in ops]
    chosen = [op for op in known.values() if ops is None or op.type in ops]
    fitting = [op for op in chosen if op.config(family)]
    if not fitting or (ops is not None and len(fitting) < len(chosen)):
        lacking = [op for op in chosen if op not in fitting]
        lists = "; ".join(f"{op.type}: {', '.join(op.socs) or 'none'}" for op in lacking)
        raise BuildError(f"no AddConfig for {family} in the OpDef, configured are {lists}")
    for op in fitting:
        unmodelled = [p.name for p in (*op.inputs, *op.outputs) if p.dynamic]
        unmodelled += [a.name for a in op.attrs if a.type not in aclnn_codegen.ATTRIBUTES]
        if unmodelled:
            raise BuildError(f"{op.type}: {', '.join(unmodelled)}: dynamic (list) tensors and ListListInt attributes are "
                             f"not modelled by the simulator")
    return fitting


def _kernel_source(root: Path, op: OpInfo, family: str) -> Path:
    name = op.config(family).file + ".cpp"
    for pattern in (name, f"*/{name}"):
        if found := sorted((root / "op_kernel").glob(pattern)):
            return found[0]
    there = [p.name for p in (root / "op_kernel").rglob("*.cpp")]
    raise BuildError(f"{op.type}: no kernel {name} under {root / 'op_kernel'}; found {nearest(name, there)}")


def _opapi_unit(root: Path, ops: list[OpInfo]) -> Unit:
    headers = {aclnn_codegen.header_name(op): aclnn_codegen.header(op) for op in ops}
    return Unit("libcust_opapi.so", root, text=aclnn_codegen.implementation(ops), headers=headers,
                includes=compiler.API_INCLUDES, c_only=True)


def _kernel_unit(root: Path, op: OpInfo, kernel: Path, arch: str, column: int) -> Unit:
    relative = kernel.relative_to(root)
    entries = sources.entries(kernel.read_text())
    if not entries:
        raise BuildError(f"{relative} has no entry: extern \"C\" __global__ __aicore__ void {op.snake}(...)")
    entry = next((e for e in (op.snake, kernel.stem) if e in entries), None)
    if entry is None:
        raise BuildError(f"{relative} has no entry {op.snake}(...); it has {nearest(op.snake, entries)}")
    dtypes = " ".join(p.dtype(column).name for p in op.inputs)
    return Unit(f"{relative} [{arch}, column {column}: {dtypes}]", root,
                text=kernel_source.text(kernel_source.column_defines(op, column), str(relative),
                                       kernel_source.only_entry(entry), op.tiling_classes),
                includes=(root, *compiler.KERNEL_INCLUDES, kernel.parent), defines=ARCHES[arch], kernel=True)


def _assemble(files: dict[str, Path], ops: list[OpInfo], name: str) -> Path:
    headers = {f"op_api/include/{aclnn_codegen.header_name(op)}": aclnn_codegen.header(op) for op in ops}
    key = cache.key_of([part for place, unit in sorted(files.items()) for part in (place, unit.name)])
    prefix = re.sub(r"\W+", "_", name)[:40]

    def make(package: Path) -> None:
        for place, unit in files.items():
            target = package / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(unit, target)  # not a link: libraries are told apart by inode when they are loaded
        for place, text in headers.items():
            (package / place).parent.mkdir(parents=True, exist_ok=True)
            (package / place).write_text(text)
        (package / "op_info.json").write_text(_info(ops))

    return cache.obtain("packages", f"{prefix}-{key}", make)[0]


def _info(ops: list[OpInfo]) -> str:
    return "[" + ",\n".join(op.json() for op in ops) + "]\n"
