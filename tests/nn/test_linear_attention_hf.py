"""GatedDeltaNet and ShortConv against the layers of transformers that they load their weights from: prefill, decode, padding, caches."""

import pytest
import torch
from torch import nn

import custom_ops
from custom_ops.nn import GatedDeltaNet, ShortConv

pytest.importorskip("transformers")  # the extra `transformers`
from transformers import DynamicCache  # noqa: E402
from transformers.models.lfm2.configuration_lfm2 import Lfm2Config  # noqa: E402
from transformers.models.lfm2.modeling_lfm2 import Lfm2ShortConv  # noqa: E402
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig  # noqa: E402
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5GatedDeltaNet  # noqa: E402
from transformers.models.qwen3_next.configuration_qwen3_next import Qwen3NextConfig  # noqa: E402
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet  # noqa: E402

HIDDEN, STEPS = 48, 8
QWEN = {"hidden_size": HIDDEN, "num_hidden_layers": 1, "layer_types": ["linear_attention"], "linear_key_head_dim": 16,
        "linear_value_head_dim": 24, "linear_conv_kernel_dim": 4,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "vocab_size": 32}
LFM2 = {"hidden_size": HIDDEN, "num_hidden_layers": 1, "layer_types": ["conv"], "conv_L_cache": 3, "vocab_size": 32}


def qwen_next(key_heads, value_heads):
    return Qwen3NextGatedDeltaNet, Qwen3NextConfig(linear_num_key_heads=key_heads, linear_num_value_heads=value_heads, **QWEN)


def qwen_3_5(key_heads, value_heads):
    return Qwen3_5GatedDeltaNet, Qwen3_5TextConfig(linear_num_key_heads=key_heads, linear_num_value_heads=value_heads, **QWEN)


def lfm2(bias):
    return Lfm2ShortConv, Lfm2Config(conv_bias=bias, **LFM2)


LAYERS = {"qwen3_next_r1": (qwen_next, 2, 2), "qwen3_next_r2": (qwen_next, 2, 4), "qwen3_next_r3": (qwen_next, 2, 6),
          "qwen3_5_r2": (qwen_3_5, 2, 4), "qwen3_5_r3": (qwen_3_5, 1, 3), "lfm2": (lfm2, False), "lfm2_bias": (lfm2, True)}
#: Of the RMS of what transformers gives in float32. float32: sums in another order. bfloat16: both round activations between the same
#: modules, transformers also beta, q, k and the convolution (relative 2^-9 each); facts: 4e-3 for the recurrence alone.
BOUND = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


class Pair:
    """The layer of transformers with random weights, with its configuration, and ours with the same weights."""

    def __init__(self, name: str, dtype=torch.float32):
        make, *arguments = LAYERS[name]
        original, self.config = make(*arguments)
        torch.manual_seed(hash_of(name))
        self.theirs = original(self.config, 0)
        with torch.no_grad():
            for parameter_name, parameter in self.theirs.named_parameters():
                if parameter_name == "dt_bias" or parameter_name.endswith("bias"):
                    parameter.normal_()
                elif "norm" in parameter_name:
                    parameter.uniform_(0.5, 1.5)
        if original is Lfm2ShortConv:
            self.ours = ShortConv(HIDDEN, self.config.conv_L_cache, bias=self.config.conv_bias)
        else:
            c = self.config
            self.ours = GatedDeltaNet(HIDDEN, c.linear_num_key_heads, c.linear_num_value_heads, c.linear_key_head_dim,
                                      c.linear_value_head_dim, c.linear_conv_kernel_dim, norm_eps=c.rms_norm_eps)
        keys = self.ours.load_state_dict(self.theirs.state_dict())
        assert not keys.missing_keys and not keys.unexpected_keys
        self.theirs, self.ours = self.theirs.to(dtype).eval(), self.ours.to(dtype).eval()

    def cache(self):
        return DynamicCache(config=self.config)

    def cached_states(self, cache):
        return cache.get_conv_state(0), cache.get_recurrent_state(0)

    def to_cache(self, state):
        """A cache of transformers that continues where our state is."""
        cache, (conv, recurrent) = self.cache(), state.export_hf()
        cache.update_conv_state(conv, 0)
        if recurrent is not None:
            cache.update_recurrent_state(recurrent, 0)
        return cache


def hash_of(name: str) -> int:
    return sum(map(ord, name))


def close(got, want, dtype):
    error = (got.float() - want.float()).square().mean().sqrt() / want.float().square().mean().sqrt()
    assert torch.isfinite(got).all() and error < BOUND[dtype], f"relative RMS error {error:.3g}"


@pytest.fixture(autouse=True)
def no_gradient():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("batch, length", [(1, 1), (1, 70), (3, 2), (3, 19)])
@pytest.mark.parametrize("name", LAYERS)
def test_prefill_and_decode(name, batch, length, dtype, rng):
    pair, exact = Pair(name, dtype), Pair(name)
    x = torch.randn(batch, length + STEPS, HIDDEN, generator=rng).to(dtype)
    exact.theirs.load_state_dict(pair.theirs.state_dict())  # the rounded weights, in float32
    cache, state = exact.cache(), pair.ours.new_state(batch)
    parts = [slice(0, length), *(slice(t, t + 1) for t in range(length, length + STEPS))]
    want = torch.cat([exact.theirs(x[:, part].float(), cache) for part in parts], 1)
    got = torch.cat([pair.ours(x[:, part], state) for part in parts], 1)
    close(got, want, dtype)
    assert got.dtype == dtype and state.lengths.tolist() == [length + STEPS] * batch
    if dtype == torch.bfloat16:  # no worse than transformers itself
        cache = pair.cache()
        theirs = torch.cat([pair.theirs(x[:, part], cache) for part in parts], 1)
        assert (got - want).square().mean() < 1.5 * (theirs - want).square().mean()


