"""How hard a model is to onboard: six tests, all of them evaluated, since tiers add up (lfm2_moe is 3 and 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .mapping import FamilyMap
from .report import ConfigValues

TIERS = {1: "plain decoder", 2: "other norms or scales", 3: "mixture of experts", 4: "audio", 5: "vision", 6: "new attention or hybrid"}
STEPS = {1: "analyze", 2: "map", 3: "verify", 4: "export", 5: "towers", 6: "new attention op"}
_LINEAR = ("conv", "linear_attention", "mamba", "mamba2", "rwkv", "recurrent")
# last name of a tensor that plain softmax attention does not have -> what has it
_SIGNS = {"A_log": "state space or delta rule", "dt_bias": "state space or delta rule", "kv_a_proj_with_mqa": "latent attention",
          "kv_b_proj": "latent attention", "conv1d": "convolution in the mixer", "time_decay": "RWKV"}


@dataclass(frozen=True)
class Test:
    """One row of the table: whether it hits, and the evidence."""

    number: int
    question: str
    tier: int
    hit: bool
    evidence: str


def evaluate(config: Mapping, family: FamilyMap | None, found: ConfigValues | None, names: Iterable[str]) -> list[Test]:
    """The six tests. `family`, `found`: None where no map is known; `names`: tensor names, may be empty."""
    stated = (value for _, value in _keys(config, ("layer_types",)) if isinstance(value, list))
    types = found.get("layer_types", []) if found else [kind for kind in next(stated, []) if isinstance(kind, str)]
    linear = [kind for kind in dict.fromkeys(types) if kind in _LINEAR]
    rows = [
        ("num_experts or num_local_experts?", 3, _stated(config, ("num_experts", "num_local_experts", "n_routed_experts"))),
        ("vision_config?", 5, _stated(config, ("vision_config",))),
        ("audio_config?", 4, _stated(config, ("audio_config",))),
        ("layer_types with something else than attention?", 6, f"layer_types has {', '.join(linear)}" if linear else ""),
        ("attention that is not plain softmax?", 6, _unusual(family, names)),
        ("other norms than two, scale_depth or scale_emb?", 2, _second(config, family)),
    ]
    return [Test(number, question, tier, bool(evidence), evidence) for number, (question, tier, evidence) in enumerate(rows, 1)]


def tiers(tests: Iterable[Test]) -> list[int]:
    return sorted({test.tier for test in tests if test.hit}) or [1]


def steps(numbers: Iterable[int]) -> list[str]:
    """Order of work: the block's structure first, experts with it, towers last before the export."""
    numbers = set(numbers)
    towers = numbers & {4, 5}
    order = [1, 2, *([6, *([5] if towers else []), 3] if 6 in numbers else [3, *([5] if towers else [])]), 4]
    return [STEPS[step] for step in order]


def _keys(config: Mapping, wanted: tuple[str, ...], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    for key, value in config.items():
        if key in wanted:
            yield prefix + key, value
        elif isinstance(value, Mapping) and depth < 3:
            yield from _keys(value, wanted, f"{prefix}{key}.", depth + 1)


def _stated(config: Mapping, wanted: tuple[str, ...]) -> str:
    for path, value in _keys(config, wanted):
        if value and (isinstance(value, Mapping) or (isinstance(value, int) and not isinstance(value, bool))):
            return path if isinstance(value, Mapping) else f"{path} = {value}"
    return ""


def _unusual(family: FamilyMap | None, names: Iterable[str]) -> str:
    if family and family.traits["linear"] != "none":
        return f"{family.file.name}: linear = {family.traits['linear']}"
    for name in names:
        for step in name.split("."):
            if step in _SIGNS:
                return f"{name[:120]} ({_SIGNS[step]})"
    return ""


def _second(config: Mapping, family: FamilyMap | None) -> str:
    for path, value in _keys(config, ("scale_depth", "scale_emb")):
        if value not in (None, 1):
            return f"{path} = {value!r:.40}"
    if family and family.traits["residual"] != "standard":
        return f"{family.file.name}: residual = {family.traits['residual']}"
    return ""
