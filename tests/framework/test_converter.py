"""The torchair converters without torchair: there is one for every operator, and its signature is the schema's (torchair passes the
arguments of the fx node as they are). What they make of it: tests/npu/test_ge_conversion.py, with torchair itself."""

import inspect

import torch

import custom_ops
from custom_ops import converter


def test_every_operator_has_one():
    assert set(converter._CONVERTERS) == set(custom_ops.ops.BY_NAME)


def test_signatures_are_the_schemas():
    for name, convert in converter._CONVERTERS.items():
        parameters = dict(inspect.signature(convert).parameters)
        assert parameters.pop("meta_outputs").kind is inspect.Parameter.KEYWORD_ONLY
        arguments = getattr(torch.ops.custom, name).default._schema.arguments
        assert list(parameters) == [argument.name for argument in arguments]
        for argument in arguments:
            parameter = parameters[argument.name]
            assert (parameter.kind is inspect.Parameter.KEYWORD_ONLY) == argument.kwarg_only
            expected = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
            assert parameter.default == expected
