"""Families as data: one TOML file per family says what its names mean. Files are checked against vocabulary.py when they are read.

    ids = ["qwen3_next"]              # values of model_type in config.json
    inherit = "qwen3"                 # start from the map of this id; what follows replaces or adds
    config_prefix = "text_config."    # before every config path; a list is tried in order; a path that starts with "/" has none
    optional = ["attention.q_norm"]   # level.key that a checkpoint may lack
    when = { vocab_size = 130528 }    # with two maps for one id: what config.json must hold; { has = "lfm" } asks for a key
    remote_code = true                # transformers has no class of its own for it
    unsupported = "ALiBi"             # what the family does that LlmModel does not
    [model]                           # levels: config, model, decoder, attention, mlp, linear_attention
    final_layernorm = "model.norm"    # unified name = source path; a list holds spellings, the first that exists is taken
    rotary_emb = ""                   # removes an inherited key
    [defaults]                        # values config.json may leave out, as the family's configuration class documents them
    [traits]                          # what names cannot say
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .errors import OnboardingError, UnknownFamily, nearest, some
from .vocabulary import ATTRIBUTE, LAYER_TYPES, LEVELS, MODULE, ROLES, TRAITS, wrong_kind

try:
    import tomllib
except ImportError:  # Python 3.10
    try:
        import tomli as tomllib
    except ImportError:
        raise OnboardingError("reading maps on Python 3.10 needs tomli: pip install 'custom_ops[onboard]'") from None

BUILT_IN = Path(__file__).parent / "maps"
_TOP = ("ids", "inherit", "config_prefix", "optional", "when", "remote_code", "unsupported", "defaults", "traits", *LEVELS)
_NEEDED = ("config", "model", "decoder", "attention")  # levels without which nothing can be built
PATH = re.compile(r"/?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
Sources = Mapping[str, tuple[str, ...]]  # unified name -> spellings, in the order they are tried


@dataclass(frozen=True)
class FamilyMap:
    """One family, inheritance applied. `traits` holds every trait of the vocabulary; `replaces` is the file of the map it stands for."""

    ids: tuple[str, ...]
    file: Path
    config: Sources
    model: Sources
    decoder: Sources
    attention: Sources
    mlp: Sources
    linear_attention: Sources
    traits: Mapping[str, object]
    defaults: Mapping[str, object] = field(default_factory=dict)
    config_prefix: tuple[str, ...] = ("",)
    optional: frozenset[str] = frozenset()
    when: Mapping[str, object] = field(default_factory=dict)
    remote_code: bool = False
    unsupported: str = ""
    replaces: Path | None = None

    def level(self, name: str) -> Sources:
        return getattr(self, name)

    def matches(self, config: Mapping) -> bool:
        """Whether `when` holds for this config.json; a map without it always matches."""
        return all(lookup(config, value) is not ABSENT if key == "has" else lookup(config, key) == value
                   for key, value in self.when.items())


class _Absent:
    def __repr__(self):
        return "absent"


ABSENT = _Absent()


def lookup(config: Mapping, path: str):
    """The value at a dotted path of config.json, ABSENT when a step is missing. A key that itself holds dots is found as it is."""
    value: object = config
    for step in path.lstrip("/").split("."):
        if not isinstance(value, Mapping) or step not in value:
            return ABSENT
        value = value[step]
    return value


def load_maps(map_dirs: Iterable[str | Path] = ()) -> dict[str, list[FamilyMap]]:
    """Every map by id: the package's, then those of each folder, whose ids replace earlier ones.

    A map inherits from its own folder first, then from earlier ones; `inherit` of one of its own ids is always the earlier map.
    Raises OnboardingError naming file and key: unknown keys and traits, unknown or circular `inherit`, an id given twice.
    """
    maps: dict[str, list[FamilyMap]] = {}
    for folder in (BUILT_IN, *map(Path, map_dirs)):
        maps = {**maps, **_read_folder(folder, maps)}
    return maps


def family(model_type: str, map_dirs: Iterable[str | Path] = (), config: Mapping | None = None) -> FamilyMap:
    """The map of a model_type. `config` chooses between maps that share an id. Raises UnknownFamily with the nearest ids."""
    return choose(load_maps(map_dirs), model_type, config or {})


def choose(maps: Mapping[str, Sequence[FamilyMap]], model_type: str, config: Mapping) -> FamilyMap:
    """Of the maps for a model_type the one that fits config.json best. Raises UnknownFamily where there are none, OnboardingError where
    none fits."""
    known = maps.get(model_type, ())
    if not known:
        raise UnknownFamily(model_type, maps)
    found = [entry for entry in known if entry.matches(config)]
    if not found:
        asked = "; ".join(f"{entry.file.name} wants {', '.join(f'{key} = {value!r}' for key, value in entry.when.items())}"
                          for entry in known)
        raise OnboardingError(f"model_type {model_type!r} is mapped, but not for this config.json: {asked}; a map of your own for it is "
                              "added with --map-dir")
    return max(found, key=lambda entry: len(entry.when))  # the one that asks for most


def identify(maps: Mapping[str, Sequence[FamilyMap]], config: Mapping) -> FamilyMap:
    """The map of a config.json: by its model_type, or by `when` where the family writes none."""
    model_type = config.get("model_type")
    if isinstance(model_type, str) and model_type:
        return choose(maps, model_type, config)
    if model_type is None:
        told = [entry for entries in maps.values() for entry in entries if entry.when and entry.matches(config)]
        if told:
            return told[0]
        raise OnboardingError(f"config.json has no model_type, and no map knows it by its keys: {some(list(config), 20)}; write the "
                              "model_type of its family into it, or a map whose `when` knows it (--map-dir)")
    raise OnboardingError(f"config.json model_type: must be a name, is {model_type!r:.80}")


def _read_folder(folder: Path, earlier: Mapping[str, list[FamilyMap]]) -> dict[str, list[FamilyMap]]:
    if not folder.is_dir():
        raise OnboardingError(f"{folder}: no such folder of maps")
    files = {path: _read(path) for path in sorted(folder.glob("*.toml"))}
    if not files:
        raise OnboardingError(f"{folder}: holds no map; a map is a file that ends with .toml")
    by_id: dict[str, list[Path]] = {}
    for path, raw in files.items():
        for name in raw["ids"]:
            for other in by_id.setdefault(name, []):
                if files[other].get("when") == raw.get("when"):
                    raise OnboardingError(f"{path}: id {name!r} is also in {other.name}; only different `when` tell two maps of one "
                                          "id apart")
            by_id[name].append(path)
    done: dict[Path, FamilyMap] = {}
    for path in files:
        _inherited(path, files, by_id, earlier, done, ())
    return {name: [done[path] for path in paths] for name, paths in by_id.items()}


def parse(text: str, path: Path, maps: Mapping[str, list[FamilyMap]]) -> FamilyMap:
    """The map that `text` would be as the file `path` beside `maps`."""
    raw = _checked(text, path)
    done: dict[Path, FamilyMap] = {}
    return _inherited(path, {path: raw}, {name: [path] for name in raw["ids"]}, maps, done, ())


def _read(path: Path) -> dict:
    try:
        return _checked(path.read_text(encoding="utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise OnboardingError(f"{path}: cannot be read as TOML: {error}") from None


def _checked(text: str, path: Path) -> dict:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OnboardingError(f"{path}: cannot be read as TOML: {error}") from None
    try:
        _check(raw)
    except ValueError as error:
        raise OnboardingError(f"{path}: {error}") from None
    return raw


def _check(raw: dict) -> None:
    for key in raw:
        if key not in _TOP:
            raise ValueError(f"unknown key {key!r}; {nearest(key, _TOP)}")
    if not isinstance(raw.get("ids"), list) or not raw["ids"] or not all(isinstance(name, str) and name for name in raw["ids"]):
        raise ValueError('ids must be a list of model_type values, as ids = ["llama"]')
    if len(set(raw["ids"])) < len(raw["ids"]):
        raise ValueError("ids holds an id twice")
    for key, kind, say in (("inherit", str, "an id"), ("when", dict, "a table"), ("remote_code", bool, "true or false"),
                           ("unsupported", str, "text"),
                           ("defaults", dict, "a table"), ("traits", dict, "a table"), *((level, dict, "a table") for level in LEVELS)):
        if key in raw and not isinstance(raw[key], kind):
            raise ValueError(f"{key} must be {say}, is {raw[key]!r}")
    for level, keys in LEVELS.items():
        for key, source in raw.get(level, {}).items():
            if key not in keys:
                raise ValueError(f"[{level}] has no key {key!r}; {nearest(key, keys)}")
            _check_source(f"[{level}] {key}", source)
    for entry in _listed(raw, "optional"):
        level, _, key = entry.partition(".")
        if level not in LEVELS or LEVELS[level].get(key) is None or LEVELS[level][key].kind != MODULE:
            raise ValueError(f"optional: {entry!r} is no level.key of a module")
    for prefix in _listed(raw, "config_prefix"):
        if prefix and not (prefix.endswith(".") and PATH.fullmatch(prefix[:-1])):
            raise ValueError(f'config_prefix: {prefix!r} must be "" or a path that ends with a dot')
    for key in raw.get("defaults", {}):
        if key not in _defaultable():
            raise ValueError(f"[defaults] has no key {key!r}; {nearest(key, _defaultable())}")
        must = wrong_kind(_defaultable()[key], raw["defaults"][key])
        if must and raw["defaults"][key] != "":
            raise ValueError(f"[defaults] {key} must be {must}, is {raw['defaults'][key]!r:.80}")
    for name, value in raw.get("traits", {}).items():
        _check_trait(name, value)


def _defaultable() -> dict[str, str]:
    """Keys that [defaults] may hold, with their kind."""
    numbers = {key: entry.kind for keys in LEVELS.values() for key, entry in keys.items() if entry.kind not in (MODULE, ATTRIBUTE)}
    return numbers | {name: trait.path for name, trait in TRAITS.items() if trait.path}


def _listed(raw: dict, key: str) -> list[str]:
    value = raw.get(key, [])
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise ValueError(f"{key} must be text or a list of texts, is {value!r}")
    return value


def _check_source(where: str, source) -> None:
    if source == "":
        return
    for path in [source] if isinstance(source, str) else source if isinstance(source, list) and source else [None]:
        if not isinstance(path, str) or not PATH.fullmatch(path):
            raise ValueError(f"{where} must be a dotted path, a list of them or \"\", is {source!r}")


def _check_trait(name: str, value) -> None:
    if name not in TRAITS:
        raise ValueError(f"unknown trait {name!r}; {nearest(name, TRAITS)}")
    trait = TRAITS[name]
    if value == "":
        return
    if not isinstance(value, trait.type) or (isinstance(value, bool) and trait.type is not bool):
        kinds = trait.type if isinstance(trait.type, tuple) else (trait.type,)
        raise ValueError(f"trait {name} ({trait.sentence}) must be {' or '.join(kind.__name__ for kind in kinds)}, is {value!r}")
    if trait.path and value not in trait.choices:
        _check_source(f"trait {name}", value)
    elif trait.type is dict:
        for role, child in value.items():
            if role not in ROLES:
                raise ValueError(f"trait {name} has no role {role!r}; {nearest(role, ROLES)}")
            _check_source(f"trait {name}.{role}", child or [])
    elif trait.type is list and not (value and set(map(str, value)) <= set(LAYER_TYPES)):
        raise ValueError(f"trait {name} must be a list of {', '.join(LAYER_TYPES)}, is {value!r:.80}")
    elif trait.choices and value not in trait.choices:
        raise ValueError(f"trait {name} ({trait.sentence}) must be one of {', '.join(trait.choices)}, is {value!r}")


def _inherited(path: Path, files: Mapping[Path, dict], by_id: Mapping[str, list[Path]], earlier: Mapping[str, list[FamilyMap]],
               done: dict[Path, FamilyMap], chain: tuple[Path, ...]) -> FamilyMap:
    """The map in `path` on top of the one it inherits from. `chain`: the files that led here."""
    if path in chain:
        raise OnboardingError(f"{path}: inherits from itself: {' -> '.join(other.name for other in (*chain, path))}")
    if path in done:
        return done[path]
    raw, base = files[path], None
    if "inherit" in raw:
        parent = raw["inherit"]
        if parent in by_id and parent not in raw["ids"]:
            candidates = sorted(by_id[parent], key=lambda other: "when" in files[other])
            base = _inherited(candidates[0], files, by_id, earlier, done, (*chain, path))
        elif parent in earlier:
            base = min(earlier[parent], key=lambda entry: len(entry.when))
        else:
            known = {*earlier, *by_id} - set(raw["ids"])
            raise OnboardingError(f"{path}: inherit {parent!r} is not mapped; {nearest(parent, known)}")
    replaced = next((earlier[name][0].file for name in raw["ids"] if name in earlier), None)
    done[path] = _merged(path, raw, base, replaced)
    return done[path]


def _merged(path: Path, raw: dict, base: FamilyMap | None, replaced: Path | None) -> FamilyMap:
    levels = {level: _overlaid(base.level(level) if base else {}, raw.get(level, {})) for level in LEVELS}
    for level in _NEEDED:
        if not levels[level]:
            raise OnboardingError(f"{path}: [{level}] is empty; write it, or inherit a family that has it")
    traits = {name: trait.default for name, trait in TRAITS.items()} | dict(base.traits if base else {})
    for name, value in raw.get("traits", {}).items():
        traits[name] = TRAITS[name].default if value == "" else value
    defaults = {**(base.defaults if base else {}), **raw.get("defaults", {})}
    return FamilyMap(
        ids=tuple(raw["ids"]), file=path, **levels, traits=traits,
        defaults={key: value for key, value in defaults.items() if value != ""},
        config_prefix=tuple(_listed(raw, "config_prefix")) or (base.config_prefix if base else ("",)),
        optional=frozenset(_listed(raw, "optional")) | (base.optional if base else frozenset()),
        when=raw.get("when", {}), remote_code=raw.get("remote_code", False), unsupported=raw.get("unsupported", ""), replaces=replaced)


def _overlaid(base: Sources, own: Mapping) -> dict[str, tuple[str, ...]]:
    merged = {**base, **{key: (source,) if isinstance(source, str) else tuple(source) for key, source in own.items()}}
    return {key: sources for key, sources in merged.items() if sources != ("",)}
