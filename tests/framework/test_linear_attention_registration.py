"""npu_fused_linear_attention as PyTorch sees it: schema, opcheck, fake tensors, torch.compile with states that are written."""

import pytest
import torch
from linear_attention import STATES, Layer, clone
from torch._dynamo.testing import CompileCounterWithBackend

import custom_ops

OP = torch.ops.custom.npu_fused_linear_attention.default
LAYERS = [Layer(dtype=torch.bfloat16, fold=True, bias=True), Layer("kda"), Layer("short_conv", dv=32, K=3, dtype=torch.float16)]


def test_schema():
    assert str(OP._schema) == (
        "custom::npu_fused_linear_attention(Tensor qkv, Tensor gate, Tensor beta, Tensor conv_weight, Tensor? conv_bias=None, "
        "Tensor(a!)? conv_state=None, Tensor(b!)? recurrent_state=None, *, str attn_type, int num_k_heads, int num_v_heads, "
        "int head_k_dim, int head_v_dim, bool use_qk_l2norm=True, bool gate_fold=False, Tensor? gate_coef=None, Tensor? gate_bias=None, "
        "Tensor? cu_seqlens=None, Tensor? state_indices=None, Tensor? has_initial_state=None, bool token_major=False) -> Tensor")


def test_table_is_that_of_the_library():
    assert list(custom_ops.ops._attn_types.ATTN_TYPES) == ["gated_delta_rule", "kda", "short_conv"]


@pytest.mark.parametrize("states", [True, False], ids=["states", "stateless"])
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_opcheck(layer, states, rng):
    call = layer.tensors(rng, 2, 5)
    if not states:
        call |= dict.fromkeys(STATES)
    positional = [call.pop(argument.name) for argument in OP._schema.arguments if not argument.kwarg_only]
    torch.library.opcheck(OP, tuple(positional), {**call, **layer.attributes(), "token_major": True})


def model(layer, call):
    """Prefill, then a decoded token, in one graph."""
    halves = [{name: value[:, part] if name in ("qkv", "gate", "beta") else value for name, value in call.items()}
              for part in (slice(None, -1), slice(-1, None))]
    first, second = (custom_ops.fused_linear_attention(**half, **layer.attributes(), token_major=True) for half in halves)
    states = [call[name] * 2 for name in STATES if call[name] is not None]  # as they are after both
    return [torch.cat([first, second], 1).float() + 1, *states]


@pytest.mark.parametrize("backend_name", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_compiles_with_mutated_states(layer, dynamic, backend_name, rng):
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend=backend_name)
    for batch, length in ((2, 6), (2, 9), (3, 5)):
        call = layer.tensors(rng, batch, length)
        eager, other = clone(call), clone(call)
        for one, two in zip(model(layer, eager), compiled(layer, other), strict=True):
            assert torch.equal(one, two)
        assert all(eager[name] is None or torch.equal(eager[name], other[name]) for name in STATES)


def test_dynamic_sizes_do_not_recompile(rng):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=counter)
    layer = LAYERS[0]
    compiled(layer, layer.tensors(rng, 2, 6))
    first = counter.frame_count
    for batch, length in ((3, 9), (5, 33), (2, 200)):
        compiled(layer, layer.tensors(rng, batch, length))
    assert counter.frame_count == first


def test_states_are_no_part_of_the_graph(rng):
    layer = LAYERS[0]
    call = layer.tensors(rng, 1, 3)
    call["qkv"].requires_grad_()
    stateless = custom_ops.fused_linear_attention(**{**call, **dict.fromkeys((*STATES, "conv_bias"))}, **layer.attributes(), token_major=True)
    assert stateless.requires_grad
    plain = clone(call)
    want = custom_ops.fused_linear_attention(**{**plain, "qkv": call["qkv"].detach()}, **layer.attributes(), token_major=True)
    out = custom_ops.fused_linear_attention(**call, **layer.attributes(), token_major=True)
    assert torch.equal(out, want) and all(torch.equal(call[name], plain[name]) and not call[name].requires_grad for name in STATES)
    out.sum().backward()
    assert call["qkv"].grad.any()


def test_a_backward_that_needs_the_old_state_is_refused(rng):
    """Also of a call that has no gradient itself."""
    layer = LAYERS[1]
    call = layer.tensors(rng, 1, 3)
    weights = [torch.ones_like(call[name], requires_grad=True) for name in STATES]
    losses = [(weight * call[name]).sum() for weight, name in zip(weights, STATES)]
    versions = [call[name]._version for name in STATES]
    custom_ops.fused_linear_attention(**call, **layer.attributes(), token_major=True)
    assert [call[name]._version for name in STATES] == [version + 1 for version in versions]
    for loss in losses:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_states_made_in_inference_mode(rng):
    layer = LAYERS[1]
    call = layer.tensors(rng, 1, 3)
    want = clone(call)
    with torch.inference_mode():
        states = {name: call[name].clone() for name in STATES}
    for _ in range(2):
        outs = [custom_ops.fused_linear_attention(**given, **layer.attributes(), token_major=True) for given in ({**call, **states}, want)]
        assert torch.equal(*outs)
