"""One view of torch tensors and NumPy arrays: shape, dtype, address; and making new ones of the same kind."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .names import BY_NAME, DTYPES, DType


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_numpy(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_array(value: Any) -> bool:
    return is_torch(value) or is_numpy(value)


@dataclass
class View:
    """Contiguous host memory of an array, and the array that keeps it alive."""

    owner: Any
    shape: tuple[int, ...]
    dtype: DType
    address: int
    bytes: int


def dtype_of(value: Any, what: str) -> DType:
    name = str(value.dtype).removeprefix("torch.")
    if name not in BY_NAME:
        raise TypeError(f"{what} has dtype {name}, known are {', '.join(d.name for d in DTYPES)}")
    return BY_NAME[name]


def view(value: Any, what: str) -> View:
    """Of a contiguous CPU array."""
    dtype = dtype_of(value, what)
    shape = tuple(int(n) for n in value.shape)
    count = 1
    for n in shape:
        count *= n
    address = value.data_ptr() if is_torch(value) else value.ctypes.data
    return View(value, shape, dtype, address if count else 0, count * dtype.bytes)


def require_cpu(value: Any, what: str) -> None:
    if is_torch(value):
        if value.device.type != "cpu":
            raise ValueError(f"{what} is on {value.device}, the simulator takes CPU tensors")
        if value.layout is not sys.modules["torch"].strided:
            raise ValueError(f"{what} has layout {value.layout}, the simulator takes strided tensors")
    elif not value.dtype.isnative:
        raise ValueError(f"{what} has byte order {value.dtype.byteorder!r}, the simulator takes native arrays")


def is_contiguous(value: Any) -> bool:
    """The memory holds the values, in order: torch tensors may also have a negation or conjugation still to be done."""
    return value.is_contiguous() and not pending(value) if is_torch(value) else bool(value.flags.c_contiguous)


def pending(value: Any) -> str | None:
    """The torch method that does what the tensor has put off, so that its memory holds other values than it shows."""
    if not is_torch(value):
        return None
    return "resolve_neg" if value.is_neg() else "resolve_conj" if value.is_conj() else None


def contiguous(value: Any) -> Any:
    """The array itself when it is contiguous, else a contiguous copy."""
    if is_torch(value):
        value = value.detach()
        return value.resolve_neg().resolve_conj().contiguous()
    import numpy

    return numpy.asarray(value, order="C")


def copy_into(target: Any, source: Any) -> None:
    if is_torch(target):
        torch = sys.modules["torch"]
        with torch.no_grad():
            target.copy_(source)
    else:
        target[...] = source


def empty(kind: str, shape: Sequence[int], dtype: DType) -> Any:
    """`kind` is "torch" or "numpy"."""
    if kind == "torch":
        import torch

        return torch.empty(tuple(shape), dtype=getattr(torch, dtype.name))
    import numpy

    return numpy.empty(tuple(shape), dtype=numpy_dtype(dtype))


def numpy_dtype(dtype: DType):
    import numpy

    if dtype.name != "bfloat16":
        return numpy.dtype(dtype.name)
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError("NumPy has no bfloat16 of its own: pip install ml_dtypes, or use torch tensors") from None
    return numpy.dtype(ml_dtypes.bfloat16)
