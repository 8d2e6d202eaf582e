"""torchair's GE mode: every operator becomes the node it should be. The graph is read where a user reads it, in torchair's own dump.
There is no graph engine on the simulated NPU: the call that needs it must say so."""

from dataclasses import dataclass, field

import pytest
import test_ge_conversion_linear_attention as linear_attention
import torch
from ge_graphs import GE_BF16, GE_FLOAT, attributes, converted, node  # noqa: F401

import custom_ops

T, N, D = 5, 4, 64
MIX = (2 + N) * N


@dataclass(frozen=True)
class Case:
    overload: torch._ops.OpOverload
    type: str
    inputs: dict                      # name: (shape, dtype)
    outputs: dict                     # name: (shape, GE dtype); the first dimension is T
    args: tuple = ()                  # after the inputs
    kwargs: dict = field(default_factory=dict)
    attributes: dict = field(default_factory=dict)


SINKHORN = dict(
    overload=torch.ops.custom.npu_hc_pre_sinkhorn.default, type="HcPreSinkhorn",
    inputs={"mixes": ((T, MIX), torch.float32), "rsqrt": ((T, 1), torch.float32), "hc_scale": ((3,), torch.float32),
            "hc_base": ((MIX,), torch.float32), "x": ((T, N, D), torch.bfloat16)},
    outputs={"y": ((T, D), GE_BF16), "post": ((T, N), GE_FLOAT), "comb_frag": ((T, N, N), GE_FLOAT)})
PRE = dict(
    overload=torch.ops.custom.npu_hc_pre.default, type="HcPre",
    inputs={"x": ((T, N, D), torch.bfloat16), "hc_fn": ((MIX, N * D), torch.float32), "hc_scale": ((3,), torch.float32),
            "hc_base": ((MIX,), torch.float32)},
    outputs=SINKHORN["outputs"])
