"""Registration of gradients.

`torch.library.register_autograd` costs about 8 us on every call, also on those without gradients, more than the whole
operator at T = 1. This is the same registration (a Python kernel on the Autograd key) with the inference path reduced to one test
and one redispatch.
"""

from __future__ import annotations

import torch
from torch import _C

_LIBRARY = torch.library.Library("custom", "FRAGMENT")


def register(name: str, function: type[torch.autograd.Function]) -> None:
    """`function.apply` takes the operator's arguments in schema order, keyword-only ones included, and computes its results."""
    overload = getattr(torch.ops.custom, name).default
    redispatch = overload._handle.redispatch_boxed
    below_autograd = _C._after_autograd_keyset
    grad_enabled, any_requires_grad = torch.is_grad_enabled, _C._any_requires_grad
    functorch_active = _C._are_functorch_transforms_active
    keywords = [argument.name for argument in overload._schema.arguments if argument.kwarg_only]
    defaults = {argument.name: argument.default_value for argument in overload._schema.arguments if argument.kwarg_only}

    def autograd(keyset, *args, **kwargs):
        if grad_enabled() and any_requires_grad(*args):
            if functorch_active():
                raise RuntimeError(f"{name}: gradients by torch.func (grad, vjp, jacrev ...) are not supported, use torch.autograd")
            return function.apply(*args, *(kwargs.get(keyword, defaults[keyword]) for keyword in keywords))
        return redispatch(keyset & below_autograd, *args, **kwargs)

    _LIBRARY.impl(name, autograd, "Autograd", with_keyset=True)


def below(overload, *args, **kwargs):
    """The operator without its gradient, for the forward of `function`."""
    with _C._AutoDispatchBelowAutograd():
        return overload(*args, **kwargs)
