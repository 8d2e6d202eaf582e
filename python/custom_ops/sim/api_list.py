"""Which AscendC APIs the simulator models, read from its own headers.

The compiler's preprocessor expands them (families of APIs come from macros), then namespace-level declarations are
collected. The result is cached like every compiled unit.
"""

from __future__ import annotations

import difflib
import functools
import json
import os
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from . import cache

ARCHES = {
    "membase": ("__NPU_ARCH__=2201", "__CCE_AICORE__=220", "__DAV_C220_VEC__", "__DAV_VEC__"),
    "regbase": ("__NPU_ARCH__=3510", "__CCE_AICORE__=310", "__DAV_C310__", "__DAV_C310_VEC__", "__DAV_VEC__"),
}

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\w+|::|[{}();=<>]|[^\s\w]')
_MARKER = re.compile(r'^# (\d+) "([^"]*)"')
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Z_]\w+)", re.MULTILINE)
_HIDDEN = {"detail", "Detail", "internal", "impl", "Impl"}


@dataclass(frozen=True)
class Api:
    name: str     # "Add", "TPipe::InitBuffer", "MicroAPI::Add", "GET_TILING_DATA"
    kind: str     # function | type | macro
    header: str   # "ascendc/vec_binary.h"
    arches: tuple[str, ...]


@functools.cache
def modelled() -> tuple[Api, ...]:
    """Every API a kernel can name, sorted."""
    from . import compiler

    tool = compiler.find()
    include = compiler.KERNEL_INCLUDES[0]
    files = sorted(include.rglob("*.h"))
    parts: list[str | bytes] = ["apis", tool.identity, Path(__file__).read_bytes()]
    for path in files:
        parts += [str(path.relative_to(include)), path.read_bytes()]

    def make(output: Path) -> None:
        output.write_text(json.dumps([asdict(api) for api in _scan(tool, include, files)]))

    path, _ = cache.obtain("units", cache.key_of(parts) + ".apis.json", make)
    return tuple(Api(**{**row, "arches": tuple(row["arches"])}) for row in json.loads(path.read_text()))


def names(arch: str | None = None) -> list[str]:
    return [api.name for api in modelled() if arch is None or arch in api.arches]


def missing(name: str, arch: str) -> str:
    """Sentence for a name that `arch` does not have."""
    known = names(arch)
    elsewhere = [api for api in modelled() if api.name.split("::")[-1] == name and arch not in api.arches]
    if elsewhere:
        return f"{name} is modelled for {elsewhere[0].arches[0]} only, this is the {arch} build"
    shorts = {}
    for full in known:
        shorts.setdefault(full.split("::")[-1], full)
    return f"{name} is not modelled by the simulator; modelled are: {_nearest(name, list(shorts), shorts)}"


def missing_header(name: str) -> str:
    from . import compiler

    include = compiler.KERNEL_INCLUDES[0]
    known = [str(p.relative_to(include)) for p in sorted(include.rglob("*.h"))]
    public = [k for k in known if not k.startswith("ascendc/")]
    return f'header "{name}" is not modelled by the simulator; modelled are: {_nearest(name, public, {})}'


def _nearest(name: str, known: list[str], full: dict[str, str], shown: int = 12) -> str:
    def score(candidate: str) -> float:
        ratio = difflib.SequenceMatcher(None, name.lower(), candidate.lower()).ratio()
        return ratio + (0.3 if candidate.lower().startswith(name.lower()[:4]) else 0.0)

    ranked = [full.get(k, k) for k in sorted(known, key=lambda k: (-score(k), k))]
    rest = len(ranked) - shown
    return ", ".join(ranked[:shown]) + (f" ... and {rest} more (custom-ops sim apis)" if rest > 0 else "")


