"""npu_fused_linear_attention in torchair's GE mode: the node, its states in place or left out, and what is brought to the OpDef's form
before it."""

import pytest
import torch
from ge_graphs import GE_BF16, GE_FLOAT, GE_INT32, attributes, converted, node  # noqa: F401

import custom_ops

TYPE = "FusedLinearAttention"
B, L, HK, HV, DK, DV, K = 2, 3, 1, 2, 16, 16, 4
D = 2 * HK * DK + HV * DV
HEADS = {"num_k_heads": HK, "num_v_heads": HV, "head_k_dim": DK, "head_v_dim": DV}
INPUTS = ("qkv", "gate", "beta", "conv_weight")
STATES = ("conv_state", "recurrent_state")


def tensors(gates=torch.bfloat16, taps=K):
    call = {"qkv": torch.randn(B, L, D).bfloat16(), "gate": -torch.rand(B, L, HV).to(gates), "beta": torch.rand(B, L, HV).bfloat16(),
            "conv_weight": torch.randn(D, 1, taps).bfloat16(), "conv_state": torch.zeros(4, D, taps - 1).bfloat16(),
            "recurrent_state": torch.zeros(4, HV, DK, DV), "state_indices": torch.tensor([3, 1], dtype=torch.int32)}
    return {name: tensor.npu() for name, tensor in call.items()}


def convert(converted, call, dynamic=False, **options):  # noqa: F811
    """The graph of a call with these tensors, in the order of their names."""
    options = {"attn_type": "gated_delta_rule", "token_major": True, **HEADS} | options
    return converted(lambda *given: custom_ops.fused_linear_attention(**dict(zip(call, given)), **options), list(call.values()), dynamic)


def given(op):
    return [desc.name for desc, source in zip(op.input_desc, op.input) if source]


def source(graph, op, name):
    """The node that an input comes from."""
    (index,) = [i for i, desc in enumerate(op.input_desc) if desc.name == name]
    (found,) = [other for other in graph.op if other.name == op.input[index].partition(":")[0]]
    return found


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("absent", [(), STATES[:1], STATES[1:], STATES], ids=lambda absent: "without " + "+".join(absent))
def test_node(converted, simulated, absent, dynamic):  # noqa: F811
    call = {name: tensor for name, tensor in tensors().items() if name not in absent}
    graph = convert(converted, call, dynamic)
    op = node(graph, TYPE)
    assert given(op) == list(call)
    assert attributes(op) == {"attn_type": b"gated_delta_rule", **HEADS, "use_qk_l2norm": True, "gate_fold": False}
    outputs = ["attn_out", *(name for name in STATES if name in call)]
    assert [(desc.name, desc.dtype) for desc in op.output_desc] == [
        (name, GE_FLOAT if name == "recurrent_state" else GE_BF16) for name in outputs]
    results = node(graph, "NetOutput")
    assert list(results.input) == [f"{op.name}:{i}" for i in range(len(outputs))]  # the states come out of the node
    shapes = [(B, L, HV, DV), *(call[name].shape for name in outputs[1:])]
    for desc, shape in zip(results.input_desc, shapes, strict=True):
        assert all(dim in (size, -1 if dynamic else size) for dim, size in zip(desc.shape.dim, shape, strict=True))
    for name in outputs[1:]:
        assert source(graph, op, name).type == "TensorMove"  # torchair's, which its engine takes out


def test_one_dtype_of_gates(converted, simulated):  # noqa: F811
    graph = convert(converted, tensors(torch.float32))
    op = node(graph, TYPE)
    assert source(graph, op, "gate").type == "Data"
    cast = source(graph, op, "beta")
    assert (cast.type, cast.attr["dst_type"].i) == ("Cast", 0)  # 0: DT_FLOAT of the graph's attributes


def test_wide_indices_stay_out_of_range(converted, simulated):  # noqa: F811
    call = tensors() | {"state_indices": torch.tensor([3, 1]).npu()}
    graph = convert(converted, call)
    cast = source(graph, node(graph, TYPE), "state_indices")
    assert (cast.type, cast.attr["dst_type"].i) == ("Cast", GE_INT32)
    clip = node(graph, "ClipByValueV2")
    assert cast.input[0] == f"{clip.name}:0"
    limits = [source(graph, clip, desc.name).attr["value"].t for desc in clip.input_desc[1:]]
    assert [int.from_bytes(limit.data, "little", signed=True) for limit in limits] == [-(2**31), 2**31 - 1]


