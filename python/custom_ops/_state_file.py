"""Files of a LinearAttentionState. What is read may come from anywhere: nothing of it is believed that does not fit together."""

from __future__ import annotations

import os
import pickle
import tempfile
from dataclasses import asdict

import torch
from torch import Tensor

from ._state_rows import NAME, Layout, Tensors, error

_FORMAT = f"custom_ops.{NAME} 1"


def write(path: str | os.PathLike, tag: str, layout: Layout, tensors: Tensors) -> None:
    """The file appears complete or not at all."""
    # Copies: of a view, torch.save would write all that it is a part of.
    copies = tensors.map(lambda tensor: tensor.cpu().clone())
    content = {"format": _FORMAT, "tag": tag, "layout": asdict(layout), "conv_state": copies.conv, "lengths": copies.lengths}
    if copies.recurrent is not None:
        content["recurrent_state"] = copies.recurrent
    path = os.fspath(path)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=os.path.basename(path) + ".")
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read(path, tag: str) -> tuple[Layout, Tensors]:
    try:
        content = torch.load(path, weights_only=True, map_location="cpu")
    except (RuntimeError, EOFError, KeyError, pickle.UnpicklingError) as reason:
        raise error(f"{path} cannot be read: {(str(reason) or type(reason).__name__).splitlines()[0]}") from reason
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise error(f"{path} is not a file of {NAME}.save")
    if content.get("tag") != tag:
        raise error(f"{path} has the tag {content.get('tag')!r}, not {tag!r}")
    try:
        layout = Layout(**content.get("layout"))
    except TypeError as reason:
        raise error(f"{path}: its layout is none: {reason}") from reason
    except RuntimeError as reason:
        raise error(f"{path}: {str(reason).removeprefix(f'{NAME}: ')}") from reason
    tensors = Tensors(*(content.get(name) for name in ("conv_state", "recurrent_state", "lengths")))
    if not isinstance(tensors.lengths, Tensor) or tensors.lengths.dim() != 1 or not tensors.lengths.numel():
        raise error(f"{path}: its lengths are none")
    want = layout.new(len(tensors.lengths), "meta")
    if [_kind_of(t) for t in tensors.each()] != [(t.shape, t.dtype, "cpu", True) for t in want.each()]:
        raise error(f"{path}: its tensors are not those of {layout}")
    if min(tensors.lengths.tolist()) < 0:
        raise error(f"{path}: its lengths must be >= 0, got {tensors.lengths.tolist()}")
    # Copies: tensors of a file may lie in one another.
    return layout, tensors.map(lambda tensor: tensor.detach().clone())


def _kind_of(tensor) -> tuple:
    if not isinstance(tensor, Tensor):
        return (type(tensor),)
    return tensor.shape, tensor.dtype, tensor.device.type, tensor.layout == torch.strided and tensor.is_contiguous()
