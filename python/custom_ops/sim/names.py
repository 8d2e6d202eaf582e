"""Naming rules of CANN: OpType to file, kernel and header names, dtype codes to C++ types."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass


def snake(op_type: str) -> str:
    """Every upper letter starts a word, digits stay: HcPost -> hc_post, Conv2DCustom -> conv2_d_custom."""
    return re.sub(r"(?<=.)(?<!_)([A-Z])", r"_\1", op_type).lower()


def camel(name: str) -> str:
    """hc_mult -> hcMult"""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def nearest(name: str, known: Iterable[str]) -> str:
    """'a', 'b', 'c': the known names, the most similar ones first."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=len(known) or 1, cutoff=0.5)
    return ", ".join(repr(k) for k in close + [k for k in known if k not in close]) or "none"


@dataclass(frozen=True)
class DType:
    name: str     # as torch and NumPy (ml_dtypes) call it
    code: int     # ge::DataType = aclDataType
    symbol: str   # DT_*
    cpp: str      # type in kernels
    bytes: int


DTYPES = (
    DType("float32", 0, "DT_FLOAT", "float", 4),
    DType("float16", 1, "DT_FLOAT16", "half", 2),
    DType("int8", 2, "DT_INT8", "int8_t", 1),
    DType("int32", 3, "DT_INT32", "int32_t", 4),
    DType("uint8", 4, "DT_UINT8", "uint8_t", 1),
    DType("int16", 6, "DT_INT16", "int16_t", 2),
    DType("uint16", 7, "DT_UINT16", "uint16_t", 2),
    DType("uint32", 8, "DT_UINT32", "uint32_t", 4),
    DType("int64", 9, "DT_INT64", "int64_t", 8),
    DType("uint64", 10, "DT_UINT64", "uint64_t", 8),
    DType("float64", 11, "DT_DOUBLE", "double", 8),
    DType("bool", 12, "DT_BOOL", "bool", 1),
    DType("bfloat16", 27, "DT_BF16", "bfloat16_t", 2),
)
BY_NAME = {d.name: d for d in DTYPES} | {d.symbol: d for d in DTYPES} | {d.symbol[3:]: d for d in DTYPES}
FORMAT_ND = 2


def dtype_named(name: str) -> DType:
    found = BY_NAME.get(name) or BY_NAME.get(name.upper()) or BY_NAME.get(name.lower())
    if not found:
        raise ValueError(f"dtype {name!r} is not known; known are {nearest(name, (d.name for d in DTYPES))}")
    return found
