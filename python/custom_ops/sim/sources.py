"""What a translation unit is made of: the closure of its `#include`s, and the entry functions it declares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"__global__[\w\s]*?\bvoid\s+(\w+)\s*\(([^)]*)\)")


def closure(source: Path, include_dirs: list[Path], seen: dict[Path, bytes] | None = None) -> dict[Path, bytes]:
    """Contents of `source` and of all files it can include, by path. Conditionals are not evaluated: a superset.

    Headers outside of `include_dirs` and of the including file's directory belong to the system and are left out; the
    compiler's version stands for them.
    """
    seen = {} if seen is None else seen
    source = source.resolve()
    if source in seen:
        return seen
    seen[source] = source.read_bytes()
    for quote, name in _INCLUDE.findall(seen[source]):
        places = ([source.parent] if quote == b'"' else []) + include_dirs
        for place in places:
            candidate = place / name.decode()
            if candidate.is_file():
                closure(candidate, include_dirs, seen)
                break
    return seen


def without_comments(text: str) -> str:
    return _COMMENT.sub(" ", text)


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str

    @property
    def is_pointer(self) -> bool:
        return "GM_ADDR" in self.type or "*" in self.type


def entries(text: str) -> dict[str, list[Parameter]]:
    """Kernel entry functions (`__global__ ... void name(...)`) of a source, with their parameters."""
    found: dict[str, list[Parameter]] = {}
    for name, parameters in _ENTRY.findall(without_comments(text)):
        found[name] = []
        for declaration in filter(None, (" ".join(p.split()) for p in parameters.split(","))):
            match = re.fullmatch(r"(.+?)\s*(\w+)", declaration)
            kind, parameter = match.groups() if match else (declaration, "")
            found[name].append(Parameter(parameter, kind.strip()))
    return found