@pytest.mark.parametrize("name", LAYERS)
def test_without_a_state(name, rng):
    pair = Pair(name)
    x = torch.randn(2, 9, HIDDEN, generator=rng)
    close(pair.ours(x), pair.theirs(x), torch.float32)


@pytest.mark.parametrize("name", LAYERS)
def test_left_padding(name, rng):
    pair, lengths = Pair(name), (4, 11, 1)
    x = torch.randn(3, 11 + STEPS, HIDDEN, generator=rng)
    mask = torch.stack([torch.arange(11) >= 11 - length for length in lengths]).long()
    state, cache = pair.ours.new_state(3), pair.cache()
    want = [pair.theirs(x[:, :11], cache, mask)] + [pair.theirs(x[:, t : t + 1], cache) for t in range(11, 11 + STEPS)]
    got = [pair.ours(x[:, :11], state, mask)] + [pair.ours(x[:, t : t + 1], state) for t in range(11, 11 + STEPS)]
    close(torch.cat(got, 1), torch.cat(want, 1), torch.float32)
    if name == "lfm2_bias":  # in_proj(0) is not 0
        return
    for row, length in enumerate(lengths):  # as each sequence alone
        alone = pair.ours(x[row : row + 1, 11 - length : 11])
        torch.testing.assert_close(got[0][row : row + 1, 11 - length :], alone, rtol=0, atol=1e-5)
    padded = torch.where(mask[..., None] == 1, x[:, :11], torch.nan)  # what stands at padding is not read
    assert torch.equal(pair.ours(padded, pair.ours.new_state(3), mask), got[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("length", [1, 2, 9])
@pytest.mark.parametrize("name", LAYERS)
def test_state_goes_over_and_back(name, length, dtype, rng):
    pair = Pair(name, dtype)
    x = torch.randn(2, length + 2 * STEPS, HIDDEN, generator=rng).to(dtype)
    middle = slice(length, length + STEPS)
    cache = pair.cache()
    prefill = pair.theirs(x[:, :length], cache)
    state = pair.ours.new_state(2)  # transformers reads the prompt, we go on
    state.import_hf(*pair.cached_states(cache), tokens=length)
    ours = [pair.ours(x[:, t : t + 1], state) for t in range(length, length + STEPS)]
    back = pair.to_cache(state)  # and back
    theirs = [pair.theirs(x[:, t : t + 1], back) for t in range(length + STEPS, length + 2 * STEPS)]
    assert state.lengths.tolist() == [length + STEPS] * 2

    cache = pair.cache()
    want = torch.cat([pair.theirs(x[:, :length], cache)] + [pair.theirs(x[:, t : t + 1], cache) for t in range(length, x.shape[1])], 1)
    close(torch.cat([prefill, *ours, *theirs], 1), want, dtype)
    assert torch.cat(ours, 1).shape == want[:, middle].shape


def test_names_inside_a_model():
    """The hook that puts Qwen3-Next's rows in order also works below other modules."""
    pair = Pair("qwen3_next_r3")
    model = nn.ModuleDict({"block": nn.ModuleDict({"linear_attn": GatedDeltaNet(HIDDEN, 2, 6, 16, 24)})})
    model.load_state_dict({f"block.linear_attn.{name}": tensor for name, tensor in pair.theirs.state_dict().items()})
    assert all(torch.equal(one, other) for one, other in zip(model["block"]["linear_attn"].parameters(), pair.ours.parameters()))


def test_import_refuses_other_shapes():
    pair = Pair("qwen3_5_r2")
    cache = pair.cache()
    pair.theirs(torch.randn(2, 5, HIDDEN), cache)
    conv, recurrent = pair.cached_states(cache)
    state = pair.ours.new_state(2)
    for arguments, tokens, message in (((conv[..., 1:], recurrent), 5, r"conv_states must be \[batch, C, K\] = \[2, 160, 4\], got"),
                                       ((conv, None), 5, "gated_delta_rule needs recurrent_states"),
                                       ((conv, recurrent.mT), 5, r"recurrent_states must be \[batch, Hv, dk, dv\] = \[2, 4, 16, 24\]"),
                                       ((conv, recurrent), [5], "tokens must be 2 whole numbers")):
        with pytest.raises(RuntimeError, match=message):
            state.import_hf(*arguments, tokens=tokens)
    assert not state.recurrent_state.any() and state.lengths.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="short_conv has no recurrent_states"):
        custom_ops.LinearAttentionState("short_conv", head_k_dim=4, head_v_dim=4, conv_kernel_size=3).import_hf(
            torch.zeros(1, 4, 3), torch.zeros(1), tokens=1)
