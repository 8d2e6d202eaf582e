"""Gradients of fused_linear_attention: against autograd of the formula in float64, token after token, and central differences."""

import pytest
import torch
from torch._functorch import config as functorch_config
from torch.nn import functional as F

import custom_ops
from custom_ops.ops import fused_linear_attention as op
from custom_ops.ops._attn_types import ATTN_TYPES, Heads
from custom_ops.ops._linear_attention_gradient import Setting, gradient

LEAVES = ("qkv", "gate", "beta", "conv_weight", "conv_bias", "gate_coef", "gate_bias")
VARIANTS = ("gated_delta_rule", "kda", "short_conv")
#: Relative to the largest value of a gradient: rounding of the gradient itself, and of float32 sums.
BOUND = {torch.float32: 2e-5, torch.bfloat16: 2**-7, torch.float16: 2**-9}


def make(rng, attn_type, batch=1, length=5, heads=Heads(1, 2, 3, 4), taps=4, fold=False, bias=True, dtype=torch.float32, law="model"):
    """Arguments of a call, token-major, with initial states."""
    kind = ATTN_TYPES[attn_type]
    heads = heads if kind.has_heads else Heads(1, 1, heads.value_dim, heads.value_dim)
    channels, sizes = kind.conv_channels(heads), kind.gate_sizes(heads)
    randn = lambda *shape: torch.randn(*shape, generator=rng)  # noqa: E731
    qkv, gate, beta = randn(batch, length, kind.qkv_channels(heads)), randn(batch, length, *sizes), randn(batch, length, sizes[0])
    if law == "identical":  # keys that are all alike: the system of a chunk is at its worst
        qkv = qkv[:, :1].expand(qkv.shape).clone()
    decay = {"model": 0.3, "identical": 0.0, "strong": 60.0, "none": 0.0}[law]
    given = {"qkv": qkv, "gate": gate if fold else -decay * gate.abs(), "beta": beta if fold else beta.sigmoid(),
             "conv_weight": randn(channels, 1, taps), "conv_bias": randn(channels) if bias else None,
             "gate_coef": -randn(sizes[0]).abs() if fold else None, "gate_bias": randn(*sizes) if fold else None}
    for name in ("qkv", "conv_weight", "conv_bias"):
        given[name] = given[name] if given[name] is None else given[name].to(dtype)
    states = {"conv_state": randn(batch, channels, taps - 1).to(dtype)}
    if kind.has_state:
        states["recurrent_state"] = randn(batch, heads.values, heads.key_dim, heads.value_dim)
    options = {"attn_type": attn_type, "num_k_heads": heads.keys, "num_v_heads": heads.values, "head_k_dim": heads.key_dim,
               "head_v_dim": heads.value_dim, "gate_fold": fold}
    return given, states, options


