"""npu_fused_linear_attention with a state left out, for torchair: operators whose schemas are without that state.

Functionalization treats a written argument that is None as it treats a tensor, and torchair's GE mode fails on it. So a call on NPU
tensors becomes, when it is made functional, the operator that lacks what the call leaves out.
"""

from __future__ import annotations

import re

import torch
from torch._subclasses.functional_tensor import FunctionalTensorMode

from .. import _autograd
from ..ops import fused_linear_attention
from .fused_linear_attention import convert

_NAME = fused_linear_attention.NAME
_OPERATOR = getattr(torch.ops.custom, _NAME).default
_ARGUMENTS = [argument.name for argument in _OPERATOR._schema.arguments]
_STATES = ("conv_state", "recurrent_state")


def _define(absent: tuple[str, ...]) -> torch._ops.OpOverload:
    name = f"_{_NAME}_without_{'_and_'.join(absent)}"
    schema = re.sub(rf"Tensor\(\w!\)\? ({'|'.join(absent)})=None, ", "", str(_OPERATOR._schema)).replace(f"custom::{_NAME}", name)
    names = [argument for argument in _ARGUMENTS if argument not in absent]

    def named(function):
        return lambda *args, **kwargs: function(**dict(zip(names, args)), **kwargs)

    _autograd.define(schema, named(_OPERATOR), named(fused_linear_attention.fake))
    return getattr(torch.ops.custom, name).default


def register() -> dict:
    """Defines the operators, hands calls to them, and gives their converters."""
    operators = {absent: _define(absent) for absent in (_STATES[:1], _STATES[1:], _STATES)}

    def functionalize(mode, func, types, args, kwargs):
        given = dict(zip(_ARGUMENTS, args)) | kwargs
        absent = tuple(state for state in _STATES if given.get(state) is None)
        if not absent or given["qkv"].device.type != "npu":
            return mode.__torch_dispatch__(func, types, args, kwargs)
        with mode:
            return operators[absent](**{name: value for name, value in given.items() if name not in absent})

    torch.library.register_torch_dispatch(_OPERATOR, FunctionalTensorMode, functionalize, lib=_autograd._LIBRARY)
    return {operator: _converter(operator) for operator in operators.values()}


def _converter(operator: torch._ops.OpOverload):
    names = [argument.name for argument in operator._schema.arguments]
    return lambda *args, meta_outputs=None, **kwargs: convert(**dict(zip(names, args)), **kwargs)