CASES = {
    "hc_pre": Case(**PRE, kwargs={"hc_sinkhorn_iters": 7, "norm_eps": 1e-2, "hc_eps": 1e-5},
                   attributes={"hc_mult": 4, "hc_sinkhorn_iters": 7, "hc_eps": 1e-5, "norm_eps": 1e-2}),
    "hc_pre-defaults": Case(**PRE, attributes={"hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "norm_eps": 1e-6}),
    "hc_pre_inv_rms": Case(torch.ops.custom.npu_hc_pre_inv_rms.default, "HcPreInvRms", {"x": ((T, N, D), torch.bfloat16)},
                           {"y": ((T, 1), GE_FLOAT)}, kwargs={"epsilon": 1e-6}, attributes={"epsilon": 1e-6}),
    "hc_pre_inv_rms-defaults": Case(torch.ops.custom.npu_hc_pre_inv_rms.default, "HcPreInvRms", {"x": ((T, N, D), torch.float32)},
                                    {"y": ((T, 1), GE_FLOAT)}, attributes={"epsilon": 1e-20}),
    "hc_pre_sinkhorn": Case(**SINKHORN, args=(4, 7, 1e-6), attributes={"hc_mult": 4, "hc_sinkhorn_iters": 7, "hc_eps": 1e-6}),
    # The schema's defaults, written out: the OpDef's hc_eps is another one.
    "hc_pre_sinkhorn-defaults": Case(**SINKHORN, attributes={"hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-5}),
    "hc_post": Case(torch.ops.custom.npu_hc_post.default, "HcPost",
                    {"x": ((T, D), torch.bfloat16), "residual": ((T, N, D), torch.bfloat16), "post": ((T, N), torch.float32),
                     "comb": ((T, N, N), torch.float32)}, {"y": ((T, N, D), GE_BF16)}),
}


def device_inputs(case):
    return [torch.randn(shape).to(dtype).npu() for shape, dtype in case.inputs.values()]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_node(converted, simulated, name, dynamic):  # noqa: F811
    case = CASES[name]

    def function(*inputs):
        return case.overload(*inputs, *case.args, **case.kwargs)

    graph = converted(function, device_inputs(case), dynamic)
    op = node(graph, case.type)
    data = [op.name for op in graph.op if op.type == "Data"]
    assert [desc.name for desc in op.input_desc] == list(case.inputs)
    assert len(set(op.input)) == len(case.inputs) and {source.partition(":")[0] for source in op.input} == set(data)
    assert [desc.dtype for desc in op.input_desc] == [GE_BF16 if dtype == torch.bfloat16 else GE_FLOAT for _, dtype in case.inputs.values()]
    for desc, (shape, _) in zip(op.input_desc, case.inputs.values()):
        assert len(desc.shape.dim) == len(shape)
        assert all(dim == size or (dynamic and dim == -1) for dim, size in zip(desc.shape.dim, shape))
    assert attributes(op) == pytest.approx(case.attributes)

    assert [desc.name for desc in op.output_desc] == list(case.outputs)
    assert [desc.dtype for desc in op.output_desc] == [dtype for _, dtype in case.outputs.values()]
    results = node(graph, "NetOutput")
    assert list(results.input) == [f"{op.name}:{i}" for i in range(len(case.outputs))]
    for desc, (shape, _) in zip(results.input_desc, case.outputs.values()):
        dims = list(desc.shape.dim)
        assert len(dims) == len(shape) and all(dim == size or (dynamic and dim == -1) for dim, size in zip(dims, shape))
        assert (dims[0] == -1) == dynamic


def test_every_operator_has_a_case():
    converted = [module for name, module in custom_ops.ops.BY_NAME.items() if name in custom_ops.converter._CONVERTERS]
    assert {case.type for case in CASES.values()} | {linear_attention.TYPE} == {module.OP_TYPE for module in converted}


@pytest.mark.parametrize("name", CASES)
def test_names_are_those_registered(simulated, name, monkeypatch):
    """torchair asks the graph library what the op package registered; a converter may write nothing else."""
    from torchair.core import _backend, _torchair

    # The first initialisation of a process fixes its options, and this one has none: graphs of later tests bring theirs.
    monkeypatch.setattr(_backend, "_GLOBAL_COMPILE_OPTION", None)
    _backend.initialize_graph_engine()
    case = CASES[name]
    status, inputs, outputs, attrs = _torchair.get_registered_ir_def(case.type)
    assert (status, [n for n, _ in inputs], [n for n, _ in outputs]) == ("SUCCESS", list(case.inputs), list(case.outputs))
    assert {kind for _, kind in inputs + outputs} == {"required"}
    kinds = {int: "VT_INT", float: "VT_FLOAT"}
    assert dict(attrs) == {name: kinds[type(value)] for name, value in case.attributes.items()}
    assert _torchair.check_cann_compat(case.type, (), tuple(case.attributes)) == ""
    assert "optional attr [nonsense]" in _torchair.check_cann_compat(case.type, (), ("nonsense",))


def test_a_layer(converted, simulated):  # noqa: F811
    """All operators with PyTorch's own between them, as a model has them."""
    weight = torch.randn(MIX, N * D).npu()
    scale, base = torch.randn(3).npu(), torch.randn(MIX).npu()

    def layer(x):
        mixes = x.flatten(1).float() @ weight.t()
        y, post, comb = custom_ops.hc_pre_sinkhorn(mixes, custom_ops.hc_pre_inv_rms(x, epsilon=1e-6), scale, base, x, hc_eps=1e-6)
        return custom_ops.hc_post(torch.tanh(y), x, post, comb)

    graph = converted(layer, [torch.randn(T, N, D).bfloat16().npu()])
    sinkhorn, post = node(graph, "HcPreSinkhorn"), node(graph, "HcPost")
    assert list(sinkhorn.input)[1] == f'{node(graph, "HcPreInvRms").name}:0'
    assert list(post.input)[2:] == [f"{sinkhorn.name}:1", f"{sinkhorn.name}:2"]
    assert post.input[0] == f'{node(graph, "Tanh").name}:0'


def test_the_engine_is_what_is_missing(simulated):
    """The error says what is not there and what to use, and leaves the process usable."""
    import torchair

    torch._dynamo.reset()
    x = torch.randn(T, N, D).npu()
    compiled = torch.compile(lambda x: custom_ops.hc_pre_inv_rms(x), backend=torchair.get_npu_backend())
    with pytest.raises(RuntimeError, match="ge::Session::AddGraph is not modelled by the simulator.*reduce-overhead"):
        compiled(x)
    torch.testing.assert_close(custom_ops.hc_pre_inv_rms(x).cpu(), custom_ops.hc_pre_inv_rms(x.cpu()))


def test_without_the_op_package(simulated, monkeypatch):
    """torchair's own message: the type is in no op package."""
    import torchair

    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", "/nowhere")
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: custom_ops.hc_pre_inv_rms(x), backend=torchair.get_npu_backend())
    with pytest.raises(RuntimeError, match="HcPreInvRms"):
        compiled(torch.randn(T, N, D).npu())


def test_export(simulated, tmp_path):
    """dynamo_export writes the model that atc takes."""
    import torchair
    from torchair._ge_concrete_graph import ge_ir_pb2

    class Model(torch.nn.Module):
        def forward(self, x):
            return custom_ops.hc_pre_inv_rms(x, epsilon=1e-6)

    torch._dynamo.reset()
    torchair.dynamo_export(torch.randn(T, N, D).npu(), model=Model(), export_path=str(tmp_path), export_name="rms")
    model = ge_ir_pb2.ModelDef()
    model.ParseFromString((tmp_path / "rms.air").read_bytes())
    assert attributes(node(model.graph[0], "HcPreInvRms")) == pytest.approx({"epsilon": 1e-6})