def formula(given, states, options, l2norm=True):
    """[B, L, Hv, dv] by PyTorch's own operations, differentiable."""
    qkv, weight, bias = given["qkv"], given["conv_weight"].squeeze(1), given["conv_bias"]
    length = qkv.shape[1]

    def convolve(x):
        window = torch.cat([states["conv_state"].mT, x], 1)
        y = sum(window[:, j : j + length] * weight[:, j] for j in range(weight.shape[1]))
        return y if bias is None else y + bias

    if options["attn_type"] == "short_conv":
        b, c, x = qkv.chunk(3, -1)
        return (c * convolve(b * x)).unsqueeze(2)
    keys, values, dk, dv = (options[name] for name in ("num_k_heads", "num_v_heads", "head_k_dim", "head_v_dim"))
    q, k, v = F.silu(convolve(qkv)).split([keys * dk, keys * dk, values * dv], -1)
    q, k = (part.unflatten(-1, (keys, dk)) for part in (q, k))
    if l2norm:
        q, k = (part * torch.rsqrt(part.square().sum(-1, keepdim=True) + 1e-6) for part in (q, k))
    q, k = (part.repeat_interleave(values // keys, 2) for part in (q * dk**-0.5, k))
    v, gate, beta = v.unflatten(-1, (values, dv)), given["gate"], given["beta"]
    if options["gate_fold"]:
        coef = given["gate_coef"] if gate.dim() == 3 else given["gate_coef"].unsqueeze(-1)
        gate, beta = coef * F.softplus(gate + given["gate_bias"]), beta.sigmoid()
    gate = gate.unsqueeze(-1) if gate.dim() == 3 else gate
    state, out = states["recurrent_state"], []
    for t in range(length):
        state = gate[:, t].exp().unsqueeze(-1) * state
        delta = beta[:, t].unsqueeze(-1) * (v[:, t] - torch.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + k[:, t].unsqueeze(-1) * delta.unsqueeze(-2)
        out.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return torch.stack(out, 1)


def leaves_of(given, dtype=None):
    return {name: given[name].detach().clone().to(dtype or given[name].dtype).requires_grad_()
            for name in LEAVES if given[name] is not None}


def want_of(given, states, options, dout, l2norm=True):
    """Gradients by name, float64; None of what is not read."""
    leaves = leaves_of(given, torch.float64)
    states = {name: state.double() for name, state in states.items()}
    out = formula({**given, **leaves}, states, options, l2norm)
    return dict(zip(leaves, torch.autograd.grad(out, list(leaves.values()), dout.double(), allow_unused=True)))


def assert_gradients(leaves, want):
    for name, leaf in leaves.items():
        if want[name] is None:
            assert leaf.grad is None or not leaf.grad.any(), name
            continue
        assert leaf.grad.dtype == leaf.dtype and leaf.grad.shape == leaf.shape
        error = float((leaf.grad.double() - want[name]).abs().max() / want[name].abs().max().clamp(min=1e-3))
        assert error < BOUND[leaf.dtype], f"{name}: {error:.3g} of the largest value"


class InDouble(torch.autograd.Function):
    """The formula forward, the operator's backward: what gradcheck compares. The operator itself has no float64."""

    @staticmethod
    def forward(ctx, states, options, l2norm, names, *tensors):
        given = {**dict.fromkeys(LEAVES), **dict(zip(names, tensors))}
        ctx.given, ctx.states, ctx.names = given, states, names
        ctx.setting = Setting(options["attn_type"], Heads(*(options[name] for name in ("num_k_heads", "num_v_heads", "head_k_dim",
                                                                                      "head_v_dim"))), l2norm, options["gate_fold"])
        return formula(given, states, options, l2norm)

    @staticmethod
    def backward(ctx, dout):
        given, states = ctx.given, ctx.states
        grads = gradient(ctx.setting, dout, *(given[name] for name in LEAVES[:5]), states["conv_state"], states.get("recurrent_state"),
                         given["gate_coef"], given["gate_bias"], None, None)
        grads = dict(zip(LEAVES, grads))
        return None, None, None, None, *(grads[name] for name in ctx.names)


@pytest.mark.parametrize("attn_type, fold, l2norm, taps, heads", [
    ("gated_delta_rule", False, True, 4, Heads(1, 2, 2, 3)), ("gated_delta_rule", True, True, 2, Heads(2, 2, 3, 2)),
    ("gated_delta_rule", False, False, 1, Heads(1, 3, 2, 2)), ("kda", False, True, 3, Heads(1, 2, 2, 3)),
    ("kda", True, False, 2, Heads(1, 1, 3, 2)),
    ("short_conv", False, True, 3, Heads(1, 1, 3, 3)), ("short_conv", False, True, 1, Heads(1, 1, 2, 2))], ids=str)
def test_gradcheck(attn_type, fold, l2norm, taps, heads, rng):
    given, states, options = make(rng, attn_type, 2, 4, heads, taps, fold)
    leaves = leaves_of(given, torch.float64)
    states = {name: state.double() for name, state in states.items()}
    assert torch.autograd.gradcheck(lambda *tensors: InDouble.apply(states, options, l2norm, tuple(leaves), *tensors),
                                    tuple(leaves.values()))


@pytest.mark.parametrize("law", ["model", "none", "strong", "identical"])
@pytest.mark.parametrize("length", [1, 16, 17, 63, 64, 65, 150])
@pytest.mark.parametrize("attn_type", ["gated_delta_rule", "kda"])
def test_chunks(attn_type, length, law, rng):
    given, states, options = make(rng, attn_type, 1, length, Heads(1, 3, 8, 5), law=law)
    dout = torch.randn(1, length, 3, 5, generator=rng)
    leaves = leaves_of(given)
    custom_ops.fused_linear_attention(**{**given, **leaves}, **{n: s.clone() for n, s in states.items()}, **options,
                                      token_major=True).backward(dout)
    assert_gradients(leaves, want_of(given, states, options, dout))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("fold", [False, True], ids=["gate", "fold"])
@pytest.mark.parametrize("attn_type", VARIANTS)
def test_gradient_is_the_formula(attn_type, fold, dtype, rng):
    if fold and attn_type == "short_conv":
        return
    given, states, options = make(rng, attn_type, 3, 9, Heads(2, 4, 8, 6), fold=fold, dtype=dtype)
    dout = torch.randn(3, 9, 1 if attn_type == "short_conv" else 4, 6, generator=rng).to(dtype)
    leaves, initial, before = leaves_of(given), *({name: state.clone() for name, state in states.items()} for _ in range(2))
    out = custom_ops.fused_linear_attention(**{**given, **leaves}, **states, **options, token_major=True)
    assert torch.equal(out, custom_ops.fused_linear_attention(**given, **before, **options, token_major=True))
    assert all(torch.equal(states[name], before[name]) for name in states)  # written as without a gradient
    out.backward(dout)
    assert_gradients(leaves, want_of(given, initial, options, dout))


def test_channel_major_and_strides(rng):
    given, states, options = make(rng, "gated_delta_rule", 2, 7, Heads(1, 2, 4, 4))
    dout = torch.randn(2, 7, 2, 4, generator=rng).transpose(0, 1).contiguous().transpose(0, 1)
    leaves = leaves_of(given)
    transposed = {**given, **leaves, "qkv": leaves["qkv"].transpose(1, 2)}
    custom_ops.fused_linear_attention(**transposed, **{n: s.clone() for n, s in states.items()}, **options).backward(dout)
    assert_gradients(leaves, want_of(given, states, options, dout))


@pytest.mark.parametrize("attn_type", VARIANTS)
def test_without_states(attn_type, rng):
    given, states, options = make(rng, attn_type, 2, 5)
    dout = torch.randn(2, 5, 1 if attn_type == "short_conv" else 2, 4, generator=rng)
    leaves = leaves_of(given)
    custom_ops.fused_linear_attention(**{**given, **leaves}, **options, token_major=True).backward(dout)
    assert_gradients(leaves, want_of(given, {name: torch.zeros_like(state) for name, state in states.items()}, options, dout))


@pytest.mark.parametrize("attn_type", VARIANTS)
def test_packed_sequences_slots_and_padding(attn_type, rng):
    ends, slots, begins = (0, 4, 4, 9, 12), (2, 0, 4, -1), (True, True, False, True)
    given, _, options = make(rng, attn_type, 1, 12)
    _, pool, _ = make(rng, attn_type, 5, 1)
    dout = torch.randn(1, 12, 1 if attn_type == "short_conv" else 2, 4, generator=rng)
    leaves = leaves_of(given)
    custom_ops.fused_linear_attention(**{**given, **leaves}, **{n: s.clone() for n, s in pool.items()}, **options, token_major=True,
                                      cu_seqlens=torch.tensor(ends), state_indices=torch.tensor(slots),
                                      has_initial_state=torch.tensor(begins)).backward(dout)
    want = {name: torch.zeros(leaf.shape, dtype=torch.float64) for name, leaf in leaves.items()}
    for first, last, slot, begin in zip(ends, ends[1:], slots, begins):
        if slot < 0 or first == last:
            continue
        part = {name: tensor[:, first:last] if name in LEAVES[:3] else tensor for name, tensor in given.items()}
        states = {name: state[slot : slot + 1] * begin for name, state in pool.items()}
        for name, gradient_ in want_of(part, states, options, dout[:, first:last]).items():
            if gradient_ is not None:
                (want[name][:, first:last] if name in LEAVES[:3] else want[name]).add_(gradient_)
    assert_gradients(leaves, want)


def test_padding_rows_of_a_batch_are_not_read(rng):
    given, states, options = make(rng, "gated_delta_rule", 3, 4)
    leaves = leaves_of(given)
    with torch.no_grad():
        leaves["qkv"][1] = torch.nan
    custom_ops.fused_linear_attention(**{**given, **leaves}, **states, **options, token_major=True,
                                      state_indices=torch.tensor([2, -1, 0])).sum().backward()
    assert not leaves["qkv"].grad[1].any() and leaves["qkv"].grad[[0, 2]].all() and torch.isfinite(leaves["conv_weight"].grad).all()


@pytest.mark.parametrize("needed", LEAVES)
def test_gradient_of_one_input(needed, rng):
    given, states, options = make(rng, "kda", 2, 4, fold=True)
    given[needed].requires_grad_()
    custom_ops.fused_linear_attention(**given, **states, **options, token_major=True).sum().backward()
    assert [name for name in LEAVES if given[name].grad is not None] == [needed] and given[needed].grad.any()


def test_no_tokens(rng):
    given, states, options = make(rng, "gated_delta_rule", 1, 0)
    leaves, before = leaves_of(given), {name: state.clone() for name, state in states.items()}
    custom_ops.fused_linear_attention(**{**given, **leaves}, **states, **options, token_major=True).sum().backward()
    assert leaves["qkv"].grad.shape == given["qkv"].shape and not leaves["conv_weight"].grad.any()
    assert all(torch.equal(states[name], before[name]) for name in states)


def test_what_has_no_gradient_is_refused(rng):
    given, states, options = make(rng, "gated_delta_rule", 1, 3)
    leaves = leaves_of(given)
    for name, state in states.items():
        with pytest.raises(RuntimeError, match=f"npu_fused_linear_attention: {name} requires a gradient: it counts as a constant"):
            custom_ops.fused_linear_attention(**given, **{**states, name: state.clone().requires_grad_()}, **options, token_major=True)
    before = {name: state.clone() for name, state in states.items()}
    for name in ("gate", "conv_weight"):
        with torch.inference_mode():
            made = given[name].clone()
        with pytest.raises(RuntimeError, match=f"npu_fused_linear_attention: {name} was made in inference mode and cannot be kept"):
            custom_ops.fused_linear_attention(**{**given, "qkv": leaves["qkv"], name: made}, **states, **options, token_major=True)
    assert all(torch.equal(states[name], before[name]) for name in states)
    out = custom_ops.fused_linear_attention(**{**given, **leaves}, **states, **options, token_major=True)
    with pytest.raises(RuntimeError, match="npu_fused_linear_attention: has no second derivative"):
        torch.autograd.grad(out.sum(), leaves["qkv"], create_graph=True)


def test_overwritten_state_is_noticed(rng):
    """A state that autograd saved before the call wrote it."""
    given, states, options = make(rng, "gated_delta_rule", 1, 3)
    leaves, factor = leaves_of(given), torch.ones(1, requires_grad=True)
    product = factor * states["recurrent_state"]
    custom_ops.fused_linear_attention(**{**given, **leaves}, **states, **options, token_major=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


@functorch_config.patch(enable_autograd_cache=False)  # its key is the call: it would give what an earlier version compiled
@pytest.mark.parametrize("indexed", [False, True], ids=["rows", "slots"])
@pytest.mark.parametrize("attn_type, compiler", [*((attn_type, "aot_eager") for attn_type in VARIANTS), ("gated_delta_rule", "inductor")])
def test_compiled_training_step(attn_type, indexed, compiler, rng):
    """Two calls, the second from where the first has ended: their backward starts from states that are overwritten when it runs."""
    torch._dynamo.reset()
    given, states, options = make(rng, attn_type, 2, 6)
    if indexed:
        options = options | {"state_indices": torch.tensor([1, 0]), "has_initial_state": torch.tensor([True, False])}

    def step(leaves, states):
        calls = [custom_ops.fused_linear_attention(**{**given, **leaves}, **states, **options, token_major=True) for _ in range(2)]
        return sum(out.square().sum() for out in calls)

    results = []
    for function in (step, torch.compile(step, fullgraph=True, backend=compiler)):
        leaves, after = leaves_of(given), {name: state.clone() for name, state in states.items()}
        function(leaves, after).backward()
        results.append((leaves, after))
    (leaves, after), (compiled_leaves, compiled_after) = results
    assert all(torch.equal(after[name], compiled_after[name]) and not torch.equal(after[name], states[name]) for name in states)
    for name, leaf in leaves.items():
        if leaf.grad is not None:
            torch.testing.assert_close(compiled_leaves[name].grad, leaf.grad, msg=lambda text, name=name: f"{name}: {text}")


def test_gradients_of_padding_alone(rng):
    """A pool without slots."""
    given, states, options = make(rng, "gated_delta_rule", 2, 3)
    leaves = leaves_of(given)
    out = custom_ops.fused_linear_attention(**{**given, **leaves}, **{name: state[:0] for name, state in states.items()}, **options,
                                            state_indices=torch.tensor([-1, -1]), token_major=True)
    out.sum().backward()
    assert not out.any() and not leaves["qkv"].grad.any()


@pytest.mark.parametrize("attn_type", VARIANTS)
def test_opcheck(attn_type, rng):
    given, states, options = make(rng, attn_type, 2, 3)
    leaves = {name: tensor if tensor is None else tensor.requires_grad_() for name, tensor in given.items()}
    positional = [*(leaves[name] for name in LEAVES[:5]), states["conv_state"], states.get("recurrent_state")]
    torch.library.opcheck(getattr(torch.ops.custom, op.NAME).default, positional, {**options, "token_major": True},
                          test_utils=("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"))


def test_a_layer_learns(rng):
    torch.manual_seed(0)
    layer = custom_ops.nn.GatedDeltaNet(16, 1, 2, 8, 8)
    x = torch.randn(4, 12, 16, generator=rng)
    target = x.roll(2, 1)  # remember what stood two tokens before
    optimizer, losses = torch.optim.Adam(layer.parameters(), lr=1e-2), []
    for _ in range(60):
        loss = F.mse_loss(layer(x)[:, 2:], target[:, 2:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert all(parameter.grad.any() for parameter in layer.parameters()) and losses[-1] < losses[0] / 2
