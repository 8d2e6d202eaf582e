"""File types: how the values of a tensor are stored, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...errors import OnboardingError
from .package import gguf
from .tensors import always_f32

#: type -> general.file_type
FILE_TYPES = {"f32": 0, "f16": 1, "bf16": 32, "q8_0": 7}
_BLOCK = 32  # values of a q8_0 block: a float16 scale and 32 int8
_BYTES = {"f32": (4, 1), "f16": (2, 1), "bf16": (2, 1), "q8_0": (34, _BLOCK)}  # bytes, values
_MOST_F16 = 65504.0


@dataclass(frozen=True)
class Stored:
    """kind: a key of FILE_TYPES; shape as torch counts."""

    kind: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        size, values = _BYTES[self.kind]
        return math.prod(self.shape) // values * size

    @property
    def ggml(self):
        return gguf().GGMLQuantizationType[self.kind.upper()]


def stored(name: str, shape: tuple[int, ...], file_type: str) -> Stored:
    """How a tensor is stored in a file of this type. Vectors, routers and kernels are float32 in all; rows that q8_0's blocks do not divide
    are float16."""
    leaf = name.split(".", 2)[2] if name.startswith("blk.") else name
    if len(shape) == 1 or leaf in always_f32():
        return Stored("f32", shape)
    if file_type == "q8_0" and shape[-1] % _BLOCK:
        return Stored("f16", shape)
    return Stored(file_type, shape)


def encode(tensor: Tensor, how: Stored, name: str) -> np.ndarray:
    """Bytes of a tensor. Raises OnboardingError where float16 cannot hold a value."""
    tensor = tensor.contiguous()
    if how.kind == "bf16":
        return tensor.to(torch.bfloat16).view(torch.int16).numpy()
    if how.kind == "f16":
        most = max(abs(end.item()) for end in tensor.aminmax())
        if most > _MOST_F16:
            raise OnboardingError(f"{name}: a value of size {most:g} is beyond float16's {_MOST_F16:g}; use --type bf16 or f32")
        return tensor.half().numpy()
    values = tensor.float().numpy()
    return values if how.kind == "f32" else gguf().quants.quantize(values, how.ggml)


def decode(data: np.ndarray, kind, shape: tuple[int, ...], what: str) -> Tensor:
    """float32 values of the bytes of a tensor; kind: gguf's quantisation type, any that the package can decode."""
    types = gguf().GGMLQuantizationType
    data = data.view({types.F32: np.float32, types.F16: np.float16}.get(kind, np.uint8))
    if data.dtype == np.uint8:
        data = data.reshape(*shape[:-1], -1)
    try:
        values = gguf().quants.dequantize(data, kind)
    except (NotImplementedError, ValueError) as error:
        raise OnboardingError(f"{what}: type {kind.name} cannot be decoded: {error}") from None
    return torch.from_numpy(np.array(values, np.float32)).reshape(shape)
