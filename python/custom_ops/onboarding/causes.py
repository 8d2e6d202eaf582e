"""Usual mistakes as changes to a decoder block: the one that makes it agree with the reference is the cause.

A Hypothesis says what is wrong and patches the block for as long as it is tried. The numbers it tries come from the reference where it
tells them (its configuration, its modules), otherwise from what published models use.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from ..nn import GatedDeltaNet, ShortConv
from .architecture import ROUTINGS, NormSpec, RotarySpec
from .model.decoder import Decoder
from .model.mlp import ACTIVATIONS, CLAMPED_SWIGLU, Moe
from .model.norms import Norm
from .model.rotary import Rotary

THETAS = (1e4, 1e5, 1.5e5, 5e5, 1e6, 5e6, 1e7)
EPSILONS = (1e-5, 1e-6, 1e-8, 1.5625e-7, 1e-12)


@dataclass(frozen=True)
class Hypothesis:
    """text: what is wrong, and what agrees. patches: (object, attribute, value) that put it right."""

    text: str
    patches: list[tuple[object, str, object]]

    @contextmanager
    def applied(self):
        before = [(target, name, getattr(target, name)) for target, name, _ in self.patches]
        try:
            for target, name, value in self.patches:
                setattr(target, name, value)
            yield
        finally:
            for target, name, value in reversed(before):
                setattr(target, name, value)


@dataclass
class Hints:
    """What the reference says. block: its module. config: its configuration as a dict; texts of rope dicts are read from it."""

    block: nn.Module
    config: dict = field(default_factory=dict)
    thetas: tuple[float, ...] = ()

    def numbers(self, *names: str) -> list[float]:
        """Values of these attributes anywhere in the reference's block, and of these keys in its configuration."""
        found = [getattr(module, name, None) for module in self.block.modules() for name in names]
        found += [value for key, value in _walk(self.config) if key in names]
        numbers = [v for v in found if isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)]
        return list(dict.fromkeys(numbers))

    def ropes(self) -> list[dict]:
        return [value for _, value in _walk(self.config) if isinstance(value, dict) and "rope_theta" in value]

    def child(self, *endings: str) -> nn.Module | None:
        return next((module for name, module in self.block.named_modules() if name.rpartition(".")[2] in endings), None)


def _walk(value) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield key, entry
            yield from _walk(entry)


def hypotheses(block: Decoder, hints: Hints) -> Iterator[Hypothesis]:
    """All that fit the block, the usual ones first."""
    if block.self_attn is not None:
        yield from _rotary(block, hints)
        yield from _qk_norm(block, hints)
        yield from _attention(block, hints)
    elif isinstance(block.linear_attn, ShortConv):
        yield from _short_conv(block.linear_attn)
    else:
        yield from _delta_rule(block.linear_attn)
    yield from _norms(block, hints)
    yield from (_moe(block.mlp, hints) if isinstance(block.mlp, Moe) else _dense(block.mlp))
    if block.experts is not None:
        yield from _moe(block.experts, hints)
    if block.input_gate is not None:
        yield from _activations(block.input_gate, block.input_gate.act, block.input_gate.spec.activation, "activation of the block's input")
    yield from _factor(block, hints)
    yield from _residual(block)


def weight(module: nn.Module, value: Tensor, name: str = "weight") -> tuple[nn.Module, str, nn.Parameter]:
    return module, name, nn.Parameter(value.contiguous(), requires_grad=False)


# --- attention


