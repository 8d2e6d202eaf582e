"""The torchair converters against a stand-in that enforces torchair's calling convention: arguments of the fx node as they are in the
schema (positional ones by position, keyword-only ones by name), meta_outputs by name, attributes wrapped in their GE types."""

import inspect
import sys
import types

import pytest
import torch

import custom_ops


class Wrapper:
    python_type: type

    def __init__(self, value):
        assert type(value) is self.python_type, f"{type(self).__name__}({value!r})"
        self.value = value

    def __eq__(self, other):
        return type(self) is type(other) and self.value == other.value

    def __repr__(self):
        return f"{type(self).__name__}({self.value})"


class Int(Wrapper):
    python_type = int


class Float(Wrapper):
    python_type = float


@pytest.fixture
def torchair(monkeypatch):
    module, ge, attr = types.ModuleType("torchair"), types.ModuleType("torchair.ge"), types.ModuleType("torchair.ge.attr")
    module.converters, module.nodes = {}, []
    attr.Int, attr.Float = Int, Float

    def register_fx_node_ge_converter(overload):
        assert isinstance(overload, torch._ops.OpOverload)

        def decorate(convert):
            assert overload not in module.converters, "registered twice"
            module.converters[overload] = convert
            return convert

        return decorate

    def custom_op(op_type, *, inputs, attrs, outputs):
        module.nodes.append((op_type, inputs, attrs, outputs))
        return outputs

    module.register_fx_node_ge_converter, module.ge = register_fx_node_ge_converter, ge
    ge.custom_op, ge.attr = custom_op, attr
    for name, value in (("torchair", module), ("torchair.ge", ge), ("torchair.ge.attr", attr)):
        monkeypatch.setitem(sys.modules, name, value)
    monkeypatch.setattr(custom_ops.converter, "_registered", False)
    custom_ops.converter.register()
    custom_ops.converter.register()
    return module


def convert(torchair, overload, *args, **kwargs):
    return torchair.converters[overload](*args, **kwargs, meta_outputs=object())


def test_every_operator_has_one(torchair):
    assert {overload._schema.name.removeprefix("custom::") for overload in torchair.converters} == set(custom_ops.ops.BY_NAME)


def test_signatures_are_the_schemas(torchair):
    for overload, converter in torchair.converters.items():
        parameters = dict(inspect.signature(converter).parameters)
        assert parameters.pop("meta_outputs").kind is inspect.Parameter.KEYWORD_ONLY
        arguments = overload._schema.arguments
        assert list(parameters) == [argument.name for argument in arguments]
        for argument in arguments:
            parameter = parameters[argument.name]
            assert (parameter.kind is inspect.Parameter.KEYWORD_ONLY) == argument.kwarg_only
            expected = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
            assert parameter.default == expected


def test_post(torchair):
    assert convert(torchair, torch.ops.custom.npu_hc_post.default, "x0", "r", "p", "c") == ["y"]
    assert torchair.nodes == [("HcPost", {"x": "x0", "residual": "r", "post": "p", "comb": "c"}, {}, ["y"])]


def test_inv_rms(torchair):
    outputs = convert(torchair, torch.ops.custom.npu_hc_pre_inv_rms.default, "x0", epsilon=1e-6)
    assert outputs == ["y"]
    assert torchair.nodes == [("HcPreInvRms", {"x": "x0"}, {"epsilon": Float(1e-6)}, ["y"])]


@pytest.mark.parametrize("given, attributes", [((), (4, 20, 1e-5)), ((2,), (2, 20, 1e-5)), ((2, 7, 1e-6), (2, 7, 1e-6))])
def test_sinkhorn(torchair, given, attributes):
    outputs = convert(torchair, torch.ops.custom.npu_hc_pre_sinkhorn.default, "m", "r", "s", "b", "x", *given)
    assert outputs == ["y", "post", "comb_frag"]
    hc_mult, iters, eps = attributes
    assert torchair.nodes == [("HcPreSinkhorn", {"mixes": "m", "rsqrt": "r", "hc_scale": "s", "hc_base": "b", "x": "x"},
                               {"hc_mult": Int(hc_mult), "hc_sinkhorn_iters": Int(iters), "hc_eps": Float(eps)},
                               ["y", "post", "comb_frag"])]


def test_op_types_are_those_of_the_op_package(torchair):
    convert(torchair, torch.ops.custom.npu_hc_post.default, "x", "r", "p", "c")
    convert(torchair, torch.ops.custom.npu_hc_pre_inv_rms.default, "x0")
    convert(torchair, torch.ops.custom.npu_hc_pre_sinkhorn.default, "m", "r", "s", "b", "x")
    assert [node[0] for node in torchair.nodes] == [module.OP_TYPE for module in custom_ops.ops.BY_NAME.values()]
