"""Operators for hyper-connections and linear attention as `torch.ops.custom.npu_*`, and the simulated NPU they run on.

    import torch, custom_ops
    y, post, comb = custom_ops.hc_pre_sinkhorn(mixes, rsqrt, hc_scale, hc_base, x)
    with custom_ops.simulate("ascend910b") as run:
        y, post, comb = custom_ops.hc_pre_sinkhorn(mixes, rsqrt, hc_scale, hc_base, x)
    print(run)

Importing loads one library and registers the operators, nothing else; it needs torch alone. The simulator is imported at first use.
Where torch is loaded with torch_npu, the NPU's implementation of the operators is registered too.
"""

import importlib
import importlib.util
import sys
import types

from . import _backend

__version__ = "0.1.0"
_FUNCTIONS = ("fused_linear_attention", "hc_head", "hc_post", "hc_pre", "hc_pre_inv_rms", "hc_pre_sinkhorn")  # of .functional
__all__ = [*_FUNCTIONS, "LinearAttentionState", "functional", "nn", "ops", "converter", "simulate", "sim", "npu", "KernelError",
           "BuildError"]

_LAZY = {  # name: (module, attribute of it or None for the module)
    "simulate": (".simulate", "simulate"),
    "sim": (".sim", None),
    "npu": (".npu", None),
    "converter": (".converter", None),
    "KernelError": (".errors", "KernelError"),
    "BuildError": (".errors", "BuildError"),
}
_TORCH = (*_FUNCTIONS, "LinearAttentionState", "functional", "nn", "ops")  # there once the operators are registered


def _register() -> None:
    """Loads the operators. Raises ImportError with what to do where torch cannot be imported."""
    if reason := _backend.obstacle():
        raise ImportError(reason)
    import torch

    _backend.wait_no_longer()
    from . import _paths

    torch.ops.load_library(str(_paths.library("custom_ops_torch")))
    ops = importlib.import_module(".ops", __name__)  # its schemas come from the library
    functional = importlib.import_module(".functional", __name__)
    state = importlib.import_module(".state", __name__)
    nn = importlib.import_module(".nn", __name__)
    globals().update(ops=ops, functional=functional, nn=nn, LinearAttentionState=state.LinearAttentionState,
                     **{name: getattr(functional, name) for name in _FUNCTIONS})
    if isinstance(sys.modules.get("torchair"), types.ModuleType):
        _register_converters()
    if "torch_npu" in sys.modules:
        _with_torch_npu()
    elif importlib.util.find_spec("torch_npu") is not None:
        _backend.after_import("torch_npu", _with_torch_npu)


def _with_torch_npu() -> None:
    importlib.import_module(".npu.library", __name__).load()
    torchair = "torch_npu.dynamo.torchair"  # `torchair` is a placeholder for it, which loads it when it is used
    if torchair in sys.modules:
        _register_converters()
    else:
        _backend.after_import(torchair, _register_converters)


def _register_converters() -> None:
    importlib.import_module(".converter", __name__).register()


def __getattr__(name: str):
    if name in _TORCH:
        _register()
        return globals()[name]
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
    return sorted({*globals(), *_LAZY, *_TORCH})


if _backend.torch_waits():
    _backend.wait([f"{__name__}.{name}" for name in ("functional", "nn", "ops", "reference", "converter", "state")], _register)
else:
    _register()
