"""The packages of the extra `onnx`, imported when they are needed."""

from __future__ import annotations

import importlib

from ...errors import OnboardingError


def load(module: str):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise OnboardingError(f"ONNX files need the package {package!r} ({error}): pip install 'custom_ops[onnx]'") from None
