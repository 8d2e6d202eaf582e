"""custom_ops.nn.GatedDeltaNet and ShortConv without transformers: parameters, states, gates, packed sequences. The rest:
tests/nn/test_linear_attention_hf.py."""

import doctest
import sys

import pytest
import torch
from torch._functorch import config as functorch_config

from custom_ops.nn import GatedDeltaNet, ShortConv

HIDDEN = 32


def gated(**options):
    torch.manual_seed(3)
    return GatedDeltaNet(HIDDEN, 1, 3, 8, 16, **options)


def test_example_of_the_docstring():
    result = doctest.testmod(sys.modules[GatedDeltaNet.__module__])
    assert result.attempted > 4 and result.failed == 0


def test_parameters():
    assert {name: tuple(p.shape) for name, p in gated().named_parameters()} == {
        "in_proj_qkv.weight": (64, HIDDEN), "in_proj_z.weight": (48, HIDDEN), "in_proj_b.weight": (3, HIDDEN),
        "in_proj_a.weight": (3, HIDDEN),
        "conv1d.weight": (64, 1, 4), "A_log": (3,), "dt_bias": (3,), "norm.weight": (16,), "out_proj.weight": (HIDDEN, 48)}
    assert {name: tuple(p.shape) for name, p in ShortConv(HIDDEN, 3, bias=True).named_parameters()} == {
        "in_proj.weight": (96, HIDDEN), "in_proj.bias": (96,), "conv.weight": (HIDDEN, 1, 3), "conv.bias": (HIDDEN,),
        "out_proj.weight": (HIDDEN, HIDDEN), "out_proj.bias": (HIDDEN,)}
    assert "num_v_heads=3" in repr(gated()) and gated(device="meta").A_log.is_meta
    assert torch.isfinite(gated().A_log).all() and (gated().dt_bias == 1).all()
    with pytest.raises(ValueError, match="output_gate must be silu or sigmoid, got 'swish'"):
        gated(output_gate="swish")


def test_state_of_the_layer():
    state = gated(dtype=torch.bfloat16).new_state(5)
    assert state.conv_state.shape == (5, 64, 3) and state.conv_state.dtype == torch.bfloat16
    assert state.recurrent_state.shape == (5, 3, 8, 16)
    state = ShortConv(HIDDEN, 4).new_state(2)
    assert state.conv_state.shape == (2, HIDDEN, 3) and state.recurrent_state is None


@torch.no_grad()
def test_sigmoid_output_gate(rng):
    silu, sigmoid = gated(), gated(output_gate="sigmoid")
    sigmoid.load_state_dict(silu.state_dict())
    x = torch.randn(1, 4, HIDDEN, generator=rng)
    for layer in (silu, sigmoid):
        layer.out_proj = torch.nn.Identity()
    torch.testing.assert_close(silu(x), sigmoid(x) * silu.in_proj_z(x))  # SiLU(z) = z * sigmoid(z)


@torch.no_grad()
@pytest.mark.parametrize("layer", [gated(), ShortConv(HIDDEN, 3, bias=True)], ids=["gated_delta_net", "short_conv"])
def test_packed_sequences_are_the_sequences(layer, rng):
    sizes = (5, 1, 0, 7)
    x = torch.randn(1, sum(sizes), HIDDEN, generator=rng)
    packed, padded = layer.new_state(6), layer.new_state(6)
    out = layer(x, packed, cu_seqlens=torch.tensor([0, *sizes]).cumsum(0), state_indices=torch.tensor([3, 0, 5, 1]))
    for part, slot in zip(x.split(sizes, 1), (3, 0, 5, 1)):
        if part.shape[1]:
            want = layer(part, padded.view(slot, 1))
            torch.testing.assert_close(out[:, : part.shape[1]], want)
        out = out[:, part.shape[1] :]
    torch.testing.assert_close(packed.conv_state, padded.conv_state)
    assert packed.lengths.tolist() == [1, 7, 0, 5, 0, 0]
    torch.testing.assert_close(layer(x, cu_seqlens=torch.tensor([0, *sizes]).cumsum(0))[:, :5], layer(x[:, :5]))


