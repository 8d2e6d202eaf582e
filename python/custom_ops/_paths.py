"""Where the package finds its compiled libraries and the sources it compiles kernels from.

Installed: everything lies inside the package (`lib/` and `share/`). In a source checkout: `build/lib` and the checkout itself.
"""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = (_PACKAGE / "share").is_dir()
_CHECKOUT = _PACKAGE.parent.parent

#: Holds sim/, op_host/ and op_kernel/.
SOURCE_ROOT = _PACKAGE / "share" if _INSTALLED else _CHECKOUT

#: Holds libcustom_ops_sim.so and libcustom_ops_torch.so.
LIBRARY_DIR = Path(os.environ.get("CUSTOM_OPS_LIB_DIR") or (_PACKAGE / "lib" if _INSTALLED else _CHECKOUT / "build" / "lib"))

#: What to do when a library is missing or does not fit.
REBUILD = "run `pip install .` again" if _INSTALLED else f"run `cmake -B build && cmake --build build` in {_CHECKOUT}"


def library(name: str) -> Path:
    """Path of `lib<name>.so`; FileNotFoundError tells how to build it."""
    path = LIBRARY_DIR / f"lib{name}.so"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: {REBUILD}")
    return path
