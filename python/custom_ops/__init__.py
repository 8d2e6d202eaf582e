"""Operators for hyper-connections as `torch.ops.custom.npu_*`, and the simulated NPU they run on.

    import torch, custom_ops
    y, post, comb = custom_ops.hc_pre_sinkhorn(mixes, rsqrt, hc_scale, hc_base, x)
    with custom_ops.simulate("ascend910b") as run:
        y, post, comb = custom_ops.hc_pre_sinkhorn(mixes, rsqrt, hc_scale, hc_base, x)
    print(run)

Importing loads one library and registers the operators, nothing else; it needs torch alone. The simulator is imported at first use.
"""

import importlib
import sys
import types

import torch

from ._paths import LIBRARY_DIR as _LIBRARY_DIR
from ._paths import library as _library

torch.ops.load_library(str(_library("custom_ops_torch")))
# The NPU path: built where torch_npu's headers were, needed where torch_npu is (importing torch imports it).
if "torch_npu" in sys.modules and (_LIBRARY_DIR / "libcustom_ops_torch_npu.so").is_file():
    torch.ops.load_library(str(_library("custom_ops_torch_npu")))

from . import ops  # noqa: E402  (the schemas come from the library)
from .functional import hc_pre_inv_rms, hc_pre_sinkhorn  # noqa: E402

__version__ = "0.1.0"
__all__ = ["hc_pre_inv_rms", "hc_pre_sinkhorn", "functional", "ops", "converter", "simulate", "sim", "KernelError", "BuildError"]

_LAZY = {  # name: (module, attribute of it or None for the module)
    "simulate": (".simulate", "simulate"),
    "sim": (".sim", None),
    "converter": (".converter", None),
    "KernelError": (".errors", "KernelError"),
    "BuildError": (".errors", "BuildError"),
}


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module 'custom_ops' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    value = importlib.import_module(module, __name__)
    if attribute:
        value = getattr(value, attribute)
    globals()[name] = value
    return value


class _Package(types.ModuleType):
    """Importing the submodule `simulate` sets the attribute of that name: it stays what is documented, the context manager."""

    def __setattr__(self, name, value):
        if name == "simulate" and isinstance(value, types.ModuleType):
            value = value.simulate
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__():
    return sorted({*globals(), *_LAZY})


if "torchair" in sys.modules:  # imported before us: its GE graph mode finds our converters without a further call
    from . import converter

    converter.register()
