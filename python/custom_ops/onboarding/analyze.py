"""What a checkpoint is and what is missing to run it, from config.json and the headers of its files: no weights are read.

    analysis = analyze("path/to/model")
    analysis.ready, analysis.tiers, analysis.answers, analysis.checks, analysis.missing, analysis.proposal
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from . import questions, tiers
from .checkpoint import INDEX, Checkpoint, collector_paused, read_config, read_index
from .errors import OnboardingError
from .mapping import FamilyMap, identify, load_maps
from .names import Paths, resolve_names
from .propose import Proposal, propose
from .report import ConfigValues
from .resolve import resolve_config
from .rope import resolve_ropes
from .shapes import mismatches
from .source import not_floating, quantisation

OK, WRONG, UNKNOWN = "ok", "wrong", "unknown"


@dataclass(frozen=True)
class Check:
    """`findings`: every one, `advice`: what to do about them."""

    name: str
    state: str  # "ok", "wrong", "unknown" where what it needs could not be read
    found: str
    findings: tuple[str, ...] = ()
    advice: str = ""


@dataclass(frozen=True)
class Analysis:
    """`family`: the map used, the proposed one where `mapped` is False; `proposal` only where a map would help."""

    folder: Path
    model_type: str
    family: FamilyMap | None
    mapped: bool
    unknown: str
    tests: list[tiers.Test]
    answers: list[questions.Answer]
    checks: list[Check]
    proposal: Proposal | None
    parameters: int
    nbytes: int

    @property
    def ready(self) -> bool:
        return self.mapped and not self.family.unsupported and all(check.state == OK for check in self.checks)

    @property
    def tiers(self) -> list[int]:
        return tiers.tiers(self.tests)

    @property
    def steps(self) -> list[str]:
        return tiers.steps(self.tiers)

    @property
    def missing(self) -> list[str]:
        """Everything between this checkpoint and a run, as text."""
        told = [] if self.mapped else [self.unknown]
        if self.family and self.family.unsupported:
            told.append(f"LlmModel does not have: {self.family.unsupported}")
        return told + [finding for check in self.checks if check.state != OK for finding in check.findings]

    def to_dict(self) -> dict:
        """For --json: plain lists, dicts, texts and numbers."""
        family = self.family and {"ids": list(self.family.ids), "file": str(self.family.file), "remote_code": self.family.remote_code,
                                  "replaces": self.family.replaces and str(self.family.replaces), "traits": dict(self.family.traits)}
        return {"folder": str(self.folder), "model_type": self.model_type, "ready": self.ready, "mapped": self.mapped, "family": family,
                "tiers": [{"tier": tier, "what": tiers.TIERS[tier]} for tier in self.tiers], "steps": self.steps,
                "tests": [asdict(test) for test in self.tests], "questions": [asdict(answer) for answer in self.answers],
                "checks": [asdict(check) for check in self.checks], "missing": self.missing,
                "proposed_map": self.proposal and {"base": self.proposal.base, "text": self.proposal.text,
                                                   "missing": list(self.proposal.missing), "unused": list(self.proposal.unused)},
                "parameters": self.parameters, "bytes": self.nbytes}


@collector_paused()
def analyze(model_dir: str | Path, map_dirs: Iterable[str | Path] = ()) -> Analysis:
    """Analyses a model directory. Raises OnboardingError when config.json or a map cannot be read; damaged weights are a finding."""
    folder = Path(model_dir)
    config, maps = read_config(folder), load_maps(map_dirs)
    weights, shapes, dtypes, nbytes = _weights(folder)
    model_type = config.get("model_type")
    model_type = model_type if isinstance(model_type, str) else ""
    family, unknown, proposal = None, "", None
    try:
        family = identify(maps, config)
    except OnboardingError as error:  # no map for it, or no model_type
        unknown = str(error)
    if family is None:
        proposal = propose(model_type or "my_model", config, shapes, maps)
    used = family or (proposal.family if proposal else None)
    found = resolve_config(used, config) if used else None
    paths = resolve_names(used, shapes, found) if used and shapes else Paths({}, [], [], [])
    known = {name: shape for name, shape in shapes.items() if shape is not None}
    checks = [_config_check(found, unknown), weights, *_name_checks(paths, bool(used and shapes)),
              _shape_check(used, found, paths, known, dtypes, config), _rope_check(used, found, config)]
    if family is not None and any(check.state == WRONG for check in (checks[0], checks[2], checks[3])):
        proposal = _improvement(propose(family.ids[0] if not model_type else model_type, config, shapes, maps), found, paths)
    answers = questions.answers(questions.Subject(used, config, found, paths, known)) if used and found else []
    parameters = sum(map(math.prod, known.values()))
    return Analysis(folder, model_type, used, family is not None, unknown, tiers.evaluate(config, used, found, shapes), answers, checks,
                    proposal, parameters, nbytes)


def _improvement(proposal: Proposal | None, found: ConfigValues | None, paths: Paths) -> Proposal | None:
    """A proposal for a family that is mapped is told only when it finds more than the map."""
    if proposal is None or found is None:
        return None
    missing = sum(entry.required for entry in (*found.report, *paths.report))
    return proposal if (len(proposal.missing), len(proposal.unused)) < (missing, len(paths.unused)) else None


def _weights(folder: Path) -> tuple[Check, dict, dict, int]:
    """The check of the files, tensor name -> shape (None from an index alone), name -> dtype, bytes."""
    name = "Weights are whole"
    try:
        checkpoint = Checkpoint(folder)
    except OnboardingError as error:
        shapes = {}
        if (folder / INDEX).exists():
            try:
                shapes = dict.fromkeys(read_index(folder))
            except OnboardingError:
                pass  # `error` is about the same file
        return Check(name, WRONG, "cannot be used", (str(error),), "fetch the files again, or save the model again"), shapes, {}, 0
    shapes = {tensor.name: tensor.shape for tensor in checkpoint.tensors.values()}
    dtypes = {tensor.name: tensor.dtype for tensor in checkpoint.tensors.values()}
    kinds = ", ".join(dict.fromkeys(dtypes.values()))
    text = f"{len(shapes)} tensors in {len(checkpoint.files)} file{'s' * (len(checkpoint.files) > 1)}, {kinds}"
    if checkpoint.unindexed:
        findings = tuple(f"{tensor}: in a shard, but not in the index; no reader loads it" for tensor in checkpoint.unindexed)
        return Check(name, WRONG, text, findings, "save the model again, so that index and shards agree"), shapes, dtypes, checkpoint.nbytes
    return Check(name, OK, text), shapes, dtypes, checkpoint.nbytes


def _config_check(found: ConfigValues | None, unknown: str) -> Check:
    name = "config.json has what is needed"
    if found is None:
        return Check(name, UNKNOWN, "no map says where its values are", (unknown,), "write a map: see docs/onboarding/analyze.md")
    missing = tuple(str(entry) for entry in found.report if entry.required)
    stated = ("config.json", "default", "pattern")
    derived = [f"{key} from {source}" for key, source in found.sources.items() if not source.startswith(stated)]
    text = f"{len(found.values)} values" + (f"; {', '.join(derived)}" if derived else "")
    return Check(name, WRONG if missing else OK, text, missing, "correct config.json, or name the right keys in a map" if missing else "")


def _name_checks(paths: Paths, usable: bool) -> list[Check]:
    names = ("Every entry of the map is found", "No tensor is left over")
    if not usable:
        return [Check(name, UNKNOWN, "needs a map and tensor names") for name in names]
    missing = tuple(str(entry) for entry in paths.report if entry.required)
    entries = len(paths.model) + sum(map(len, (part for layer in paths.layers
                                               for part in (layer.decoder, layer.attention, layer.linear_attention, layer.mlp))))
    return [Check(names[0], WRONG if missing else OK, f"{entries} entries, {len(missing)} missing", missing,
                  "name them in a map, or fetch the whole checkpoint" if missing else ""),
            Check(names[1], WRONG if paths.unused else OK, f"{len(paths.unused)} left over", tuple(paths.unused),
                  "what they do is not known here: a map has to name them, or they are no part of the text model" if paths.unused else "")]


def _shape_check(family, found, paths: Paths, shapes: Mapping, dtypes: Mapping[str, str], config: Mapping) -> Check:
    name = "Shapes and dtypes fit config.json"
    if family is None or not shapes or any(entry.required for entry in found.report):
        return Check(name, UNKNOWN, "needs a map, a complete config.json and the headers")
    findings = [str(entry) for entry in mismatches(family, found, paths, shapes)]
    findings += [f"{tensor}: weights of dtype {dtype}, floating point is needed" for tensor, dtype in not_floating(dtypes, paths)]
    findings += filter(None, [quantisation(config)])
    return Check(name, WRONG if findings else OK, f"{len(shapes)} shapes looked at, {len(findings)} wrong", tuple(findings),
                 "save the model again from unquantised weights that belong to this config.json" if findings else "")


def _rope_check(family, found, config: Mapping) -> Check:
    name = "The rotary base is stated once"
    if family is None:
        return Check(name, UNKNOWN, "needs a map")
    try:
        ropes = resolve_ropes(config, family, found)
    except OnboardingError as error:
        advice = "correct config.json: a wrong base costs quality at every position, silently"
        return Check(name, WRONG, "not settled", (str(error),), advice)
    told = dict.fromkeys(f"{rope.theta:.10g} ({rope.source})" for rope in ropes.values())
    return Check(name, OK, "; ".join(told) or "nothing rotates")
