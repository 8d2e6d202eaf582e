"""Turns what the compiler printed into a BuildError that names the AscendC APIs the simulator lacks."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..errors import BuildError, CompileError
from . import api_list

_ERROR = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.*)$", re.MULTILINE)
_CALLED_FROM = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)?\s+(?:required from here|note: in instantiation)",
                          re.MULTILINE)
_NOT_MODELLED = re.compile(r"AscendC API not modelled: (\w+)")  # sim/ascendc/include/ascendc/not_modelled.h
_LINK_ERROR = re.compile(r"undefined reference to [`'](?P<name>.+)'")
# What g++ and clang++ say about a name they do not know. Group 1 is the name.
_UNKNOWN = tuple(re.compile(p) for p in (
    r"^(\w+) is not modelled$",
    r"['‘](\w+)['’] was not declared in this scope",
    r"['‘](\w+)['’] is not a member of ['‘]AscendC",
    r"['‘](\w+)['’] in namespace ['‘]AscendC.*?['’] does not name",
    r"['‘](\w+)['’] does not name a (?:template )?type",
    r"there are no arguments to ['‘](\w+)['’] that depend",
    r"['‘](\w+)['’] has not been declared",
    r"has no member named ['‘](\w+)['’]",
    r"use of undeclared identifier ['‘](\w+)['’]",
    r"no (?:template |type |member )?named ['‘](\w+)['’]",
    r"unknown type name ['‘](\w+)['’]",
))
_MISSING_HEADER = re.compile(r"^(\S+): No such file or directory|['‘](\S+)['’] file not found")
_SHOWN = 5


def build_error(unit, output: str, command: list[str]) -> BuildError:
    errors = list(dict.fromkeys(_parse(match, output, unit.root) for match in _ERROR.finditer(output)))
    if not errors:
        missing = list(dict.fromkeys(m["name"] for m in _LINK_ERROR.finditer(output)))
        errors = [CompileError("", 0, f"undefined: {name}") for name in missing]
    if not errors:
        errors = [CompileError("", 0, line) for line in output.strip().splitlines()[-3:]] or [
            CompileError("", 0, "the compiler gave no message")]
    hints = _hints(errors, unit) if unit.kernel else []
    lines = [f"{unit.label} does not compile:"]
    lines += [f"  {error}" for error in errors[:_SHOWN]]
    if len(errors) > _SHOWN:
        lines.append(f"  ... and {len(errors) - _SHOWN} more")
    lines += [text for _, text in hints]
    return BuildError("\n".join(lines), errors=errors, unmodelled=[name for name, _ in hints], output=output,
                      command=command)


def _parse(match: re.Match, output: str, root: Path) -> CompileError:
    """Errors inside the simulator's templates are shown where the user's code led to them."""
    place = match
    if f"{os.sep}sim{os.sep}ascendc{os.sep}" in match["file"]:
        before = list(_CALLED_FROM.finditer(output, 0, match.start()))   # g++ says it first
        after = _CALLED_FROM.search(output, match.end())                 # clang++ after it
        place = before[-1] if before else after or match
    path = Path(place["file"])
    shown = path.relative_to(root) if path.is_relative_to(root) else path.name if "tmp-" in str(path) else path
    api = _NOT_MODELLED.search(match["message"])
    return CompileError(str(shown), int(place["line"]), f"{api[1]} is not modelled" if api else match["message"])


def _hints(errors: list[CompileError], unit) -> list[tuple[str, str]]:
    """(name, sentence) for every unknown name that can only be meant for the AscendC API."""
    found: dict[str, str] = {}
    for error in errors:
        if header := _MISSING_HEADER.search(error.message):
            name = header[1] or header[2]
            found.setdefault(name, api_list.missing_header(name))
            continue
        name = next((m[1] for p in _UNKNOWN if (m := p.search(error.message))), None)
        if name and _looks_like_an_api(name, error.message):
            arch = "regbase" if "__NPU_ARCH__=3510" in unit.defines else "membase"
            found.setdefault(name, api_list.missing(name, arch, "has no member" in error.message,
                                                       shown=5 if found else None))
    return list(found.items())


def _looks_like_an_api(name: str, message: str) -> bool:
    # APIs are CamelCase or MACRO_CASE and so differ from locals; what the compiler looked for in AscendC is meant for it.
    return name[0].isupper() or "AscendC" in message or name.startswith("__")
