"""Turns what the compiler printed into a BuildError that names the AscendC APIs the simulator lacks."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from .. import _paths
from ..errors import BuildError, CompileError
from . import abi, api_list

_ERROR = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.*)$", re.MULTILINE)
_CALLED_FROM = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)?\s+(?:required from|note: in instantiation)",
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
    if abi.PREFIX in output:
        return BuildError(f"{unit.label}: {_paths.library('custom_ops_sim')} was built from other headers than those in "
                          f"{_paths.SOURCE_ROOT / 'sim'}: {_paths.REBUILD}", output=output, command=command)
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
    lines += [hint.text for hint in hints]
    lines += [api_list.everything(_arch(unit), member) for member in (False, True) if member in {h.member for h in hints}]
    return BuildError("\n".join(lines), errors=errors, unmodelled=[hint.name for hint in hints], output=output,
                      command=command)


def _parse(match: re.Match, output: str, root: Path) -> CompileError:
    """Errors inside the simulator's templates are shown where the user's code led to them."""
    place = match
    if _ours(match):
        chain = max(output.rfind("In instantiation of", 0, match.start()), 0)  # g++ says it first, clang++ after it
        callers = [*_CALLED_FROM.finditer(output, chain, match.start()), *_CALLED_FROM.finditer(output, match.end())]
        place = next((caller for caller in callers if not _ours(caller)), match)
    path = Path(place["file"])
    shown = path.relative_to(root) if path.is_relative_to(root) else path.name if "tmp-" in str(path) else path
    api = _NOT_MODELLED.search(match["message"])
    return CompileError(str(shown), int(place["line"]), f"{api[1]} is not modelled" if api else match["message"])


def _ours(place: re.Match) -> bool:
    return f"{os.sep}sim{os.sep}ascendc{os.sep}" in place["file"]


@dataclass(frozen=True)
class _Hint:
    """What is said about an unknown name that can only be meant for the AscendC API."""

    name: str
    text: str
    member: bool | None  # of a class; None for headers


def _hints(errors: list[CompileError], unit) -> list[_Hint]:
    found: dict[str, _Hint] = {}
    for error in errors:
        if header := _MISSING_HEADER.search(error.message):
            name = header[1] or header[2]
            found.setdefault(name, _Hint(name, api_list.missing_header(name), None))
            continue
        name = next((m[1] for p in _UNKNOWN if (m := p.search(error.message))), None)
        if name and _looks_like_an_api(name, error.message):
            member = "has no member" in error.message
            found.setdefault(name, _Hint(name, api_list.missing(name, _arch(unit), member), member))
    return list(found.values())


def _arch(unit) -> str:
    return "regbase" if "__NPU_ARCH__=3510" in unit.defines else "membase"


def _looks_like_an_api(name: str, message: str) -> bool:
    # APIs are CamelCase or MACRO_CASE and so differ from locals; what the compiler looked for in AscendC is meant for it.
    return name[0].isupper() or "AscendC" in message or name.startswith("__")
