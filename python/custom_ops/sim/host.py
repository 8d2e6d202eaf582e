"""The machine that compiled kernels belong to."""

from __future__ import annotations

import platform
from pathlib import Path


def host_cpu() -> str:
    """What -march=native stands for."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    lines = [line for line in text.splitlines() if line.startswith(("flags", "Features", "model name"))]
    return f"{platform.machine()} {' '.join(sorted(set(lines)))}"
