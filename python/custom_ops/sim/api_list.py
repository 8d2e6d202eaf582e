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
import textwrap
from collections.abc import Iterable
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
_REFUSED = "not_modelled.h"  # declares APIs only to refuse them
_REGISTER = "MicroAPI::"
_HIDDEN = {"detail", "Detail", "internal", "impl", "Impl", "regimpl"}
# Public only because the simulator's own headers need them.
_INTERNAL = {
    "Address", "AsOperand", "Bind", "Bit", "BufferBytes", "Bytes", "GetState", "GlobalTensor::End", "Host", "IfRegisters", "IfScalar",
    "IsRegister", "LocalTensor::End", "Low", "Rebind", "SetBit", "Settle", "Slots", "TBufState", "Where",
}  # fmt: skip
_CUBE = re.compile(r"matmul|loadimage|initconstvalue|gemm|conv[23]d", re.IGNORECASE)
_NEAREST, _SIMILAR = 5, 0.6  # how many similar names a message shows, and from which difflib ratio on


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


def missing(name: str, arch: str, member: bool = False) -> str:
    """Sentence for a name that `arch` does not have: a free function, type or macro, or a member of a class."""
    elsewhere = [api for api in modelled() if _short(api) == name and _is_member(api) == member and arch not in api.arches]
    if elsewhere:
        return f"{name} is modelled for {elsewhere[0].arches[0]} only, this is the {arch} build"
    return _sentence(name, nearest(name, [a for a in listed(arch, member) if (a.kind == "macro") == name.isupper()]))


def missing_header(name: str) -> str:
    from . import compiler

    include = compiler.KERNEL_INCLUDES[0]
    known = sorted(str(p.relative_to(include)) for p in include.rglob("*.h"))
    text = _sentence(f'header "{name}"', [])
    return _filled(f"{text}; modelled are: {', '.join(k for k in known if not k.startswith('ascendc/'))}")


def everything(arch: str, member: bool) -> str:
    """Sentence with all names `arch` has: of free functions, types and macros, or of members."""
    what = "members of classes" if member else "APIs"
    return _filled(f"{what} modelled for {arch}: {', '.join(api.name for api in listed(arch, member))}")


def listed(arch: str, member: bool) -> list[Api]:
    return [api for api in modelled() if arch in api.arches and _is_member(api) == member
            and not api.name.startswith(("DT_", "FORMAT_"))]


def nearest(name: str, apis: Iterable[Api]) -> list[str]:
    """Full names of the most similar APIs, best first; empty when none is similar."""
    def ratio(api: Api) -> float:
        return difflib.SequenceMatcher(None, name.lower(), _short(api).lower()).ratio()

    close = sorted((-ratio(api), api.name) for api in apis if ratio(api) >= _SIMILAR)
    return list(dict.fromkeys(full for _, full in close))[:_NEAREST]


def _short(api: Api) -> str:
    return api.name.split("::")[-1]


def _is_member(api: Api) -> bool:
    return "::" in api.name.removeprefix(_REGISTER)


