"""What an op_host library says about its ops (SimDescribeHostLibrary), as Python objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .names import BY_NAME, DType, snake


@dataclass(frozen=True)
class Param:
    name: str
    kind: str                     # REQUIRED | OPTIONAL | DYNAMIC
    dtypes: tuple[DType, ...]     # one per column
    formats: tuple[str, ...]

    @property
    def optional(self) -> bool:
        return self.kind == "OPTIONAL"

    @property
    def dynamic(self) -> bool:
        return self.kind == "DYNAMIC"

    def dtype(self, column: int) -> DType:
        return self.dtypes[column if len(self.dtypes) > 1 else 0]

    def format(self, column: int) -> str:
        if not self.formats:
            return "FORMAT_ND"
        return self.formats[column if len(self.formats) > 1 else 0]


@dataclass(frozen=True)
class Attr:
    name: str
    type: str        # int | float | bool | str | list_int | list_float | list_bool
    required: bool
    default: Any     # None when the OpDef gives none


@dataclass(frozen=True)
class TilingField:
    name: str
    type: str        # C++ type
    count: int       # 1 for a scalar
    offset: int      # in the struct that holds it
    nested: TilingClass | None = None


@dataclass(frozen=True)
class TilingClass:
    """Macro-declared tiling data (register/tilingdata_base.h)."""

    key: int | None  # None: the default of the op
    name: str
    bytes: int
    fields: tuple[TilingField, ...]


@dataclass(frozen=True)
class Config:
    """How the op is built for one SoC family."""

    soc: str
    file: str                 # kernel source, without .cpp
    columns: tuple[int, ...]  # dtype columns


@dataclass(frozen=True)
class OpInfo:
    type: str
    file: str
    inputs: tuple[Param, ...]
    outputs: tuple[Param, ...]
    attrs: tuple[Attr, ...]
    configs: tuple[Config, ...]
    tiling_classes: tuple[TilingClass, ...] = ()
    raw: dict = field(default_factory=dict, hash=False, compare=False)

    @property
    def socs(self) -> tuple[str, ...]:
        return tuple(config.soc for config in self.configs)

    def config(self, family: str) -> Config | None:
        return next((config for config in self.configs if config.soc == family), None)

    def columns(self, family: str) -> tuple[int, ...]:
        """Columns built for a SoC family and made of dtypes that are modelled."""
        config = self.config(family)
        params = (*self.inputs, *self.outputs)
        return tuple(c for c in (config.columns if config else ()) if all(p.dtype(c).cpp for p in params))

    @property
    def references(self) -> tuple[str, ...]:
        """Outputs that are an input as well: written in place."""
        inputs = {p.name for p in self.inputs}
        return tuple(p.name for p in self.outputs if p.name in inputs)

    @property
    def snake(self) -> str:
        return snake(self.type)

    def json(self) -> str:
        return json.dumps(self.raw, indent=1)

    def signature(self) -> str:
        """HcPost(x: float32|bfloat16, bias?: float32, *, eps: float = 1e-06) -> y"""
        def tensor(p: Param) -> str:
            kinds = "|".join(dict.fromkeys(d.name for d in p.dtypes))
            return f"{p.name}{'?' if p.optional else '...' if p.dynamic else ''}: {kinds}"

        attrs = [f"{a.name}: {a.type}" + ("" if a.required else f" = {a.default!r}") for a in self.attrs]
        parts = [tensor(p) for p in self.inputs] + (["*"] if attrs else []) + attrs
        return f"{self.type}({', '.join(parts)}) -> {', '.join(p.name for p in self.outputs)}"


def parse(text: str) -> list[OpInfo]:
    return [_op(raw) for raw in json.loads(text)]


def _op(raw: dict) -> OpInfo:
    configs = tuple(Config(c["soc"], c["file"], tuple(c["columns"])) for c in raw["configs"])
    return OpInfo(raw["type"], raw["file"], _params(raw["inputs"]), _params(raw["outputs"]),
                  tuple(_attr(a) for a in raw["attrs"]),
                  configs, tuple(_tiling_class(c["class"], c, c.get("key")) for c in raw["tilingClasses"]), raw)


def _attr(raw: dict) -> Attr:
    kind, default = _ATTR_TYPES[raw["type"]], raw["default"]
    if kind == "float" and default is not None:
        default = float(default)  # JSON writes 2.0 as 2, and infinity as text
    return Attr(raw["name"], kind, bool(raw["required"]), default)


def _params(rows: Sequence[dict]) -> tuple[Param, ...]:
    return tuple(Param(r["name"], r["paramType"].upper(), tuple(_dtype(d) for d in r["dtypes"]), tuple(r["formats"]))
                 for r in rows)


def _dtype(symbol: str) -> DType:
    # A type without a model (float8 ...) keeps its name, so that messages can say it; its columns are not built.
    return BY_NAME.get(symbol) or DType(symbol.removeprefix("DT_").lower(), -1, symbol, "", 0)


_ATTR_TYPES = {"Int": "int", "Float": "float", "Bool": "bool", "String": "str", "ListInt": "list_int",
               "ListFloat": "list_float", "ListBool": "list_bool", "ListListInt": "list_list_int"}


def _tiling_class(name: str, raw: dict, key: int | None = None) -> TilingClass:
    fields = (TilingField(f["name"], f["type"], f["count"], f["offset"],
                          _tiling_class(f["type"], f) if "fields" in f else None) for f in raw["fields"])
    return TilingClass(key, name, raw["bytes"], tuple(fields))
