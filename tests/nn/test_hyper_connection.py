"""custom_ops.nn.HyperConnection: the module, and models made of it against the formula in plain PyTorch."""

import doctest
import re
import sys

import pytest
import torch
from torch import nn

import custom_ops
from custom_ops.nn import HyperConnection

N, D, VOCABULARY = 4, 48, 50


def test_example_of_the_docstring():
    result = doctest.testmod(sys.modules[HyperConnection.__module__])
    assert result.attempted > 5 and result.failed == 0


def test_parameters():
    site, head = HyperConnection.for_site(D, 3), HyperConnection.for_head(D, 3)
    assert {name: tuple(p.shape) for name, p in site.named_parameters()} == {"fn": (15, 3 * D), "scale": (3,), "base": (15,)}
    assert {name: tuple(p.shape) for name, p in head.named_parameters()} == {"fn": (3, 3 * D), "scale": (1,), "base": (3,)}
    assert all(p.dtype == torch.float32 for p in (*site.parameters(), *head.parameters()))
    assert repr(site) == f"HyperConnection(hidden_size={D}, hc_mult=3, sinkhorn_iters=20, norm_eps=1e-06, hc_eps=1e-06)"
    assert repr(head) == f"HyperConnection(hidden_size={D}, hc_mult=3, head, norm_eps=1e-06, hc_eps=1e-06)"
    assert HyperConnection.for_head(D, 3, device="meta").fn.is_meta
    other = HyperConnection.for_site(D, 3)
    other.load_state_dict(site.state_dict())
    assert torch.equal(other.fn, site.fn)


def test_reset_parameters():
    site = HyperConnection.for_site(1024)
    with torch.no_grad():
        for parameter in site.parameters():
            parameter.fill_(7)
    site.reset_parameters()
    assert 0.019 < site.fn.std() < 0.021 and (site.scale == 1).all() and (site.base == 0).all()


def test_a_head_is_no_site():
    streams = torch.randn(3, N, D)
    with pytest.raises(RuntimeError, match=r"HyperConnection.pre: this one is the head, made by for_head"):
        HyperConnection.for_head(D).pre(streams)
    with pytest.raises(RuntimeError, match=r"HyperConnection.head: this one is a site, made by for_site"):
        HyperConnection.for_site(D).head(streams)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"hidden_size": 0}, "hidden_size must be 1 to 2147483647, got 0"),
    ({"hc_mult": 0}, "hc_mult must be 1 to 16, got 0"),
    ({"hc_mult": 17}, "hc_mult must be 1 to 16, got 17"),
    ({"hc_mult": 4.0}, "hc_mult must be an integer, 1 to 16, got 4.0"),
    ({"hidden_size": "64"}, "hidden_size must be an integer, 1 to 2147483647, got '64'"),
    ({"sinkhorn_iters": None}, "sinkhorn_iters must be an integer, 1 to 2147483647, got None"),
    ({"norm_eps": "1e-6"}, "norm_eps must be a number, finite in float32 and >= 0, got '1e-6'"),
    ({"norm_eps": float("nan")}, "norm_eps must be finite in float32 and >= 0, got nan"),
    ({"hc_eps": -1.0}, "hc_eps must be finite in float32 and >= 0, got -1"),
    ({"sinkhorn_iters": 0}, "sinkhorn_iters must be 1 to 2147483647, got 0"),
], ids=str)
def test_what_no_operator_accepts_is_refused_at_once(arguments, message):
    makers = [HyperConnection.for_site] if "sinkhorn_iters" in arguments else [HyperConnection.for_site, HyperConnection.for_head]
    for make in makers:
        with pytest.raises(RuntimeError, match=re.escape(f"HyperConnection: {message}")):
            make(**{"hidden_size": D} | arguments)


def test_a_site_takes_a_block_and_a_head_none():
    streams = torch.randn(3, N, D)
    with pytest.raises(RuntimeError, match="a site is called with the streams and the block"):
        HyperConnection.for_site(D)(streams)
    with pytest.raises(RuntimeError, match="the head is called with the streams alone"):
        HyperConnection.for_head(D)(streams, torch.tanh)


def test_autocast_of_the_block():
    site, block, streams = HyperConnection.for_site(D), nn.Linear(D, D), torch.randn(3, N, D)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = site(streams, block)
        y, post, comb = site.pre(streams)
        assert block(y).dtype == torch.bfloat16
        want = custom_ops.hc_post(block(y).float(), streams, post, comb)
    assert got.dtype == torch.float32 and torch.equal(got, want)


def test_attributes_reach_the_operators():
    torch.manual_seed(0)
    site = HyperConnection.for_site(D, sinkhorn_iters=3, norm_eps=1e-1, hc_eps=1e-2)
    streams = torch.randn(3, N, D)
    want = custom_ops.hc_pre(streams, site.fn, site.scale, site.base, hc_sinkhorn_iters=3, norm_eps=1e-1, hc_eps=1e-2)
    assert all(torch.equal(one, other) for one, other in zip(site.pre(streams), want))
    head = HyperConnection.for_head(D, norm_eps=1e-1, hc_eps=1e-2)
    assert torch.equal(head(streams), custom_ops.hc_head(streams, head.fn, head.scale, head.base, norm_eps=1e-1, hc_eps=1e-2))


