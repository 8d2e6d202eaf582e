"""Registration of gradients.

`torch.library.register_autograd` costs about 8 us on every call, also on those without gradients: more than the whole operator
at T = 1. Here the inference path never enters Python: framework/torch/autograd_gate.cpp tests whether an input wants a gradient
and calls `_npu_<op>_with_gradient` only then. That library fits the torch version it was built with; with any other the test is made
in Python, with the same results and about 5 us per call.
"""

from __future__ import annotations

import torch
from torch import _C
from torch.autograd import forward_ad

from ._paths import LIBRARY_DIR

_LIBRARY = torch.library.Library("custom", "FRAGMENT")
_GATE = LIBRARY_DIR / f"libcustom_ops_torch_gate-{torch.__version__}.so"
HAS_GATE = _GATE.is_file()
if HAS_GATE:
    torch.ops.load_library(str(_GATE))


def register(name: str, function: type[torch.autograd.Function]) -> None:
    """`function.apply` takes the operator's arguments in schema order, keyword-only ones included, and computes its results."""
    overload = getattr(torch.ops.custom, name).default
    arguments = overload._schema.arguments

    def with_gradient(*args, **kwargs):
        if _C._are_functorch_transforms_active():
            raise RuntimeError(f"{name}: gradients by torch.func (grad, vjp, jacrev ...) are not supported, use torch.autograd")
        if _has_tangent((*args, *kwargs.values())):
            raise RuntimeError(f"{name}: forward-mode gradients (jvp, jacfwd, make_dual) are not supported, use torch.autograd")
        given = (kwargs.get(argument.name, argument.default_value) for argument in arguments[len(args) :])  # the dispatcher drops defaults
        return function.apply(*args, *given)

    if HAS_GATE:
        twin = f"_{name}_with_gradient"
        _LIBRARY.define(str(overload._schema).replace(f"custom::{name}", twin))
        _LIBRARY.impl(twin, with_gradient, "CompositeImplicitAutograd")
        return

    redispatch = overload._handle.redispatch_boxed
    written = [(i, argument.name) for i, argument in enumerate(arguments) if argument.alias_info and argument.alias_info.is_write]
    below_autograd, grad_enabled, any_requires_grad = _C._after_autograd_keyset, torch.is_grad_enabled, _C._any_requires_grad

    def gate(keyset, *args, **kwargs):
        tensors = *args, *kwargs.values()
        if (grad_enabled() and any_requires_grad(*tensors)) or _has_tangent(tensors):
            return with_gradient(*args, **kwargs)
        result = redispatch(keyset & below_autograd, *args, **kwargs)
        for index, name in written:
            tensor = args[index] if index < len(args) else kwargs.get(name)
            if tensor is not None and not tensor.is_inference():
                torch.autograd.graph.increment_version(tensor)
        return result

    _LIBRARY.impl(name, gate, "Autograd", with_keyset=True)


def define(schema: str, function, fake) -> None:
    """An operator of PyTorch calls, the same for every device; a compiler takes it as one node."""
    name = _LIBRARY.define(schema)
    _LIBRARY.impl(name, function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"custom::{name}", fake, lib=_LIBRARY)


def define_composite(schema: str, function) -> None:
    """An operator that autograd and compilers see as the calls inside `function`."""
    _LIBRARY.impl(_LIBRARY.define(schema), function, "CompositeImplicitAutograd")


def _has_tangent(args) -> bool:
    if forward_ad._current_level < 0:
        return False
    return any(isinstance(a, torch.Tensor) and forward_ad.unpack_dual(a).tangent is not None for a in args)


def below(overload, *args, **kwargs):
    """The operator without its gradient, for the forward of `function`."""
    with _C._AutoDispatchBelowAutograd():
        return overload(*args, **kwargs)
