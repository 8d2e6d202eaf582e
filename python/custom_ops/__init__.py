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

import torch

from ._paths import library as _library

torch.ops.load_library(str(_library("custom_ops_torch")))

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
    globals()[name] = value  # after the import: `simulate` is the function, not the module of that name
    return value


def __dir__():
    return sorted({*globals(), *_LAZY})


if "torchair" in sys.modules:  # imported before us: its GE graph mode finds our converters without a further call
    from . import converter

    converter.register()
