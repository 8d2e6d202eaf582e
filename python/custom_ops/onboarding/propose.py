"""The smallest map that would make a checkpoint known: the nearest family and what differs from it, from names and shapes alone.

Every known family is tried as the base. What it misses is looked for among the parts it leaves over: by the spellings other families
use for that key, then by what the name contains. The base that ends with least missing, least left over and least to write wins. What
names cannot say (rotation pairs, norm convention, routing ...) is inherited from it and listed in the file for `verify` to settle.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .mapping import PATH, FamilyMap, parse
from .names import Names, Paths, resolve_names
from .propose_names import config_prefix, config_source, dense_names, match, model_paths, reduced, traits_of
from .report import ConfigValues
from .resolve import resolve_config
from .shapes import Shape
from .vocabulary import LEVELS, MODULE, TRAITS

_INNER = ("decoder", "attention", "linear_attention", "mlp")
_ROUNDS = 12  # one object of one block each: a block, its attention, its MLP, for every kind of block
# taken for granted where config.json says nothing of them
_ASSUMED = ("num_key_value_heads", "head_dim", "rms_norm_eps", "rope_theta", "tie_word_embeddings")
_BY_VERIFY = ("norm_offset", "qk_norm_offset", "rope_pairing", "routing", "embed_scale", "logit_scale", "attention_scale")


@dataclass
class Draft:
    """A base family with what was changed on top of it."""

    base: FamilyMap
    prefix: str = ""
    keys: dict[str, dict[str, str]] = field(default_factory=dict)  # level -> unified key -> path, "" removes
    traits: dict[str, object] = field(default_factory=dict)

    def family(self) -> FamilyMap:
        levels = {level: self._over(level) for level in LEVELS}
        return dataclasses.replace(self.base, **levels, traits={**self.base.traits, **self.traits},
                                   config_prefix=(self.prefix,) if self.prefix else self.base.config_prefix)

    def _over(self, level: str) -> dict[str, tuple[str, ...]]:
        own = self.keys.get(level, {})
        inherited = {key: paths for key, paths in self.base.level(level).items() if key not in own}
        return {**inherited, **{key: (path,) for key, path in own.items() if path}}

    def set(self, level: str, key: str, path: str) -> None:
        self.keys.setdefault(level, {})[key] = path

    @property
    def lines(self) -> int:
        return sum(map(len, self.keys.values())) + len(self.traits) + bool(self.prefix)


@dataclass(frozen=True)
class Proposal:
    """`text`: the file; `family`: the map it is; `missing`: what it still does not find; `unused`: tensors it does not cover."""

    text: str
    family: FamilyMap
    base: str
    missing: tuple[str, ...]
    unused: tuple[str, ...]


def propose(model_type: str, config: Mapping, shapes: Mapping[str, Shape | None],
            maps: Mapping[str, Sequence[FamilyMap]]) -> Proposal | None:
    """The smallest map for a config.json and tensor names with their shapes (None where unknown). None when there are no names."""
    if not shapes:
        return None
    few = reduced({name: shape for name, shape in shapes.items() if PATH.fullmatch(name)})  # others cannot stand in a map
    bases = {entry.file: entry for entries in maps.values() for entry in entries if not entry.when}
    drafts = (_fitted(entry, config, few, maps) for entry in bases.values())
    draft = min(drafts, key=lambda draft: _cost(draft, model_type, config, few))
    text = _text(draft, model_type)
    family = parse(text, Path("proposed.toml"), maps)
    found, paths = _resolved(family, config, shapes)
    missing = [str(entry) for entry in (*found.report, *paths.report) if entry.required]
    return Proposal(text, family, draft.base.ids[0], tuple(missing), tuple(paths.unused))


def _resolved(family: FamilyMap, config: Mapping, names) -> tuple[ConfigValues, Paths]:
    found = resolve_config(family, config)
    return found, resolve_names(family, names, found)


def _few(family: FamilyMap, config: Mapping, few: Mapping[str, Shape | None]) -> tuple[ConfigValues, Paths]:
    """As _resolved for the blocks that `few` kept; that the others are not there is not told."""
    found, paths = _resolved(family, config, few)
    report = [entry for entry in paths.report if not (entry.level == "model" and entry.layer is not None)]
    return found, dataclasses.replace(paths, report=report)


def _cost(draft: Draft, model_type: str, config: Mapping, few: Mapping[str, Shape | None]) -> tuple:
    found, paths = _few(draft.family(), config, few)
    missing = {(entry.level, entry.dst) for entry in (*found.report, *paths.report) if entry.required}
    patterns = {re.sub(r"\.\d+\.", ".N.", name) for name in paths.unused}
    alike = max(difflib.SequenceMatcher(None, model_type, name).ratio() for name in draft.base.ids)
    special = sum(value != TRAITS[name].default for name, value in draft.base.traits.items())
    size = sum(len(draft.base.level(level)) for level in LEVELS)
    related = alike if alike >= 0.6 else 0.0
    absent = {(entry.level, entry.dst) for entry in paths.report if entry.layer is not None}  # optional parts this checkpoint lacks
    return (4 * len(missing) + len(patterns), draft.lines + draft.base.remote_code, -related, len(absent), special, size, draft.base.ids[0])


def _fitted(base: FamilyMap, config: Mapping, few: Mapping[str, Shape | None], maps) -> Draft:
    draft, tree = Draft(base), Names(few)
    prefix = config_prefix(base, config)
    draft.prefix = prefix if prefix not in base.config_prefix else ""
    found = resolve_config(draft.family(), config)
    required = {entry.dst: entry.level for entry in found.report if entry.required and entry.reason == "absent"}
    assumed = {key: "config" for key in _ASSUMED if key in base.config and not found.sources.get(key, "").startswith("config.json")}
    for key, level in {**assumed, **required}.items():
        source = config_source(level, key, draft.family(), config, maps)
        if source and level == "traits":
            draft.traits[key] = source
        elif source:
            draft.set(level, key, source)
    found, paths = _few(draft.family(), config, few)
    for key, path in model_paths(paths, found, few, maps).items():
        draft.set("model", key, path)
    for _ in range(_ROUNDS):
        before = draft.lines
        found, paths = _few(draft.family(), config, few)
        _fit_blocks(draft, found, paths, tree, few, maps)
        if draft.lines == before:
            break
    found, paths = _few(draft.family(), config, few)
    for name, value in traits_of(draft.family(), found, paths, few).items():
        draft.traits[name] = value
    return draft


def _fit_blocks(draft: Draft, found: ConfigValues, paths: Paths, tree: Names, few: Mapping[str, Shape | None], maps) -> None:
    """One round: missing keys and parts left over of the first object that has some. The next round sees what that changed elsewhere."""
    blocks = paths.model.get("blocks")
    family = draft.family()
    for number, layer in enumerate(paths.layers):
        prefix = f"{blocks}.{tree.numbers(blocks)[number]}"
        objects = {"decoder": (prefix, layer.decoder)}
        if "self_attn" in layer.decoder:
            objects["attention"] = (layer.decoder["self_attn"], layer.attention)
        if "linear_attn" in layer.decoder:
            objects["linear_attention"] = (layer.decoder["linear_attn"], layer.linear_attention)
        if layer.moe:
            objects["mlp"] = (layer.decoder["mlp"], layer.mlp)
        for level, (path, located) in objects.items():
            taken = {where[len(path) + 1:].partition(".")[0] for where in located.values()}
            free = [child for child in tree.node(path) or {} if child not in taken]
            changed = draft.keys.get(level, {})
            wanted = [key for key in family.level(level) if LEVELS[level][key].kind == MODULE and key not in located and key not in changed]
            extra = [key for key, entry in LEVELS[level].items() if entry.kind == MODULE and key not in family.level(level)
                     and key not in changed]
            given = match(level, wanted, extra, free, maps, bool(layer.kind))
            for key, child in given.items():
                draft.set(level, key, child)
            if given:
                return
        if "mlp" in layer.decoder and not layer.moe:
            names = dense_names(family, tree.node(layer.decoder["mlp"]) or {}, layer.decoder["mlp"], few, maps)
            if names and names != family.traits["mlp_names"]:
                draft.traits["mlp_names"] = names
                return


def _text(draft: Draft, model_type: str) -> str:
    base = draft.base
    lines = [f"# Proposed for model_type {_quoted(model_type)} from names and shapes; check it with `custom-ops onboard verify`.",
             f"# What names cannot say is that of {base.ids[0]}: "
             + ", ".join(f"{name} = {json.dumps(draft.family().traits[name])}" for name in _BY_VERIFY) + ".",
             f"ids = [{_quoted(model_type)}]", f"inherit = {_quoted(base.ids[0])}"]
    if draft.prefix:
        lines.append(f"config_prefix = {_quoted(draft.prefix)}")
    for level in LEVELS:
        entries = draft.keys.get(level, {})
        if entries:
            lines += ["", f"[{level}]", *(f"{_quoted(key) if '.' in key else key} = {_quoted(path)}" for key, path in entries.items())]
    if draft.traits:
        lines += ["", "[traits]", *(f"{name} = {_value(value)}" for name, value in draft.traits.items())]
    return "\n".join(lines) + "\n"


def _value(value) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_quoted(entry)}" for key, entry in value.items()) + " }"
    return json.dumps(value)  # names, numbers, flags and lists of names are the same in TOML


def _quoted(text: str) -> str:
    """A TOML string of any text: what is not plain goes in by its number, half a surrogate pair as "?"."""
    plain = text.encode("utf-8", "replace").decode()
    return '"' + "".join(char if " " <= char <= "~" and char not in '"\\' else f"\\U{ord(char):08x}" for char in plain) + '"'