def _rotary(block: Decoder, hints: Hints) -> Iterator[Hypothesis]:
    attention, rotary = block.self_attn, block.self_attn.rotary
    if rotary is None:
        spec = RotarySpec(next(iter(hints.thetas), 1e4), attention.spec.head_dim)
        yield Hypothesis("the rotary embedding is missing", [(attention, "rotary", Rotary(spec))])
        return
    spec = rotary.spec

    def other(text: str, **changes) -> Hypothesis:
        return Hypothesis(text, [(attention, "rotary", Rotary(replace(spec, **changes)))])

    for theta in dict.fromkeys([*hints.thetas, *(float(rope["rope_theta"]) for rope in hints.ropes()), *THETAS]):
        if theta != spec.theta:
            yield other(f"rotary base: theta is {spec.theta:g}, the reference agrees with {theta:g}", theta=theta)
    pairing = "interleaved" if spec.pairing == "half" else "half"
    yield other(f"rotary pairing: is '{spec.pairing}', the reference agrees with '{pairing}'", pairing=pairing)
    head = attention.spec.head_dim
    for dims in (head, head // 2, head // 4):
        if dims != spec.dims and dims % 2 == 0 and dims:
            yield other(f"rotary dims: {spec.dims} of {head} turn, the reference agrees with {dims}", dims=dims)
    for rope in hints.ropes():
        kind = rope.get("rope_type", "default")
        scaling = {key: value for key, value in rope.items() if key not in ("rope_theta", "rope_type")}
        if kind != spec.kind or (kind != "default" and scaling != spec.scaling):
            yield other(f"rotary scaling: is '{spec.kind}', the reference agrees with '{kind}' {scaling}", kind=kind, scaling=scaling)
    if spec.kind != "default":
        yield other(f"rotary scaling: is '{spec.kind}', the reference agrees with none", kind="default")
    yield Hypothesis("the reference does not rotate this block's queries and keys", [(attention, "rotary", None)])


def _qk_norm(block: Decoder, hints: Hints) -> Iterator[Hypothesis]:
    attention, spec = block.self_attn, block.self_attn.spec
    if attention.q_norm is not None and spec.qk_norm != "none":
        order = "after_rope" if spec.qk_norm == "before_rope" else "before_rope"
        if spec.qk_norm_over == "head":
            yield Hypothesis(f"norm of query and key: is {spec.qk_norm}, the reference agrees with {order}",
                             [(attention, "spec", replace(spec, qk_norm=order))])
        yield from offsets("norms of query and key", [attention.q_norm, attention.k_norm])
        yield Hypothesis("the reference does not norm query and key", [(attention, "spec", replace(spec, qk_norm="none"))])
        return
    eps = next(iter(hints.numbers("variance_epsilon", "rms_norm_eps", "eps")), 1e-6)
    if hints.child("qk_norm") is not None:  # one without weights for both
        norm = Norm(spec.head_dim, NormSpec("rms", eps, weight=False))
        changed = replace(spec, qk_norm="after_rope")
        yield Hypothesis("norm of query and key is missing: the reference has one without weights",
                         [(attention, "spec", changed), (attention, "q_norm", norm), (attention, "k_norm", norm)])
    theirs = [hints.child("q_norm", "q_layernorm", "query_layernorm"), hints.child("k_norm", "k_layernorm", "key_layernorm")]
    if any(module is None or getattr(module, "weight", None) is None for module in theirs):
        return
    for plus, order in itertools.product((0.0, 1.0), ("before_rope", "after_rope")):
        over = "head" if theirs[0].weight.numel() == spec.head_dim else "projection"
        if (order, over) == ("after_rope", "projection"):
            continue
        norms = []
        for module in theirs:
            norm = Norm(module.weight.numel(), NormSpec("rms", eps), module.weight.device)
            norm.weight.data.copy_(module.weight.detach().float() + plus)
            norms.append(norm)
        changes = replace(spec, qk_norm=order, qk_norm_over=over)
        yield Hypothesis(f"norm of query and key is missing: the reference has one {order.replace('_', ' the ')}",
                         [(attention, "spec", changes), (attention, "q_norm", norms[0]), (attention, "k_norm", norms[1])])


def _attention(block: Decoder, hints: Hints) -> Iterator[Hypothesis]:
    attention, spec = block.self_attn, block.self_attn.spec

    def other(text: str, **changes) -> Hypothesis:
        return Hypothesis(text, [(attention, "spec", replace(spec, **changes))])

    scales = [*hints.numbers("scaling"), spec.head_dim**-0.5, 1.0, *(value**-0.5 for value in hints.numbers("query_pre_attn_scalar"))]
    for scale in dict.fromkeys(scales):
        if not math.isclose(scale, spec.scale):
            yield other(f"attention scale: is {spec.scale:g}, the reference agrees with {scale:g}", scale=scale)
    for cap in [*hints.numbers("attn_logit_softcapping"), None]:
        if cap != spec.softcap:
            yield other(f"attention softcap: is {spec.softcap}, the reference agrees with {cap}", softcap=cap)
    for window in [*(int(value) for value in hints.numbers("sliding_window")), None]:
        if window != spec.window or spec.chunked:
            yield other(f"sliding window: is {spec.window}, the reference agrees with {window}", window=window, chunked=False)
    for chunk in map(int, hints.numbers("attention_chunk_size")):
        if (chunk, True) != spec.span:
            yield other(f"attention is not chunked by {chunk}, the reference's is", window=chunk, chunked=True)
    if spec.temperature is not None:
        yield other("the reference's queries have no temperature", temperature=None)
    for pair in itertools.product(hints.numbers("attn_scale"), hints.numbers("floor_scale")):
        if pair != spec.temperature:
            yield other("temperature of queries: the reference agrees with 1 + {:g} log(1 + floor((p + 1) / {:g}))".format(*pair),
                        temperature=pair)
    if spec.output_gate:
        rows = attention.q_proj.weight.unflatten(0, (spec.heads, 2, spec.head_dim))
        yield Hypothesis("query and output gate are swapped in q_proj", [weight(attention.q_proj, rows.flip(1).flatten(0, 2))])
    if spec.sinks:
        yield Hypothesis("the reference has no attention sinks", [weight(attention, torch.full_like(attention.sinks, -1e4), "sinks")])
    if (attention.v_norm is None) == (hints.child("v_norm") is not None):
        eps = next(iter(hints.numbers("eps", "rms_norm_eps")), 1e-6)
        norm = Norm(spec.head_dim, NormSpec("rms", eps, weight=False)) if attention.v_norm is None else None
        yield Hypothesis("norm of the value is missing: the reference has one" if norm else "the reference does not norm the value",
                         [(attention, "v_norm", norm)])
    if attention.v_proj is not None:
        yield Hypothesis("keys and values are swapped", [(attention, "k_proj", attention.v_proj), (attention, "v_proj", attention.k_proj)])


# --- linear attention


def _short_conv(layer: ShortConv) -> Iterator[Hypothesis]:
    yield Hypothesis("the convolution is flipped: its taps stand newest first", [weight(layer.conv, layer.conv.weight.flip(-1))])
    thirds = [dict(zip(("weight", "bias"), parts)) for parts in zip(*(
        getattr(layer.in_proj, name).chunk(3) for name in ("weight", "bias") if getattr(layer.in_proj, name) is not None))]
    for order, text in (((1, 0, 2), "B and C are swapped in in_proj"), ((0, 2, 1), "C and x are swapped in in_proj")):  # B x is x B
        yield Hypothesis(text, [weight(layer.in_proj, torch.cat([thirds[i][name] for i in order]), name) for name in thirds[0]])


def _delta_rule(layer: GatedDeltaNet) -> Iterator[Hypothesis]:
    yield Hypothesis("the convolution is flipped: its taps stand newest first", [weight(layer.conv1d, layer.conv1d.weight.flip(-1))])
    yield Hypothesis("a and b are swapped: the decay's projection and the write strength's",
                     [(layer, "in_proj_a", layer.in_proj_b), (layer, "in_proj_b", layer.in_proj_a)])
    sizes = [layer.num_k_heads * layer.head_k_dim] * 2 + [layer.num_v_heads * layer.head_v_dim]
    q, k, v = layer.in_proj_qkv.weight.split(sizes)
    convs = layer.conv1d.weight.split(sizes)
    yield Hypothesis("q and k are swapped in in_proj_qkv", [weight(layer.in_proj_qkv, torch.cat((k, q, v)))])
    yield Hypothesis("q and k are swapped in in_proj_qkv and conv1d", [weight(layer.in_proj_qkv, torch.cat((k, q, v))),
                                                                      weight(layer.conv1d, torch.cat((convs[1], convs[0], convs[2])))])
    each, heads = layer.num_v_heads // layer.num_k_heads, layer.num_v_heads
    if each > 1:
        tiled = torch.arange(heads).view(each, -1).T.flatten()
        yield Hypothesis("value heads are in tiled order, the reference groups those of a key head", _value_heads(layer, tiled, sizes))
    gate = "sigmoid" if layer.output_gate == "silu" else "silu"
    yield Hypothesis(f"output gate: is {layer.output_gate}, the reference agrees with {gate}", [(layer, "output_gate", gate)])
    yield from offsets("norm inside linear attention", [layer.norm])
    for eps in EPSILONS:
        if eps != layer.norm_eps:
            yield Hypothesis(f"epsilon of the norm inside linear attention: is {layer.norm_eps:g}, the reference agrees with {eps:g}",
                             [(layer, "norm_eps", eps)])


def _value_heads(layer: GatedDeltaNet, order: Tensor, sizes: list[int]) -> list:
    def heads(tensor: Tensor, dim: int = 0) -> Tensor:
        return tensor.unflatten(dim, (layer.num_v_heads, -1)).index_select(dim, order).flatten(dim, dim + 1)

    q, k, v = layer.in_proj_qkv.weight.split(sizes)
    conv = layer.conv1d.weight.split(sizes)
    return [weight(layer.in_proj_qkv, torch.cat((q, k, heads(v)))), weight(layer.conv1d, torch.cat((*conv[:2], heads(conv[2])))),
            *(weight(module, heads(module.weight)) for module in (layer.in_proj_z, layer.in_proj_a, layer.in_proj_b)),
            weight(layer, layer.A_log[order], "A_log"), weight(layer, layer.dt_bias[order], "dt_bias"),
            weight(layer.out_proj, heads(layer.out_proj.weight, 1))]


# --- norms, feed-forward, residual


def _norms(block: Decoder, hints: Hints) -> Iterator[Hypothesis]:
    norms = [module for module in block.modules() if isinstance(module, Norm)]
    names = block.spec.norms()
    yield from offsets("norms of the residual stream", [getattr(block, name) for name in names])
    yield from offsets("all norms", norms)
    have = norms[0].spec.eps
    for eps in dict.fromkeys([*hints.numbers("variance_epsilon", "eps", "rms_norm_eps", "norm_eps", "layer_norm_eps"), *EPSILONS]):
        if eps == have:
            continue
        text = f"epsilon of the norms: is {have:g}, the reference agrees with {eps:g}"
        every = [(norm, "spec", replace(norm.spec, eps=eps)) for norm in norms]
        if isinstance(block.linear_attn, GatedDeltaNet):
            yield Hypothesis(text, [*every, (block.linear_attn, "norm_eps", eps)])
        yield Hypothesis(text, every)
    kind = "layer" if block.spec.norm.kind == "rms" else "rms"
    yield Hypothesis(f"norms: are '{block.spec.norm.kind}', the reference agrees with '{kind}'",
                     [(norm, "spec", replace(norm.spec, kind=kind)) for norm in norms])
    if len(names) == 2:
        first, second = (getattr(block, name) for name in names)
        yield Hypothesis(f"{names[0]} and {names[1]} are swapped", [(block, names[0], second), (block, names[1], first)])


def offsets(what: str, norms: list[nn.Module]) -> Iterator[Hypothesis]:
    norms = [norm for norm in norms if norm is not None and norm.weight is not None]
    if not norms:
        return
    for plus, text in ((1.0, f"{what}: weights are used as they are stored, the reference uses 1 + w"),
                       (-1.0, f"{what}: used as 1 + w, the reference uses the weights as they are stored")):
        yield Hypothesis(text, [weight(norm, norm.weight + plus) for norm in norms])


def _dense(mlp) -> Iterator[Hypothesis]:
    if mlp.gate_proj is not None:
        yield Hypothesis("gate and up are swapped in the MLP", [(mlp, "gate_proj", mlp.up_proj), (mlp, "up_proj", mlp.gate_proj)])
    yield from _activations(mlp, mlp.act, mlp.spec.activation)


def _activations(owner: nn.Module, have, name: str, what: str = "activation") -> Iterator[Hypothesis]:
    seen = [have]
    for other, function in ACTIVATIONS.items():
        if not any(function is known for known in seen):
            seen.append(function)
            yield Hypothesis(f"{what}: is '{name}', the reference agrees with '{other}'", [(owner, "act", function)])


def _moe(moe: Moe, hints: Hints) -> Iterator[Hypothesis]:
    spec, experts = moe.spec, moe.experts
    swapped = [weight(experts, experts.up_proj, "gate_proj"), weight(experts, experts.gate_proj, "up_proj")]
    if experts.gate_bias is not None:
        swapped += [weight(experts, experts.up_bias, "gate_bias"), weight(experts, experts.gate_bias, "up_bias")]
    yield Hypothesis("gate and up are swapped in the experts", swapped)
    both = torch.cat((experts.gate_proj, experts.up_proj), 1)
    yield Hypothesis("fused experts hold gate and up in alternating rows, read as halves",
                     [weight(experts, both[:, 0::2], "gate_proj"), weight(experts, both[:, 1::2], "up_proj")])
    if moe.shared_expert is not None:
        shared = moe.shared_expert
        yield Hypothesis("gate and up are swapped in the shared expert",
                         [(shared, "gate_proj", shared.up_proj), (shared, "up_proj", shared.gate_proj)])

    def other(text: str, **changes) -> Hypothesis:
        changed = replace(spec, **changes)
        return Hypothesis(text, [(moe, "spec", changed), (experts, "spec", changed)])

    if spec.routing != "topk_softmax":  # whose weights have the sum 1
        ours, theirs = ("", "not ") if spec.normalise else ("not ", "")
        yield other(f"routing: weights of the chosen experts are {ours}divided by their sum, in the reference {theirs}divided",
                    normalise=not spec.normalise)
    for routing in ROUTINGS:
        if routing != spec.routing:
            yield other(f"routing: is '{spec.routing}', the reference agrees with '{routing}'", routing=routing)
    for count in hints.numbers("top_k", "num_experts_per_tok", "top_k_experts"):
        if int(count) != spec.top_k and 1 <= count <= spec.experts:
            yield other(f"experts per token: are {spec.top_k}, the reference agrees with {int(count)}", top_k=int(count))
    for scale in dict.fromkeys([*hints.numbers("routed_scaling_factor"), 1.0]):
        if scale != spec.scale:
            yield other(f"routing: weights are multiplied by {spec.scale:g}, the reference agrees with {scale:g}", scale=scale)
    if moe.expert_scale is not None:
        yield Hypothesis("routing: the reference's experts have no factor on their weights", [(moe, "expert_scale", None)])
    if moe.gate_norm is not None:
        yield Hypothesis("routing: the reference's router sees what is not normed", [(moe, "gate_norm", None)])
    if moe.expert_bias is not None:
        yield Hypothesis("routing: the reference chooses experts without a bias", [(moe, "expert_bias", None)])
    if spec.activation != CLAMPED_SWIGLU:
        yield from _activations(experts, experts.act, spec.activation)


def _factor(block: Decoder, hints: Hints) -> Iterator[Hypothesis]:
    theirs = getattr(hints.block, "layer_scalar", None)
    if theirs is None or (block.scalar is not None and torch.equal(block.scalar.float(), theirs.float())):
        return
    ours = 1.0 if block.scalar is None else block.scalar.item()
    yield Hypothesis(f"the block's result is multiplied by {ours:g}, in the reference by {theirs.item():g}",
                     [weight(block, theirs.detach().to(next(block.mlp.parameters()).dtype), "scalar")])


def _residual(block: Decoder) -> Iterator[Hypothesis]:
    if block.spec.residual == "hyper_connection":
        return
    text = f"residual: is '{block.spec.residual}', the reference agrees with "
    for mode in ("standard", "parallel", "four_norm", "post_norm", "depth_scaled"):
        spec = replace(block.spec, residual=mode)
        same = block.spec.factor == 1 and {mode, block.spec.residual} == {"standard", "depth_scaled"}
        if mode != block.spec.residual and not same and all(hasattr(block, name) for name in spec.norms()):
            yield Hypothesis(f"{text}'{mode}'", [(block, "spec", spec)])
    if block.spec.factor != 1:
        yield Hypothesis(f"branches are multiplied by {block.spec.factor:g}, in the reference by 1",
                         [(block, "spec", replace(block.spec, factor=1.0))])
