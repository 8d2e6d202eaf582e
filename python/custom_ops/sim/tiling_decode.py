"""Raw tiling bytes -> {field: value}.

Macro-declared classes describe themselves. A plain struct is read from the header that the kernel and the host share:
fixed-width fields, arrays with constant bounds, nested structs, natural alignment.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

from .opinfo import TilingClass
from .sources import without_comments

C_TYPES: dict[str, Any] = {
    "int8_t": ctypes.c_int8, "uint8_t": ctypes.c_uint8, "char": ctypes.c_char, "bool": ctypes.c_bool,
    "int16_t": ctypes.c_int16, "uint16_t": ctypes.c_uint16, "short": ctypes.c_short,
    "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int": ctypes.c_int, "unsigned": ctypes.c_uint,
    "unsigned int": ctypes.c_uint, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "long": ctypes.c_long,
    "size_t": ctypes.c_size_t, "float": ctypes.c_float, "double": ctypes.c_double,
}

_STRUCT = re.compile(r"\b(?:struct|class)\s+(?:alignas\s*\(\s*\d+\s*\)\s*)?(\w+)\s*(?:final\s*)?\{")
_CONSTANT = re.compile(r"\bconstexpr\s+(?:static\s+)?[\w:]+\s+(\w+)\s*=\s*([^;]+);|#\s*define\s+(\w+)\s+(\d+\w*)")
_FIELD = re.compile(r"^(?:const\s+)?(unsigned int|[\w:]+)\s+(.+)$", re.DOTALL)
_DECLARATOR = re.compile(r"^(\w+)\s*((?:\[[^\]]+\]\s*)*)(?:=.*|\{.*\})?$", re.DOTALL)
_NAMED_BY_KERNEL = re.compile(
    r"\b(?:REGISTER_TILING_DEFAULT\s*\(\s*([\w:]+)|GET_TILING_DATA_WITH_STRUCT\s*\(\s*([\w:]+)|"
    r"REGISTER_TILING_FOR_TILINGKEY\s*\(\s*\"([^\"]*)\"\s*,\s*([\w:]+))")


def structs(text: str, known: dict[str, type[ctypes.Structure]] | None = None) -> dict[str, type[ctypes.Structure]]:
    """The plain structs a header defines, as ctypes structures; `known`: those of other headers. What is not plain data is left out."""
    text = without_comments(text)
    constants = _constants(text)
    found: dict[str, type[ctypes.Structure]] = {}
    for match in _STRUCT.finditer(text):
        fields = _fields(_body(text, match.end()), {**(known or {}), **found}, constants)
        if fields:
            found[match[1]] = type(match[1], (ctypes.Structure,), {"_fields_": fields})
    return found


def struct_for(kernel_text: str, tiling_key: int, known: dict[str, type[ctypes.Structure]], size: int):
    """The struct the kernel reads for a tiling key; without a word from the kernel, the only one of the right size."""
    named, default = [], []
    for match in _NAMED_BY_KERNEL.finditer(without_comments(kernel_text)):
        if match[4]:
            if _key_matches(match[3], tiling_key):
                named.append(match[4])
        else:
            default.append(match[1] or match[2])
    candidates = [known[name] for name in (n.split("::")[-1] for n in named + default) if name in known]
    candidates += [s for s in known.values() if ctypes.sizeof(s) == size]
    return next((s for s in candidates if ctypes.sizeof(s) <= size), None)


def decode_struct(structure: type[ctypes.Structure], data: bytes) -> dict[str, Any]:
    return to_dict(structure.from_buffer_copy(data[:ctypes.sizeof(structure)]))


def decode_class(chosen: TilingClass, data: bytes) -> dict[str, Any]:
    """By the reflection of a macro-declared class."""
    values: dict[str, Any] = {}
    for field in chosen.fields:
        if field.nested:
            values[field.name] = decode_class(field.nested, data[field.offset:field.offset + field.nested.bytes])
        else:
            kind = C_TYPES[field.type] * field.count
            items = to_dict(kind.from_buffer_copy(data, field.offset))
            values[field.name] = items if field.count > 1 else items[0]
    return values


def to_dict(value: Any) -> Any:
    if isinstance(value, ctypes.Structure):
        return {name: _plain(kind, getattr(value, name)) for name, kind, *_ in value._fields_}
    return [_plain(value._type_, item) for item in value]


def shortest(value: float) -> float:
    """The float64 with the fewest digits that rounds to the float32 `value`: 1e-06, not 9.999999974752427e-07."""
    candidates = (float(f"{value:.{digits}g}") for digits in range(6, 9))
    return next((c for c in candidates if ctypes.c_float(c).value == value), value)


def _plain(kind: Any, value: Any) -> Any:
    if isinstance(value, (ctypes.Structure, ctypes.Array)):
        return to_dict(value)
    if kind is ctypes.c_float:
        return shortest(value)
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _key_matches(expression: str, key: int) -> bool:
    python = expression.replace("&&", " and ").replace("||", " or ").replace("TILING_KEY_VAR", str(key))
    python = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", python)
    if not re.fullmatch(r"[\d\s()<>=!%&|+\-*andor]*", python):
        return False
    try:
        return bool(eval(python, {"__builtins__": {}}))  # digits and operators only, by the line above
    except (SyntaxError, TypeError, ZeroDivisionError):
        return False


def _body(text: str, start: int) -> str:
    depth = 1
    for position in range(start, len(text)):
        depth += (text[position] == "{") - (text[position] == "}")
        if depth == 0:
            return text[start:position]
    return ""


def _constants(text: str) -> dict[str, int]:
    values: dict[str, int] = {}
    for match in _CONSTANT.finditer(text):
        value = _number(match[2] or match[4], values)
        if value is not None:
            values[match[1] or match[3]] = value
    return values


def _number(expression: str, constants: dict[str, int]) -> int | None:
    python = re.sub(r"\b([A-Za-z_]\w*)\b", lambda m: str(constants.get(m[1], m[1])), expression.strip())
    python = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", python)
    if not re.fullmatch(r"[\d\s()+\-*/]+", python):
        return None
    try:
        return int(eval(python.replace("/", "//"), {"__builtins__": {}}))  # digits and operators only
    except (SyntaxError, TypeError, ZeroDivisionError):
        return None


def _fields(body: str, known: dict, constants: dict[str, int]) -> list[tuple] | None:
    fields: list[tuple] = []
    for statement in (" ".join(s.split()) for s in body.replace("public:", "").split(";")):
        if not statement or statement.startswith(("static", "using", "friend", "private:", "constexpr")):
            continue
        match = _FIELD.match(statement)
        base = match and (C_TYPES.get(match[1].split("::")[-1]) or known.get(match[1].split("::")[-1]))
        if not base:
            return None  # a method, a pointer, an unknown type: not plain data
        for declarator in match[2].split(","):
            parts = _DECLARATOR.match(declarator.strip())
            if not parts:
                return None
            kind = base
            for bound in reversed(re.findall(r"\[([^\]]+)\]", parts[2])):
                length = _number(bound, constants)
                if length is None:
                    return None
                kind = kind * length
            fields.append((parts[1], kind))
    return fields
