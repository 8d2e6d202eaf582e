"""Weights of a checkpoint into an LlmModel: a plan (which tensor goes where, changed how), its three lists, and a loader that streams.

The plan is made from names and shapes alone. Loading reads one tensor of the checkpoint at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from ..nn.linear_attention import grouped_rows
from .architecture import DeltaRuleSpec, MoeSpec
from .blocks import SHARED, lacking, shared_from
from .build import build_architecture, expert_names
from .errors import OnboardingError, require_none
from .model import LlmModel
from .names import BUFFERS, LayerPaths
from .progress import Progress, untold
from .shapes import experts_layout
from .source import Source, open_source

_AT_ONCE = 2**20  # values that require_finite looks at


@dataclass(frozen=True)
class Piece:
    """What one tensor of the checkpoint, or a part of it, becomes.

    rows:      slice or index of its first dimension that is taken; None: all.
    second:    slice of its last but one dimension.
    last:      slice of its last dimension.
    transpose: of its last two dimensions, after that.
    plus:      added, in float32: 1 where a norm's weight is stored w and used 1 + w.
    times:     a factor before that, in float32.
    where:     index of the parameter that is written.
    """

    source: str
    target: str
    rows: slice | Tensor | None = None
    second: slice | None = None
    last: slice | None = None
    transpose: bool = False
    plus: float = 0.0
    times: float = 1.0
    where: int | None = None

    def apply(self, tensor: Tensor) -> Tensor:
        if self.rows is not None:
            tensor = tensor[self.rows]
        if self.second is not None:
            tensor = tensor[..., self.second, :]
        if self.last is not None:
            tensor = tensor[..., self.last]
        if self.transpose:
            tensor = tensor.mT
        return tensor.float() * self.times + self.plus if self.plus or self.times != 1 else tensor

    def shape(self, source: tuple[int, ...]) -> tuple[int, ...]:
        """Of the result; IndexError or RuntimeError where a tensor of this shape has no such part."""
        rows = self.rows.to("meta") if isinstance(self.rows, Tensor) else self.rows
        return tuple(replace(self, rows=rows).apply(torch.empty(source, device="meta")).shape)


@dataclass
class Plan:
    """pieces by tensor of the checkpoint, and what does not fit. A model loads when all three lists are empty.

    unmapped:    parameters of the model that no tensor fills.
    unused:      tensors of the checkpoint that nothing reads.
    wrong_shape: one sentence for each piece that has another shape than its place.
    ignored:     tensors that the map knows and LlmModel has no part for: towers of other modalities, further heads, a tied head, keys and
                 values of blocks that use those of another.
    """

    pieces: dict[str, list[Piece]]
    unmapped: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    wrong_shape: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def require(self, what: str) -> None:
        """Raises OnboardingError with the lists that are not empty."""
        require_none(f"{what}: the weights do not fit the model",
                     {"unmapped parameters": self.unmapped, "unused tensors": self.unused, "wrong shapes": self.wrong_shape})


def load(model: str | Path | Source, *, map_dirs: Iterable[str | Path] = (), dtype: torch.dtype | None = None, device=None,
         progress: Progress = untold) -> LlmModel:
    """The LlmModel of a model directory, with its weights.

    dtype:    of the parameters; default that of the checkpoint's embedding. Norms are float32 always.
    progress: called with the bytes of the checkpoint read so far and those to read.
    Reads one tensor at a time: the peak is the model and its largest tensor.
    Raises OnboardingError with the three lists of Plan where they are not empty, before a weight is read; and where a weight is not finite.
    """
    source = model if isinstance(model, Source) else open_source(model, map_dirs)
    result = meta_model(source, dtype or source.dtype())
    plan = make_plan(source, result)
    plan.require(str(source.checkpoint.folder))
    result.to_empty(device=device or "cpu")
    result.tie()
    fill(result, source, plan, progress)
    return result.eval().requires_grad_(False)


def meta_model(source: Source, dtype: torch.dtype) -> LlmModel:
    """Names and shapes of the parameters, without values. Raises OnboardingError where config.json describes what LlmModel cannot be."""
    try:
        return LlmModel(build_architecture(source), device="meta", dtype=dtype)
    except RuntimeError as error:
        if isinstance(error, OnboardingError):
            raise
        raise OnboardingError(f"{source.checkpoint.folder}: config.json describes no model that LlmModel can be: {error}") from None


@torch.no_grad()
def fill(model: LlmModel, source: Source, plan: Plan, progress: Progress = untold) -> None:
    parameters = dict(model.named_parameters())
    tensors = source.checkpoint.tensors
    done, whole = 0, sum(tensors[name].nbytes for name in plan.pieces)
    for name, pieces in plan.pieces.items():
        tensor = source.checkpoint.read(name)
        require_finite(tensor, name, source.checkpoint.folder)
        for piece in pieces:
            place = parameters[piece.target]
            (place if piece.where is None else place[piece.where]).copy_(piece.apply(tensor))
        source.checkpoint.forget(name)
        done += tensors[name].nbytes
        progress(done, whole)
    source.checkpoint.close()


def require_finite(tensor: Tensor, name: str, where: str | Path) -> None:
    """Raises OnboardingError with the number of values of a tensor, or of a part of it, that are not; `where` begins the text."""
    if tensor.numel():
        rows = max(1, _AT_ONCE * len(tensor) // tensor.numel())  # isfinite makes two copies of what it looks at
        count = sum(int(part.numel() - part.isfinite().sum()) for part in tensor.split(rows))
        if count:
            raise OnboardingError(f"{where}: {count} of the {tensor.numel()} values of {name} are NaN or infinite")


def make_plan(source: Source, model: LlmModel) -> Plan:
    """model: only names and shapes of its parameters are read; a meta device is enough."""
    pieces = defaultdict(list)
    for piece in _Planner(source, model).pieces():
        pieces[piece.source].append(piece)
    plan = Plan({name: found for name, found in pieces.items() if source.has(name)})
    parameters = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    filled = {piece.target for found in plan.pieces.values() for piece in found}
    plan.unmapped = [name for name in parameters if name not in filled]
    plan.wrong_shape = [text for found in plan.pieces.values() for piece in found if (text := _misfit(piece, source, parameters))]
    rest = [name for name in source.checkpoint.names if name not in plan.pieces]
    idle = tuple(f"{paths.attention[key]}." for layer, paths in enumerate(source.paths.layers)
                 for key in lacking(source.found, layer) if key in paths.attention and shared_from(source.found, layer) is not None)
    plan.unused = [name for name in rest if name in source.paths.unused or (_is_text(source, name) and not name.startswith(idle))]
    plan.ignored = [name for name in rest if name not in plan.unused]
    return plan


def _is_text(source: Source, name: str) -> bool:
    """Below the decoder blocks: whatever is there has to be read."""
    return name.startswith(source.paths.model["blocks"] + ".") and not name.endswith(BUFFERS)


def _misfit(piece: Piece, source: Source, parameters: dict[str, tuple[int, ...]]) -> str:
    have = source.shape(piece.source)
    if piece.target not in parameters:
        return f"{piece.source} {list(have)}: the model has no {piece.target}"
    want = parameters[piece.target]
    place = want if piece.where is None else want[1:]
    try:
        fits = piece.shape(have) == place and (piece.where is None or piece.where < want[0])
    except (IndexError, RuntimeError):
        fits = False
    return "" if fits else f"{piece.source} {list(have)} does not fit {piece.target} {list(want)}"


class _Planner:
    """Pieces of every part that the map located, whether or not the checkpoint has a tensor of that name."""

    def __init__(self, source: Source, model: LlmModel):
        self.source, self.model, self.traits = source, model, source.family.traits

    def pieces(self):
        model, architecture = self.source.paths.model, self.model.architecture
        yield Piece(model["embed"] + ".weight", "embed.weight")
        if not architecture.tied:
            yield from self._linear(model["lm"], "lm")
        yield from self._norm(model["final_layernorm"], "final_layernorm", self.traits["norm_offset"])
        if architecture.layer_inputs is not None:
            yield from self._linear(model["embed_tokens_per_layer"], "layer_inputs.embed")
            yield from self._linear(model["per_layer_model_projection"], "layer_inputs.projection")
            yield from self._norm(model["per_layer_projection_norm"], "layer_inputs.norm", self.traits["norm_offset"])
        for index, paths in enumerate(self.source.paths.layers):
            yield from self._layer(index, paths)

    def _linear(self, source: str, target: str, **change):
        for leaf in ("weight", "bias"):
            if self.source.has(f"{source}.{leaf}"):
                yield Piece(f"{source}.{leaf}", f"{target}.{leaf}", **change)

    def _norm(self, source: str, target: str, offset: bool):
        yield Piece(source + ".weight", target + ".weight", plus=1.0 if offset else 0.0)
        if self.source.has(source + ".bias"):
            yield Piece(source + ".bias", target + ".bias")

    def _layer(self, index: int, paths: LayerPaths):
        spec, block = self.model.architecture.layers[index], f"blocks.{index}"
        for name in spec.norms():
            if name in paths.decoder:
                yield from self._norm(paths.decoder[name], f"{block}.{name}", self.traits["norm_offset"])
        if spec.is_attention:
            yield from self._attention(paths.attention, spec.mixer, f"{block}.self_attn")
        else:
            yield from self._linear_attention(paths.linear_attention, spec.mixer, f"{block}.linear_attn")
        if self.model.architecture.layer_inputs is not None:
            yield from self._linear(paths.decoder["per_layer_input_gate"], f"{block}.input_gate.gate")
            yield from self._linear(paths.decoder["per_layer_projection"], f"{block}.input_gate.projection")
            yield from self._norm(paths.decoder["post_per_layer_input_norm"], f"{block}.input_gate.norm", self.traits["norm_offset"])
        if spec.scalar:
            yield Piece(paths.decoder["layer_scalar"], f"{block}.scalar")
        if spec.experts is not None:
            yield from self._moe(paths.decoder, spec.experts, f"{block}.experts")
        if isinstance(spec.mlp, MoeSpec):
            yield from self._moe(paths.mlp, spec.mlp, f"{block}.mlp")
        else:
            yield from self._dense(paths.mlp, f"{block}.mlp", spec.mlp.size)

    def _attention(self, names: dict[str, str], spec, target: str):
        if "qkv_proj" in names:
            for key, rows in self._fused_rows(spec).items():
                yield from self._linear(names["qkv_proj"], f"{target}.{key}", rows=rows)
        without = SHARED if spec.shares is not None else ()
        for key in ("q_proj", "k_proj", "v_proj", "o_proj"):
            if key in names and key not in without:
                yield from self._linear(names[key], f"{target}.{key}")
        for key in ("q_norm", "k_norm"):
            if key in names and key not in without and spec.qk_norm != "none":
                yield from self._norm(names[key], f"{target}.{key}", self.traits["qk_norm_offset"])
        if "sinks" in names:
            yield Piece(names["sinks"], f"{target}.sinks")

    def _fused_rows(self, spec) -> dict[str, slice | Tensor]:
        sizes = {"q_proj": spec.heads * spec.head_dim, "k_proj": spec.kv_heads * spec.head_dim, "v_proj": spec.kv_heads * spec.head_dim}
        if self.traits["qkv_layout"] == "per_head":
            return dict(zip(sizes, grouped_rows(spec.heads, dict.fromkeys(sizes, spec.head_dim)).values()))
        ends = torch.tensor(list(sizes.values())).cumsum(0).tolist()
        return {key: slice(end - size, end) for (key, size), end in zip(sizes.items(), ends)}

    def _linear_attention(self, names: dict[str, str], spec, target: str):
        if not isinstance(spec, DeltaRuleSpec):
            for key in ("in_proj", "conv", "out_proj"):
                yield from self._linear(names[key], f"{target}.{key}")
            return
        for key in ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "conv1d", "out_proj"):
            if key in names:
                yield from self._linear(names[key], f"{target}.{key}")
        each = spec.v_heads // spec.k_heads
        values = each * spec.head_v_dim
        if "in_proj_qkvz" in names:
            rows = grouped_rows(spec.k_heads, {"q": spec.head_k_dim, "k": spec.head_k_dim, "v": values, "z": values})
            yield from self._linear(names["in_proj_qkvz"], f"{target}.in_proj_qkv", rows=torch.cat([rows[part] for part in "qkv"]))
            yield from self._linear(names["in_proj_qkvz"], f"{target}.in_proj_z", rows=rows["z"])
        if "in_proj_ba" in names:
            for part, rows in grouped_rows(spec.k_heads, {"b": each, "a": each}).items():
                yield from self._linear(names["in_proj_ba"], f"{target}.in_proj_{part}", rows=rows)
        yield Piece(names["norm"] + ".weight", f"{target}.norm.weight")
        for key in ("A_log", "dt_bias"):
            yield Piece(names[key], f"{target}.{key}")

    def _dense(self, names: dict[str, str], target: str, size: int):
        """names: paths of gate, up, down, or gate_up, down."""
        for role, path in names.items():
            if role == "gate_up":
                yield from self._linear(path, f"{target}.gate_proj", rows=slice(0, size))
                yield from self._linear(path, f"{target}.up_proj", rows=slice(size, None))
            else:
                yield from self._linear(path, f"{target}.{role}_proj")

    def _moe(self, names: dict[str, str], spec: MoeSpec, target: str):
        yield from self._linear(names.get("gate") or names["router"], f"{target}.gate")
        if "expert_bias" in names:
            yield Piece(names["expert_bias"], f"{target}.expert_bias")
        if spec.router_norm is not None:  # norm(x) scale / sqrt(hidden)
            yield Piece(names["router_scale"], f"{target}.gate_norm.weight", times=self.model.architecture.hidden**-0.5)
        if spec.expert_scale:
            yield Piece(names["expert_scale"], f"{target}.expert_scale")
        children = expert_names(self.source)
        if spec.shared is not None:
            shared = {role: f"{names['shared_expert']}.{child}" for role, child in children.items()}
            yield from self._dense(shared, f"{target}.shared_expert", spec.shared.size)
        if spec.shared_gate:
            yield from self._linear(names["shared_expert_gate"], f"{target}.shared_expert_gate")
        experts, target = names["experts"], f"{target}.experts"
        if self.source.has(experts + ".down_proj"):
            yield from self._fused_experts(experts, target, spec)
            return
        for expert in range(spec.experts):
            for role, child in children.items():
                path, halves = f"{experts}.{expert}.{child}.weight", {role: None}
                if role == "gate_up":
                    halves = {"gate": slice(0, spec.size), "up": slice(spec.size, None)}
                for part, rows in halves.items():
                    yield Piece(path, f"{target}.{part}_proj", rows=rows, where=expert)

    def _fused_experts(self, experts: str, target: str, spec: MoeSpec):
        """halves: gate_up_proj [E, 2 size, hidden], gate rows first, down_proj [E, hidden, size]. columns and interleaved: gate_up_proj
        [E, hidden, 2 size] with gate in the first or in the even columns, down_proj [E, size, hidden], perhaps biases."""
        layout = experts_layout(self.source.family, self.source.found["hidden_size"], self.source.shape(experts + ".gate_up_proj"))
        for first, part in enumerate(("gate", "up")):
            if layout != "halves":
                half = slice(first * spec.size, (first + 1) * spec.size)
                columns = {"last": slice(first, None, 2) if layout == "interleaved" else half}
                yield Piece(experts + ".gate_up_proj", f"{target}.{part}_proj", transpose=True, **columns)
                if spec.expert_bias:
                    yield Piece(experts + ".gate_up_proj_bias", f"{target}.{part}_bias", **columns)
            else:
                rows = slice(first * spec.size, (first + 1) * spec.size)
                yield Piece(experts + ".gate_up_proj", f"{target}.{part}_proj", second=rows)
        yield Piece(experts + ".down_proj", f"{target}.down_proj", transpose=layout != "halves")
        if spec.expert_bias:
            yield Piece(experts + ".down_proj_bias", f"{target}.down_bias")
