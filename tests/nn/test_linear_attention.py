"""custom_ops.nn.GatedDeltaNet and ShortConv without transformers: parameters, states, gates, packed sequences. The rest:
tests/nn/test_linear_attention_hf.py."""

import doctest
import sys

import pytest
import torch

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


@pytest.mark.parametrize("layer", [gated(), ShortConv(HIDDEN, 3)], ids=["gated_delta_net", "short_conv"])
def test_a_mask_of_another_shape_is_refused(layer, rng):
    with pytest.raises(RuntimeError, match=r"attention_mask must be \[B, L\] = \[2, 3\], got \[2, 9\]"):
        layer(torch.randn(2, 3, HIDDEN, generator=rng), attention_mask=torch.ones(2, 9))