def _scan(tool, include: Path, files: list[Path]) -> list[Api]:
    found: dict[tuple[str, str], tuple[str, set[str]]] = {}
    for arch, macros in ARCHES.items():
        command = [*tool.command, "-std=c++17", "-E", *(f"-D{m}" for m in macros), f"-I{include}",
                   f"-I{include.parents[2]}", "-x", "c++", "-"]
        done = subprocess.run(command, input='#include "kernel_operator.h"\n', capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C"})
        if done.returncode:
            from ..errors import BuildError
            raise BuildError(f"the simulator's headers do not preprocess:\n{done.stderr}", output=done.stderr,
                             command=command)
        for header, text in _own_text(done.stdout, include):
            for kind, name in _declarations(text):
                found.setdefault((kind, name), (header, set()))[1].add(arch)
    for path in files:
        for name in _DEFINE.findall(path.read_text()):
            if not name.startswith(("SIM_", "_")) and not name.endswith("_H"):
                found.setdefault(("macro", name), (str(path.relative_to(include)), set()))[1].update(ARCHES)
    return [Api(name, kind, header, tuple(a for a in ARCHES if a in arches))
            for (kind, name), (header, arches) in sorted(found.items(), key=lambda item: (item[0][1], item[0][0]))]


def _own_text(preprocessed: str, include: Path):
    """(header, text) of the parts that come from the simulator's kernel headers, in one piece per header."""
    pieces: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in preprocessed.splitlines():
        if marker := _MARKER.match(line):
            path = Path(os.path.normpath(marker[2]))
            own = path.is_relative_to(include)
            current = pieces.setdefault(str(path.relative_to(include)), []) if own else None
        elif current is not None:
            current.append(line)
    return [(header, "\n".join(lines)) for header, lines in pieces.items()]


def _declarations(text: str):
    """(kind, name) of what namespace AscendC and the classes in it declare."""
    scopes: list[tuple[str, str]] = []   # ("namespace" | "class" | "body", name)
    statement: list[str] = []
    for token in _TOKEN.findall(text):
        if token == "{":
            scope = _scope(statement)
            yield from _named(statement, scopes, scope)
            scopes.append(scope)
            statement = []
        elif token == "}":
            if scopes:
                scopes.pop()
            statement = []
        elif token == ";":
            yield from _named(statement, scopes, None)
            statement = []
        else:
            statement.append(token)


def _scope(statement: list[str]) -> tuple[str, str]:
    if "namespace" in statement:
        return "namespace", "".join(statement[statement.index("namespace") + 1:])
    depth = 0
    for position, token in enumerate(statement):
        depth += (token == "<") - (token == ">")
        if depth == 0 and token in ("class", "struct", "enum", "union"):
            rest = [t for t in statement[position + 1:] if t not in ("class", "struct")]
            if "(" not in rest and rest:
                return "class", rest[0]
    return "body", ""


def _named(statement: list[str], scopes: list[tuple[str, str]], opens: tuple[str, str] | None):
    if not scopes or any(kind == "body" for kind, _ in scopes):
        return
    path = [part for kind, name in scopes for part in name.split("::")]
    if path[0] != "AscendC" or _HIDDEN & set(path):
        return
    prefix = "::".join(path[1:]).replace("Reg", "MicroAPI", 1) if path[1:2] == ["Reg"] else "::".join(path[1:])
    name, kind = "", "function"
    if opens and opens[0] == "class":
        name, kind = opens[1], "type"
    elif "using" in statement and "=" in statement:
        name, kind = statement[statement.index("=") - 1], "type"
    elif not opens or opens[0] == "body":
        name = _function_name(statement)
    if name and name[0].isupper() and (not path[1:] or name != path[-1]):
        yield kind, f"{prefix}::{name}" if prefix else name


def _function_name(statement: list[str]) -> str:
    depth = 0
    for position, token in enumerate(statement):
        depth += (token == "<") - (token == ">")
        if token == "=" and depth == 0:
            return ""
        if token == "(" and depth == 0:
            previous = statement[position - 1] if position else ""
            return previous if re.fullmatch(r"[A-Za-z_]\w*", previous) and position > 1 else ""
    return ""
