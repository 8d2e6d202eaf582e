"""Frequencies of every scaling kind against transformers' functions, to the bit, and the rotation against its definition."""

import math

import pytest
import torch

from custom_ops.onboarding.architecture import RotarySpec
from custom_ops.onboarding.model.rotary import Rotary, inverse_frequencies

DIMS = 32
FACTORS = [1.0 + 0.1 * i for i in range(DIMS // 2)]
SCALINGS = {
    "linear": dict(factor=4.0),
    "dynamic": dict(factor=4.0),
    "llama3": dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=128),
    "yarn": dict(factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=256),
    "yarn_truncated": dict(factor=4.0, original_max_position_embeddings=256, attention_factor=1.25),
    "yarn_mscale": dict(factor=40.0, mscale=0.707, mscale_all_dim=1.0, original_max_position_embeddings=128),
    "longrope": dict(short_factor=FACTORS, long_factor=[3 * f for f in FACTORS], original_max_position_embeddings=256),
    "longrope_factor": dict(short_factor=FACTORS, long_factor=FACTORS, factor=8.0, original_max_position_embeddings=256),
    "proportional": dict(partial_rotary_factor=0.25),
}


@pytest.mark.parametrize("length", [1, 300, 5000])
@pytest.mark.parametrize("theta", [1e4, 1e6])
@pytest.mark.parametrize("name", SCALINGS)
def test_frequencies_are_those_of_transformers(name, theta, length):
    pytest.importorskip("transformers")
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    kind, scaling = name.partition("_")[0], SCALINGS[name]
    config = LlamaConfig(hidden_size=4 * DIMS, num_attention_heads=4, max_position_embeddings=1024,
                         rope_parameters={"rope_type": kind, "rope_theta": theta, **scaling})
    want, factor = ROPE_INIT_FUNCTIONS[kind](config, None, seq_len=length)
    got, ours = inverse_frequencies(RotarySpec(theta, DIMS, "half", kind, scaling, 1024), length)
    torch.testing.assert_close(got, want, rtol=2e-7, atol=0)  # one ulp: a power of a scalar and of a tensor
    assert ours == pytest.approx(factor, rel=1e-12)


def test_default_is_bit_equal():
    theta = 1e6
    want = 1.0 / (theta ** (torch.arange(0, DIMS, 2, dtype=torch.float) / DIMS))
    assert torch.equal(inverse_frequencies(RotarySpec(theta, DIMS))[0], want)


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_rotation(pairing, rng):
    """Pair i at position t turns by t theta^(-2 i / dims); what is beyond dims stays."""
    theta, dims, head = 100.0, 6, 10
    x = torch.randn(2, 3, 5, head, generator=rng)
    rotary = Rotary(RotarySpec(theta, dims, pairing))
    got = rotary.rotate(x, *rotary.tables(4, 9, x.device, x.dtype))
    want = x.clone()
    for i in range(dims // 2):
        a, b = (i, i + dims // 2) if pairing == "half" else (2 * i, 2 * i + 1)
        for t in range(5):
            angle = (t + 4) * theta ** (-2 * i / dims)
            pair = torch.view_as_complex(torch.stack((x[..., t, a], x[..., t, b]), -1).contiguous())
            turned = pair * complex(math.cos(angle), math.sin(angle))
            want[..., t, a], want[..., t, b] = turned.real, turned.imag
    torch.testing.assert_close(got, want, rtol=0, atol=1e-5)


def test_tables_grow_and_follow_the_length():
    """One table serves all positions of a default kind; a kind that depends on the length gets others when that passes a threshold."""
    plain = Rotary(RotarySpec(1e4, 8))
    first, _ = plain.tables(0, 10, torch.device("cpu"), torch.float32)
    later, _ = plain.tables(0, 3000, torch.device("cpu"), torch.float32)
    assert torch.equal(first, later[:10])
    scaling = {"short_factor": [1.0] * 4, "long_factor": [8.0] * 4, "original_max_position_embeddings": 64}
    longrope = Rotary(RotarySpec(1e4, 8, "half", "longrope", scaling, 640))
    short, _ = longrope.tables(0, 64, torch.device("cpu"), torch.float32)
    long, _ = longrope.tables(0, 65, torch.device("cpu"), torch.float32)
    again, _ = longrope.tables(0, 60, torch.device("cpu"), torch.float32)
    assert not torch.equal(short, long[:64]) and torch.equal(short[:60], again)


@pytest.mark.parametrize("spec, message", [(RotarySpec(1e4, 8, kind="spiral"), "scaling 'spiral' is not known, use one of default"),
                                           (RotarySpec(1e4, 7), "dims must be even"),
                                           (RotarySpec(1e4, 8, kind="dynamic", scaling={"factor": 2.0}), "needs max_position_embeddings")])
def test_refusals(spec, message):
    with pytest.raises(RuntimeError, match=message):
        inverse_frequencies(spec, 5)