def test_converted_to_bfloat16():
    site = HyperConnection.for_site(D).bfloat16()
    streams = torch.randn(3, N, D).bfloat16()
    assert site.fn.dtype == torch.bfloat16 and site(streams, nn.Identity()).dtype == torch.bfloat16


# --- a small V4: embedding, repeated; two layers of two sites; head; and the same in plain PyTorch


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.RMSNorm(D), nn.Linear(D, 2 * D), nn.Linear(2 * D, D)

    def forward(self, x):
        return self.down(torch.nn.functional.silu(self.up(self.norm(x))))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_site, self.attention = HyperConnection.for_site(D, N), Block()
        self.feed_forward_site, self.feed_forward = HyperConnection.for_site(D, N), Block()

    def forward(self, streams, apply):
        streams = apply(self.attention_site, streams, self.attention)
        return apply(self.feed_forward_site, streams, self.feed_forward)


class Model(nn.Module):
    """`apply(site, streams, block)` and `collapse(head, streams)` are the operators or the formula."""

    def __init__(self):
        super().__init__()
        self.embedding, self.layers = nn.Embedding(VOCABULARY, D), nn.ModuleList([Layer(), Layer()])
        self.head, self.norm, self.lm_head = HyperConnection.for_head(D, N), nn.RMSNorm(D), nn.Linear(D, VOCABULARY)
        # Multi-token prediction takes the streams before the head: a draft layer on the next token's embedding beside each of them.
        self.draft_norms = nn.ModuleList([nn.RMSNorm(D), nn.RMSNorm(D)])
        self.draft_projections = nn.ModuleList([nn.Linear(D, D), nn.Linear(D, D)])
        self.draft_layer, self.draft_head = Layer(), HyperConnection.for_head(D, N)

    def forward(self, tokens, apply, collapse):
        streams = self.embedding(tokens).unsqueeze(-2).expand(*tokens.shape, N, D)
        for layer in self.layers:
            streams = layer(streams, apply)
        logits = self.lm_head(self.norm(collapse(self.head, streams)))
        embedded = self.draft_norms[0](self.embedding(logits.argmax(-1)))
        draft = self.draft_projections[0](embedded).unsqueeze(-2) + self.draft_projections[1](self.draft_norms[1](streams))
        return logits, self.lm_head(self.norm(collapse(self.draft_head, self.draft_layer(draft, apply))))


def operators_apply(site, streams, block):
    return site(streams, block)


def operators_collapse(head, streams):
    return head(streams)


def weights(hc, streams, rows):
    flat = streams.flatten(-2)
    mixes = flat @ hc.fn.t() * torch.rsqrt(flat.square().mean(-1, keepdim=True) + hc.norm_eps)
    return mixes * torch.repeat_interleave(hc.scale, torch.tensor(rows)) + hc.base


def formula_apply(site, streams, block):
    pre, post, comb = weights(site, streams, [N, N, N * N]).split([N, N, N * N], -1)
    c = torch.softmax(comb.unflatten(-1, (N, N)), -1) + site.hc_eps
    c = c / (c.sum(-2, keepdim=True) + site.hc_eps)
    for _ in range(site.sinkhorn_iters - 1):
        c = c / (c.sum(-1, keepdim=True) + site.hc_eps)
        c = c / (c.sum(-2, keepdim=True) + site.hc_eps)
    x = block(((torch.sigmoid(pre) + site.hc_eps).unsqueeze(-1) * streams).sum(-2))
    return (2 * torch.sigmoid(post)).unsqueeze(-1) * x.unsqueeze(-2) + torch.einsum("...ij,...id->...jd", c, streams)


def formula_collapse(head, streams):
    return ((torch.sigmoid(weights(head, streams, [N])) + head.hc_eps).unsqueeze(-1) * streams).sum(-2)


@pytest.fixture
def model():
    torch.manual_seed(1)
    model = Model()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, HyperConnection):  # far from the even weights of the start
                module.fn.normal_(std=0.3)
                module.scale.uniform_(-1, 1)
                module.base.normal_()
    return model


@pytest.mark.parametrize("tokens", [(7,), (2, 5)], ids=str)
def test_model_is_the_formula(model, tokens):
    tokens = torch.randint(VOCABULARY, tokens)
    results = [model(tokens, *how) for how in ((operators_apply, operators_collapse), (formula_apply, formula_collapse))]
    for got, want in zip(*results):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    gradients = []
    for logits, draft in results:
        loss = nn.functional.cross_entropy(logits.flatten(0, -2), tokens.flatten()) + draft.square().mean()
        gradients.append(torch.autograd.grad(loss, tuple(model.parameters())))
    for (name, _), got, want in zip(model.named_parameters(), *gradients):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-5 + 1e-3 * float(want.abs().max()),
                                   msg=lambda text, name=name: f"{name}: {text}")


def test_model_compiles(model):
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    tokens = torch.randint(VOCABULARY, (7,))
    for got, want in zip(compiled(tokens, operators_apply, operators_collapse), model(tokens, operators_apply, operators_collapse)):
        torch.testing.assert_close(got, want)


def test_training_lowers_the_loss(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    tokens = torch.randint(VOCABULARY, (12,))
    losses = []
    for _ in range(20):
        logits, _ = model(tokens, operators_apply, operators_collapse)
        loss = nn.functional.cross_entropy(logits[:-1], tokens[1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 4
