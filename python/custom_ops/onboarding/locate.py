"""Where two models that disagree begin to, and which usual mistake explains it.

Every block runs alone on what the reference's block got, so errors do not pile up: the first block whose result differs holds the mistake.
Its parts are compared in order; then the hypotheses of causes.py are tried on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from .causes import EPSILONS, Hints, Hypothesis, hypotheses, offsets, weight
from .model import LlmModel
from .model.call import Call
from .source import Source
from .taps import Reference, Taps

#: NMSE of one block on equal inputs. float32 rounding gives 1e-14 to 1e-11 (delta rule), an epsilon of 1e-6 for 1e-5 gives 1e-9 and more.
SAME = {torch.float32: 2e-10, torch.bfloat16: 3e-4, torch.float16: 1e-5}
#: A change that takes the error down by this much is a part of the cause even where something else is wrong too.
PART_OF_IT = 4.0
MOST_CAUSES = 4

#: What a part that differs usually means, where no hypothesis fits; facts of the pitfalls' list.
_PROJECTION = "projection path, a fused layout or a missing bias"
_QK_NORM = "norm of query and key: convention, epsilon, per head or projection"
READINGS = {
    "embedding": "wrong embedding path or scale", "input_layernorm": "norm convention (w or 1 + w), epsilon, or the norm's path",
    "q_proj": _PROJECTION, "k_proj": _PROJECTION, "v_proj": _PROJECTION, "q_norm": _QK_NORM, "k_norm": _QK_NORM,
    "attention": "rotation (base, pairing, dims), scale, window, softcap, sinks or the order of norm and rotation",
    "linear attention": "convolution, order of its inputs, decay or write strength",
    "post_attention_layernorm": "residual mode, norm convention or epsilon", "router": "the router's path or its inputs",
    "v_norm": "norm of the value", "experts": "gate and up, activation, weights of the chosen or the layout of the experts",
    "input": "the block's own input: its embedding, projection, norm or gate",
    "mlp": "gate and up, activation, routing or the layout of the experts", "block": "residual mode or a factor on the branches",
    "final norm": "path, convention or epsilon of the final norm", "head": "head path, tie, softcap or logit scale",
    "memory": "positions, window or state after the prompt: prefill agrees, the decoded token does not",
}


@dataclass
class Finding:
    """where: "embedding", "block 3", "final norm", "head" or "memory"; part: the first of its parts that differs, and by what NMSE.
    causes: hypotheses that explain it, together down to an NMSE of `left` of the whole; empty where none does."""

    where: str
    part: str
    nmse: float
    causes: list[str] = field(default_factory=list)
    left: float = math.nan
    blocks: list[float] = field(default_factory=list)  # NMSE of every block on the reference's input

    @property
    def cause(self) -> str:
        return "; and ".join(self.causes)

    def lines(self) -> Iterator[str]:
        part = "" if self.part == self.where else f", {self.part}"
        yield f"first difference: {self.where}{part} (NMSE {self.nmse:.1e} on the reference's input)"
        if self.causes:
            yield f"cause: {self.cause} (with that NMSE {self.left:.1e})"
        else:
            yield f"no usual mistake explains it; look at: {READINGS.get(self.part, READINGS['block'])}"


def nmse(got: Tensor, want: Tensor) -> float:
    """Mean squared error over the mean square of `want`, in float64; of nothing but zeros 0 or 1. want: also with heads before tokens."""
    if got.shape != want.shape and want.dim() == 4 and want.transpose(1, 2).shape == got.shape:
        want = want.transpose(1, 2)
    want = want.reshape(got.shape).double()
    power = want.square().mean().item()
    error = (got.double() - want).square().mean().item()
    return error / power if power else float(error > 0)


def _worse(error: float, bound: float) -> bool:
    return not error <= bound  # NaN is worse than everything


@torch.no_grad()
def locate(model: LlmModel, reference: Reference, source: Source, tokens: Tensor) -> Finding:
    """tokens [B, L + 1]: the prompt and the token that was decoded. Looks at the prompt: where all of it agrees, it is the memory."""
    return _Search(model, reference, source, tokens[:, :-1]).run()


class _Search:
    def __init__(self, model: LlmModel, reference: Reference, source: Source, tokens: Tensor):
        self.model, self.reference, self.source, self.tokens = model, reference, source, tokens
        self.same = SAME[model.dtype]
        taps = Taps()
        for index, block in enumerate(reference.blocks):
            taps.input(f"in {index}", block)
            taps.output(f"out {index}", block)
        taps.output("norm", reference.norm)
        with taps as self.seen:
            self.logits, _ = reference.run(tokens)

    def run(self) -> Finding:
        embedded = self.model.embedded(self.tokens)
        if _worse(nmse(embedded, self.seen["in 0"]), self.same):
            text = "the embedding is multiplied by {}, in the reference by {}"
            return self._scaled("embedding", embedded, self.seen["in 0"], text, self.model.architecture.embed_scale)
        errors = [nmse(self.block(index), self.seen[f"out {index}"]) for index in range(len(self.model.blocks))]
        first = next((index for index, error in enumerate(errors) if _worse(error, self.same)), None)
        finding = self._tail() if first is None else self._in_block(first)
        finding.blocks = errors
        return finding

    # --- a block

    def call(self) -> Call:
        batch, length = self.tokens.shape
        call = Call(batch, length, None, [0] * batch, None, self.tokens.device, self.model.dtype)
        self.model.begin(self.tokens, call)
        return call

    def block(self, index: int) -> Tensor:
        call, source = self.call(), getattr(self.model.blocks[index].spec.mixer, "shares", None)
        if source is not None:
            self.model.blocks[source](self.seen[f"in {source}"], call)
        return self.model.blocks[index](self.seen[f"in {index}"], call)

    def _in_block(self, index: int) -> Finding:
        theirs = Taps()
        for name, _, module, side in self._pairs(index):
            getattr(theirs, side)(name, module)
        with theirs as want:
            self.reference.run(self.tokens)
        want["block"] = self.seen[f"out {index}"]
        block, hints = self.model.blocks[index], self.hints(index)
        return explained(f"block {index}", lambda: self.part_errors(index, want), lambda: hypotheses(block, hints), self.same)

    def hints(self, index: int) -> Hints:
        return Hints(self.reference.blocks[index], self.reference.model.config.to_dict(), tuple(_fitted_thetas(self.reference.model)))

    def part_errors(self, index: int, want: dict[str, Tensor]) -> dict[str, float]:
        """NMSE of the parts that both models have, in the order a token meets them; "block" is the last."""
        ours, names = Taps(), []
        for name, module, _, side in self._pairs(index):
            names.append(name)
            getattr(ours, side)(name, module)
        with ours as got:
            got["block"] = self.block(index)
        return {name: nmse(got[name], want[name]) for name in (*names, "block")
                if name in got and name in want and got[name].numel() == want[name].numel()}

    def _pairs(self, index: int) -> Iterator[tuple[str, nn.Module, nn.Module, str]]:
        """(name, our module, the reference's, "output" | "input") in the order a token meets them."""
        block, paths = self.model.blocks[index], self.source.paths.layers[index]

        def pair(name: str, mine: nn.Module | None, path: str | None, side: str = "output"):
            other = None if path is None else self.reference.child(index, path)
            if mine is not None and other is not None:
                yield name, mine, other, side

        norms = [name for name in block.spec.norms() if name in paths.decoder]
        if "input_layernorm" in norms:
            yield from pair("input_layernorm", block.input_layernorm, paths.decoder["input_layernorm"])
        if block.self_attn is not None:
            for name in ("q_proj", "k_proj", "v_proj", "q_norm", "k_norm"):
                yield from pair(name, getattr(block.self_attn, name), paths.attention.get(name))
            yield from pair("v_norm", block.self_attn.v_norm, f"{paths.decoder['self_attn']}.v_norm")
            yield from pair("attention", block.self_attn.o_proj, paths.attention["o_proj"], "input")
            yield from pair("o_proj", block.self_attn.o_proj, paths.attention["o_proj"])
        else:
            for name, path in paths.linear_attention.items():
                if name.startswith("in_proj"):
                    yield from pair(name, getattr(block.linear_attn, name, None), path)
            yield from pair("linear attention", block.linear_attn.out_proj, paths.linear_attention["out_proj"], "input")
            yield from pair("out_proj", block.linear_attn.out_proj, paths.linear_attention["out_proj"])
        for name in ("post_attention_layernorm", "pre_feedforward_layernorm"):
            if name in norms:
                yield from pair(name, getattr(block, name), paths.decoder[name])
        if not paths.moe:
            for role in ("gate", "up", "down"):
                yield from pair(f"mlp {role}", getattr(block.mlp, f"{role}_proj"), paths.mlp.get(role))
        elif self.model.architecture.layers[index].mlp.routing != "topk_sigmoid":  # its router gives what comes after the sigmoid
            yield from pair("router", block.mlp.gate, paths.mlp.get("gate") or paths.mlp.get("router"))
        yield from pair("mlp", block.mlp, paths.decoder["mlp"])
        if block.experts is not None:
            yield from pair("router", block.experts.gate, paths.decoder["router"])
            yield from pair("experts", block.experts.experts, paths.decoder["experts"])
        for name in ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "post_feedforward_layernorm"):
            if name in norms:
                yield from pair(name, getattr(block, name), paths.decoder[name])
        if block.input_gate is not None:
            yield from pair("input", block.input_gate.norm, paths.decoder["post_per_layer_input_norm"])

    # --- after the blocks

    def _tail(self) -> Finding:
        last, norm, model = self.seen[f"out {len(self.model.blocks) - 1}"], self.seen["norm"], self.model
        if _worse(nmse(model.final_layernorm(last), norm), self.same):
            return explained("final norm", lambda: {"final norm": nmse(model.final_layernorm(last), norm)}, self._of_final_norm, self.same)
        error = nmse(model.head(norm), self.logits)
        if not _worse(error, self.same):
            return Finding("memory", "memory", error)
        found = explained("head", lambda: {"head": nmse(model.head(norm), self.logits)}, self._of_head, self.same)
        text = "logits are multiplied by {}, in the reference by {}"
        return found if found.causes else self._scaled("head", model.head(norm), self.logits, text, model.architecture.logit_scale)

    def _of_final_norm(self) -> Iterator[Hypothesis]:
        final = self.model.final_layernorm
        yield from offsets("final norm", [final])
        for eps in dict.fromkeys([*Hints(self.reference.norm).numbers("variance_epsilon", "eps"), *EPSILONS]):
            if eps != final.spec.eps:
                yield Hypothesis(f"epsilon of the final norm: is {final.spec.eps:g}, the reference agrees with {eps:g}",
                                 [(final, "spec", replace(final.spec, eps=eps))])

    def _of_head(self) -> Iterator[Hypothesis]:
        model, a = self.model, self.model.architecture
        for cap in [*Hints(nn.Module(), self.reference.model.config.to_dict()).numbers("final_logit_softcapping"), None]:
            if cap != a.softcap:
                yield Hypothesis(f"softcap of the logits: is {a.softcap}, the reference agrees with {cap}",
                                 [(model, "architecture", replace(a, softcap=cap))])
        theirs = self.reference.model.get_output_embeddings().weight
        if theirs.shape == model.lm.weight.shape:
            ours = "the embedding" if model.lm.weight is model.embed.weight else "a weight of its own"
            other = "the embedding" if theirs is self.reference.model.get_input_embeddings().weight else "a weight of its own"
            yield Hypothesis(f"the head is {ours}, in the reference {other}", [weight(model.lm, theirs.detach())])

    def _scaled(self, where: str, got: Tensor, want: Tensor, text: str, have: float) -> Finding:
        """Whether a factor explains the difference: the least squares one."""
        factor = ((got.double() * want.double()).sum() / got.double().square().sum()).item()
        left = nmse(got.double() * factor, want)
        causes = [] if _worse(left, 10 * self.same) else [text.format(f"{have:g}", f"{have * factor:g}")]
        return Finding(where, where, nmse(got, want), causes, left)