@functorch_config.patch(enable_autograd_cache=False)  # its key is the call: it would give what an earlier version compiled
@pytest.mark.parametrize("compiler, dynamic", [("aot_eager", False), ("aot_eager", True), ("inductor", None)])
@pytest.mark.parametrize("make", [gated, lambda: ShortConv(HIDDEN, 3, bias=True)], ids=["gated_delta_net", "short_conv"])
def test_compiled_with_a_state(make, compiler, dynamic, rng):
    """Prefill, decode and a training step whose state goes on; the snapshot is taken between them."""
    torch._dynamo.reset()
    layer, x = make(), torch.randn(2, 9, HIDDEN, generator=rng)
    states = [layer.new_state(2) for _ in range(2)]
    compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend=compiler)
    with torch.no_grad():
        for part in x.split((5, 1, 1, 2), 1):
            torch.testing.assert_close(*(function(part, state) for function, state in zip((layer, compiled), states)))
            states[1].snapshot()
    grads = []
    for function, state in zip((layer, compiled), states):
        leaf = x.clone().requires_grad_()
        grads.append(torch.autograd.grad(function(leaf, state).square().sum(), [leaf, *layer.parameters()]))
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-4 * one.abs().max().item())
    for one, other in zip(*([s.conv_state, s.recurrent_state, s.lengths] for s in states)):
        assert one is None or torch.allclose(one, other, atol=1e-6)
    assert states[1].lengths.tolist() == [18, 18] and states[1].snapshot_lengths() == [9, 9]


@pytest.mark.parametrize("make", [gated, lambda: ShortConv(HIDDEN, 3, bias=True)], ids=["gated_delta_net", "short_conv"])
def test_autocast(make, rng):
    """float32 weights, activations in bfloat16: as the layer in bfloat16; a state of that dtype goes with it."""
    layer, narrow, x = make(), make().bfloat16(), torch.randn(2, 5, HIDDEN, generator=rng)
    narrow.load_state_dict(layer.state_dict())
    states = [narrow.new_state(2) for _ in range(2)]
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(x, states[0])
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out, narrow(x.bfloat16(), states[1]), rtol=0.05, atol=0.05)
    with torch.autocast("cpu", torch.bfloat16):
        loss = layer(x).float().square().sum()
    loss.backward()
    assert all(parameter.grad.dtype == torch.float32 and parameter.grad.isfinite().all() for parameter in layer.parameters())


@pytest.mark.parametrize("make, message", [
    (lambda: GatedDeltaNet(HIDDEN, 2, 3, 8, 16), "GatedDeltaNet: num_v_heads must be a multiple of num_k_heads, got 3 and 2"),
    (lambda: GatedDeltaNet(HIDDEN, 1, 2, 8, 513), "GatedDeltaNet: head_v_dim must be 1 to 512, got 513"),
    (lambda: GatedDeltaNet(HIDDEN, 1, 2, 8, 16, 9), "GatedDeltaNet: conv_kernel_size must be 1 to 8, got 9"),
    (lambda: GatedDeltaNet(0, 1, 2, 8, 16), "GatedDeltaNet: hidden_size must be 1 to 2147483647, got 0"),
    (lambda: ShortConv(-1), "ShortConv: hidden_size must be 1 to 2147483647, got -1"),
    (lambda: ShortConv(8.0), "ShortConv: hidden_size must be an integer, 1 to 2147483647, got 8.0"),
    (lambda: ShortConv(HIDDEN, 0), "ShortConv: conv_kernel_size must be 1 to 8, got 0"),
])
def test_dimensions_are_refused_when_the_layer_is_made(make, message):
    with pytest.raises(RuntimeError, match=message):
        make()


def test_what_does_not_belong_to_the_layer_is_refused():
    layer, x = gated(), torch.zeros(1, 2, HIDDEN)
    for state in (ShortConv(HIDDEN, 3).new_state(), GatedDeltaNet(HIDDEN, 1, 3, 8, 8).new_state()):
        with pytest.raises(RuntimeError, match="GatedDeltaNet: the state is that of another layer, Layout"):
            layer(x, state)
    with pytest.raises(RuntimeError, match="GatedDeltaNet: state must be a LinearAttentionState, got tuple; new_state makes one"):
        layer(x, (x, x))
    for hidden_states, given in ((x[0], r"\[2, 32\]"), (x[..., 1:], r"\[1, 2, 31\]")):
        with pytest.raises(RuntimeError, match=rf"GatedDeltaNet: hidden_states must be \[B, L, 32\], got {given}"):
            layer(hidden_states)
    for rows in (111, 113):  # 112 = 2 * 8 + 2 * 3 * 16
        with pytest.raises(RuntimeError, match=rf"GatedDeltaNet: in_proj_qkvz.weight must have 112 rows, got \[{rows}, 32\]"):
            layer.load_state_dict({"in_proj_qkvz.weight": torch.zeros(rows, HIDDEN)}, strict=False)


@pytest.mark.parametrize("layer", [gated(), ShortConv(HIDDEN, 3)], ids=["gated_delta_net", "short_conv"])
def test_a_mask_of_another_shape_is_refused(layer, rng):
    with pytest.raises(RuntimeError, match=r"attention_mask must be \[B, L\] = \[2, 3\], got \[2, 9\]"):
        layer(torch.randn(2, 3, HIDDEN, generator=rng), attention_mask=torch.ones(2, 9))
