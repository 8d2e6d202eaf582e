"""The packages of the extra `onnx`, imported when they are needed."""

from __future__ import annotations

from ... import errors


def load(module: str):
    return errors.load(module, "onnx", "ONNX files need")
