"""The gguf package, imported when it is needed."""

from __future__ import annotations

from ...errors import OnboardingError


def gguf():
    try:
        import gguf
        import gguf.quants
    except ImportError as error:
        raise OnboardingError(f"GGUF files need the package 'gguf' ({error}): pip install 'custom_ops[gguf]'") from None
    return gguf