def explained(where: str, errors: Callable[[], dict[str, float]], candidates: Callable[[], Iterator[Hypothesis]], same: float) -> Finding:
    """Puts the first part that differs right, then the next one, with the hypothesis that leaves least of the whole; at most MOST_CAUSES.

    errors: of the parts in order, the last is the whole. Every patch is taken back.
    """
    now = errors()
    names, whole = list(now), list(now)[-1]
    part = _first_worse(now, names, same)
    finding = Finding(where, part, now[part], left=now[whole])
    with ExitStack() as patched:
        while part is not None and len(finding.causes) < MOST_CAUSES:
            found, now = _best(errors, candidates(), part, now, same)
            if found is None:
                break
            patched.enter_context(found.applied())
            finding.causes.append(found.text)
            # Parts are paired by the map: where it is wrong, what comes before may agree with the wrong one. The whole cannot.
            part = _first_worse(now, names[names.index(part) :], same) if _worse(now[whole], same) else None
    if part is not None and _worse(now[whole], finding.left / 100):
        finding.causes.clear()  # what is left is most of it: nothing was explained
    else:
        finding.left = now[whole]
    return finding


def _best(errors, candidates: Iterator[Hypothesis], part: str, now: dict[str, float], same: float):
    """(the hypothesis that puts `part` right, or nearly, and leaves least of the whole; the errors with it), or (None, now)."""
    whole = list(now)[-1]
    best, found, left = (now[part] / PART_OF_IT, float("inf")), None, now
    for candidate in candidates:
        with candidate.applied():
            trial = errors()
        rank = max(same, trial.get(part, float("inf"))), trial[whole]
        if rank < best:
            best, found, left = rank, candidate, trial
        if trial[whole] <= same / 10:
            break
    return found, left


def _first_worse(errors: dict[str, float], names: list[str], same: float) -> str | None:
    return next((name for name in names if _worse(errors.get(name, float("inf")), same)), None)


def _fitted_thetas(reference: nn.Module) -> Iterator[float]:
    """The bases behind the reference's tables: frequency i is theta^(-2 i / dims)."""
    for name, buffer in reference.named_buffers():
        if name.endswith("inv_freq") and "original" not in name and buffer.dim() == 1 and len(buffer) > 1:
            theta = buffer.double()[1].item() ** -len(buffer)
            if 1 < theta < 1e12:
                yield float(f"{theta:.6g}")