def _sentence(what: str, near: list[str]) -> str:
    if _CUBE.search(what):
        return f"{what} is not modelled by the simulator: of the cube, LoadData, Mmad, Fixpipe and Matmul (lib/matmul_intf.h) are"
    return f"{what} is not modelled by the simulator" + (f"; nearest: {', '.join(near)}" if near else "")


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _scan(tool, include: Path, files: list[Path]) -> list[Api]:
    found: dict[tuple[str, str], tuple[str, set[str]]] = {}
    for arch, macros in ARCHES.items():
        command = [*tool.command, "-std=c++17", "-E", *(f"-D{m}" for m in macros), f"-I{include}",
                   f"-I{include.parents[2]}", "-x", "c++", "-"]
        done = subprocess.run(command, input='#include "kernel_operator.h"\n#include "lib/matmul_intf.h"\n', capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C"})
        if done.returncode:
            from ..errors import BuildError
            raise BuildError(f"the simulator's headers do not preprocess:\n{done.stderr}", output=done.stderr,
                             command=command)
        for declared in _with_inherited([d for header, text in _own_text(done.stdout, include) for d in _declarations(header, text)]):
            if declared.path[0] == "AscendC":
                found.setdefault((declared.kind, _name(declared.path)), (declared.header, set()))[1].add(arch)
    for path in files:
        for name in _DEFINE.findall(path.read_text()):
            if not name.startswith(("SIM_", "REG_", "CUSTOM_OPS_", "_")) and not name.endswith("_H"):
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
            own = path.is_relative_to(include) and path.name != _REFUSED
            current = pieces.setdefault(str(path.relative_to(include)), []) if own else None
        elif current is not None:
            current.append(line)
    return [(header, "\n".join(lines)) for header, lines in pieces.items()]


@dataclass
class _Scope:
    kind: str            # namespace | class | body
    name: str = ""
    public: bool = True
    bases: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Declared:
    kind: str                # function | type
    path: tuple[str, ...]    # from the outermost namespace
    header: str
    bases: tuple[str, ...] = ()


def _name(path: tuple[str, ...]) -> str:
    path = path[1:]
    return _REGISTER + "::".join(path[1:]) if path[0] == "Reg" else "::".join(path)


def _with_inherited(declared: list[_Declared]):
    """`declared`, and once more under its own name what a class has from its bases."""
    members: dict[tuple[str, ...], list[_Declared]] = {}
    for d in declared:
        members.setdefault(d.path[:-1], []).append(d)
    classes = {d.path[-1]: d for d in declared if d.kind == "type"}

    def inherited(of: _Declared):
        for base in of.bases:
            if (known := classes.get(base)) is not None:
                yield from members.get(known.path, [])
                yield from inherited(known)

    for d in declared:
        yield d
        for member in inherited(d):
            yield _Declared(member.kind, (*d.path, member.path[-1]), member.header)


def _declarations(header: str, text: str):
    """What namespaces and the public parts of classes declare."""
    scopes: list[_Scope] = []
    statement: list[str] = []
    for token in _TOKEN.findall(text):
        if token == "{":
            scope = _scope(statement)
            yield from _named(header, statement, scopes, scope)
            scopes.append(scope)
            statement = []
        elif token == "}":
            if scopes:
                scopes.pop()
            statement = []
        elif token == ";":
            yield from _named(header, statement, scopes, None)
            statement = []
        elif token == ":" and scopes and len(statement) == 1 and statement[0] in ("public", "private", "protected"):
            scopes[-1].public = statement[0] == "public"
            statement = []
        else:
            statement.append(token)


def _scope(statement: list[str]) -> _Scope:
    if "namespace" in statement:
        return _Scope("namespace", "".join(statement[statement.index("namespace") + 1:]))
    depth = 0
    for position, token in enumerate(statement):
        depth += (token == "<") - (token == ">")
        if depth == 0 and token in ("class", "struct", "enum", "union"):
            rest = [t for t in statement[position + 1:] if t not in ("class", "struct")]
            if "(" not in rest and rest:
                return _Scope("class", rest[0], public=token != "class", bases=_bases(rest))
    return _Scope("body")


def _bases(head: list[str]) -> tuple[str, ...]:
    """Names of the public bases in `Matmul : public sim::matmul::Setters<A, B>`, without namespaces and arguments."""
    names, depth, public = [], 0, False
    for token, following in zip(head, [*head[1:], ""], strict=True):
        depth += (token == "<") - (token == ">")
        if token in ("public", "private", "protected"):
            public = token == "public"
        elif public and depth == 0 and token.isidentifier() and following != "::":
            names.append(token)
            public = False
    return tuple(names)


def _named(header: str, statement: list[str], scopes: list[_Scope], opens: _Scope | None):
    if not scopes or any(scope.kind == "body" or not scope.public for scope in scopes):
        return
    path = [part for scope in scopes for part in scope.name.split("::")]
    if _HIDDEN & set(path):
        return
    name, kind = "", "function"
    if opens and opens.kind == "class":
        name, kind = opens.name, "type"
    elif "using" in statement and "=" in statement:
        name, kind = statement[statement.index("using") + 1], "type"   # of a template as well: its parameters come before
    elif not opens or opens.kind == "body":
        name = _function_name(statement)
    hidden = name in _INTERNAL or f"{path[-1]}::{name}" in _INTERNAL or name.endswith("Lanes") or name == path[-1]
    if name[:1].isupper() and len(name) > 1 and not hidden:
        yield _Declared(kind, (*path, name), header, opens.bases if opens and opens.kind == "class" else ())


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
