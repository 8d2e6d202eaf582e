"""The package MNN, imported when it is needed."""

from __future__ import annotations

import importlib.util
import os
import sys

from ... import errors
from ...errors import OnboardingError

_EXTRA, _WHO = "mnn", "MNN files need"


def require() -> None:
    if importlib.util.find_spec("MNN") is None:
        raise OnboardingError(f"{_WHO} the package 'MNN': pip install 'custom_ops[{_EXTRA}]'")


def load(module: str):
    """Of MNN, which greets on standard output when it is imported; there a command writes its result, so the greeting goes to errors."""
    require()
    if "MNN" in sys.modules:
        return errors.load(module, _EXTRA, _WHO)
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        return errors.load(module, _EXTRA, _WHO)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