def test_channel_major_is_transposed(converted, simulated):  # noqa: F811
    call = {name: tensor for name, tensor in tensors().items() if name in INPUTS}
    graph = convert(converted, call | {"qkv": call["qkv"].transpose(1, 2).contiguous()}, token_major=False)
    assert source(graph, node(graph, TYPE), "qkv").type == "Transpose"


def test_a_window_of_no_elements_is_no_input(converted, simulated):  # noqa: F811
    op = node(convert(converted, tensors(taps=1)), TYPE)
    assert given(op) == [*INPUTS, "recurrent_state", "state_indices"]
    assert [desc.name for desc in op.output_desc] == ["attn_out", "recurrent_state"]


@pytest.mark.parametrize("attn_type", ["kda", "gated_delta_rule"])
def test_gate_fold(converted, simulated, attn_type):  # noqa: F811
    sizes = (HV, DK) if attn_type == "kda" else (HV,)
    call = tensors() | {"gate": torch.randn(B, L, *sizes).bfloat16().npu(), "gate_coef": -torch.rand(HV).npu(),
                        "gate_bias": torch.randn(sizes).npu(), "has_initial_state": torch.tensor([True, False]).npu()}
    op = node(convert(converted, call, attn_type=attn_type, gate_fold=True), TYPE)
    assert sorted(given(op)) == sorted(call)
    assert (attributes(op)["attn_type"], attributes(op)["gate_fold"]) == (attn_type.encode(), True)


@pytest.mark.parametrize("with_state", [True, False])
def test_short_conv(converted, simulated, with_state):  # noqa: F811
    unused = torch.zeros(B, L, 1).bfloat16()
    call = {"qkv": torch.randn(B, L, 3 * DV).bfloat16(), "gate": unused, "beta": unused.clone(),
            "conv_weight": torch.randn(DV, 1, K).bfloat16(), "conv_state": torch.zeros(B, DV, K - 1).bfloat16()}
    call = {name: tensor.npu() for name, tensor in call.items() if with_state or name != "conv_state"}
    graph = convert(converted, call, attn_type="short_conv", **dict(zip(HEADS, (1, 1, DV, DV))))
    op = node(graph, TYPE)
    assert given(op) == list(call) and attributes(op)["attn_type"] == b"short_conv"
    assert list(node(graph, "NetOutput").input_desc[0].shape.dim) == [B, L, 1, DV]


def test_layers_share_a_graph(converted, simulated):  # noqa: F811
    """As a model has them: a state of each, and one state that two steps write."""
    layers = torch.nn.ModuleList([custom_ops.nn.GatedDeltaNet(32, HK, HV, DK, DV), custom_ops.nn.ShortConv(32)]).npu()
    states = [layer.new_state(B) for layer in layers]

    def model(x):
        for layer, state in zip(layers, states):
            x = x + layer(x, state)
        return x + layers[0](x, states[0])

    with torch.no_grad():
        graph = converted(model, [torch.randn(B, L, 32).npu()])
    ops = [op for op in graph.op if op.type == TYPE]
    assert [attributes(op)["attn_type"] for op in ops] == [b"gated_delta_rule", b"short_conv", b"gated_delta_rule"]
    for state, index in (("conv_state", 1), ("recurrent_state", 2)):  # the third goes on where the first has ended
        assert source(graph, ops[2], state).input[0] == f"{ops[0].name}:{index}"


@pytest.mark.parametrize("missing", ["cu_seqlens", "gate_coef", *STATES])
def test_names_are_those_registered(simulated, missing, monkeypatch):
    from torchair.core import _backend, _torchair

    monkeypatch.setattr(_backend, "_GLOBAL_COMPILE_OPTION", None)
    _backend.initialize_graph_engine()
    status, inputs, outputs, attrs = _torchair.get_registered_ir_def(TYPE)
    assert status == "SUCCESS" and dict(inputs)[missing] == "optional"
    assert [name for name, _ in outputs] == ["attn_out", *STATES]
    assert [name for name, _ in attrs] == ["attn_type", *HEADS, "use_qk_l2norm", "gate_fold"]
