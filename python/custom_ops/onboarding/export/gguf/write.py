"""A GGUF file of a checkpoint, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import Tensor

from .. import Report
from ...architecture import Architecture
from ...errors import OnboardingError, nearest, some
from ...source import Source
from ..parameters import Parameters
from . import families
from .compare import differences
from .keys import Keys
from .package import gguf
from .registry import GgufArchitecture
from .rope import FACTORS, rope_factors
from .storage import FILE_TYPES, Stored, encode, stored
from .tensors import Row, rows
from .tokenizer import tokenizer_keys

_QUANTISATION_VERSION = 2  # of the format's blocks


def write(source: Source, path: Path, *, report: Report, type: str = "f16", tokenizer: bool = True, pre: str | None = None) -> None:
    """Writes the file at `path`, in one pass.

    type:      f32, f16, bf16 or q8_0, of the matrices.
    tokenizer: without it the file takes token ids only.
    pre:       llama.cpp's name of the pre-tokenizer, where its rules are not recognised.
    Peak memory: the largest tensor, as it is and as it is written.
    """
    if type not in FILE_TYPES:
        raise OnboardingError(f"type {type!r} is not known; {nearest(str(type), FILE_TYPES)}")
    family = families.of_model_type(source.model_type)
    parameters = Parameters(source)
    model = parameters.architecture
    table = rows(family.arch, model, parameters.shapes)
    shapes = {row.gguf: row.shape(parameters.shapes) for row in table}
    extra = _extra_tensors(model)
    keys = family.keys(model)
    _require_same(family, model, keys, shapes | {name: tuple(tensor.shape) for name, tensor in extra.items()})
    words = tokenizer_keys(source, model.vocab, pre, report.notes) if tokenizer else {"tokenizer.ggml.model": "none"}
    how = {name: Stored("f32", tuple(tensor.shape)) for name, tensor in extra.items()} | {
        name: stored(name, shape, type) for name, shape in shapes.items()}
    report.left_out(parameters.ignored)
    _note_wide(report, how, type)
    writer = gguf().GGUFWriter(path, family.arch)
    try:
        _add_keys(writer, {**_general(source, type), **{f"{family.arch}.{key}": value for key, value in keys.items()}, **words})
        _write_tensors(writer, parameters, table, extra, how, report)
    finally:
        writer.close()


def _extra_tensors(model: Architecture) -> dict[str, Tensor]:
    rotary = next((layer.mixer.rotary for layer in model.layers if layer.is_attention), None)
    factors = rope_factors(rotary) if rotary else None
    return {} if factors is None else {FACTORS: factors}


def _require_same(family: GgufArchitecture, model: Architecture, keys: Mapping[str, object], tensors: dict[str, tuple[int, ...]]) -> None:
    """Stops where llama.cpp would compute something else than the model."""
    said = Keys(family.arch, {f"{family.arch}.{key}": value for key, value in keys.items()}, f"GGUF architecture {family.arch!r}")
    read = family.read(said, tensors)
    if FACTORS in tensors:
        read = _with_rotaries_of(model, read)
    found = differences(model, read)
    if found:
        raise OnboardingError(f"GGUF architecture {family.arch!r} cannot say all that this model does:\n  " + "\n  ".join(found))


def _with_rotaries_of(model: Architecture, read: Architecture) -> Architecture:
    """The factors of the pairs are a tensor, exact by construction: only what keys say is compared."""
    rotaries = iter(layer.mixer.rotary if layer.is_attention else None for layer in model.layers)
    return read.with_layers(lambda layer: replace(layer, mixer=replace(layer.mixer, rotary=next(rotaries))))


def _note_wide(report: Report, how: Mapping[str, Stored], type: str) -> None:
    wide = [name for name, one in how.items() if type == "q8_0" and one.kind == "f16"]
    if wide:
        report.notes.append(f"{len(wide)} tensors are f16: the 32 values of a q8_0 block do not divide their rows: {some(wide)}")


def _general(source: Source, type: str) -> dict[str, object]:
    name = source.checkpoint.config.get("_name_or_path") or source.checkpoint.folder.resolve().name
    return {"general.type": "model", "general.name": Path(str(name)).name, "general.file_type": FILE_TYPES[type],
            "general.quantization_version": _QUANTISATION_VERSION}


def _add_keys(writer, keys: Mapping[str, object]) -> None:
    for name, value in keys.items():
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        elif isinstance(value, float):
            writer.add_float32(name, value)
        elif isinstance(value, str):
            writer.add_string(name, value)
        else:
            writer.add_array(name, value)


def _write_tensors(writer, parameters: Parameters, table: list[Row], extra: Mapping[str, Tensor], how: Mapping[str, Stored],
                   report: Report) -> None:
    for name, one in how.items():
        writer.add_tensor_info(name, one.shape, np.dtype(np.float32), one.nbytes, raw_dtype=one.ggml)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for name, tensor in extra.items():
        writer.write_tensor_data(encode(tensor, how[name], name))
    for done, row in enumerate(table, 1):
        values = row.forward([parameters.read(name) for name in row.parameters])
        writer.write_tensor_data(encode(values, how[row.gguf], row.gguf))
        for name in row.parameters:
            parameters.forget(name)
        report.progress(done, len(table))
    report.tensors = len(how)
