"""The package MNN, imported when it is needed."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

from ...errors import OnboardingError


def require() -> None:
    if importlib.util.find_spec("MNN") is None:
        raise OnboardingError("MNN files need the package 'MNN': pip install 'custom_ops[mnn]'")


def load(module: str):
    """Of MNN, which greets on standard output when it is imported; there a command writes its result, so the greeting goes to errors."""
    require()
    if "MNN" in sys.modules:
        return importlib.import_module(module)
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise OnboardingError(f"MNN cannot be imported ({error}): pip install 'custom_ops[mnn]'") from None
    finally:
        os.dup2(kept, 1)
        os.close(kept)
