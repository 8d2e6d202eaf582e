"""Any bytes as a safetensors file, any JSON as config.json, any text as a map: an OnboardingError or a report, nothing else."""

import json
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from tiny_models import build

from custom_ops.onboarding import OnboardingError
from custom_ops.onboarding.analyze import analyze
from custom_ops.onboarding.checkpoint import INDEX, SINGLE, Checkpoint, read_header
from custom_ops.onboarding.mapping import load_maps, parse
from custom_ops.onboarding.show import analysis as show
from custom_ops.onboarding.vocabulary import LEVELS, TRAITS

SLOW = settings(max_examples=60, suppress_health_check=list(HealthCheck))
LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
JSON = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=8)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """config.json and tensors of three families."""
    pytest.importorskip("transformers")
    return {name: (json.loads(build(name).config.to_json_string()), build(name)) for name in ("llama", "qwen3_next", "gemma3_text")}


def refused_or(call, *arguments):
    """The result, or None where it was an OnboardingError."""
    try:
        return call(*arguments)
    except OnboardingError as error:
        assert str(error)
        return None


@SLOW
@given(st.binary(max_size=400), st.integers(0, 2**64 - 1), st.booleans())
def test_any_bytes_as_a_file(data, length, fits):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.safetensors"
        file.write_bytes(struct.pack("<Q", len(data) // 2 if fits else length) + data)
        refused_or(read_header, file)


@SLOW
@given(st.dictionaries(st.text(max_size=5), JSON | st.fixed_dictionaries({
    "dtype": st.sampled_from(["F32", "U8", "F4"]) | JSON, "shape": st.lists(st.integers(-1, 3), max_size=3) | JSON,
    "data_offsets": st.lists(st.integers(-1, 40), min_size=2, max_size=2) | JSON}), max_size=3), st.integers(0, 40))
def test_any_header(header, size):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text("{}")
        text = json.dumps(header).encode()
        (Path(folder) / SINGLE).write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))
        checkpoint = refused_or(Checkpoint, folder)
        for name in checkpoint.names if checkpoint else ():
            assert tuple(checkpoint.read(name).shape) == checkpoint.tensors[name].shape


@SLOW
@given(JSON)
def test_any_index(index):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text("{}")
        (Path(folder) / INDEX).write_text(json.dumps(index))
        assert refused_or(Checkpoint, folder) is None  # no such shard is there


@SLOW
@given(data=st.data())
def test_any_configuration_of_a_model(models, data):
    """A real configuration with keys of it changed, removed or added at any depth, its own weights beside it."""
    name = data.draw(st.sampled_from(sorted(models)))
    config, model = models[name]
    config = json.loads(json.dumps(config))
    for _ in range(data.draw(st.integers(1, 3))):
        place = config
        if "rope_parameters" in config and isinstance(config["rope_parameters"], dict) and data.draw(st.booleans()):
            place = config["rope_parameters"]
        key = data.draw(st.sampled_from([*place, "rope_theta", "rope_scaling", "text_config", "vision_config", "per_layer_config",
                                         "quantization_config", "num_experts", "full_attention_interval", "full_attn_idxs", "scale_emb"]))
        if data.draw(st.booleans()):
            place.pop(key, None)
        else:
            place[key] = data.draw(JSON)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        save_file({key: tensor.contiguous().clone() for key, tensor in model.state_dict().items()}, Path(folder) / SINGLE)
        found = refused_or(analyze, folder)
        if found is not None:
            show(found)
            json.dumps(found.to_dict())
            assert found.ready or found.missing


KEYS = [key for keys in LEVELS.values() for key in keys]


@SLOW
@given(st.dictionaries(
    st.sampled_from(["ids", "inherit", "config_prefix", "optional", "when", "defaults", "traits", *LEVELS]) | st.text(max_size=5),
    JSON | st.dictionaries(st.sampled_from([*KEYS, *TRAITS]), JSON | st.sampled_from(["", "a.b", ["x", "y"]]), max_size=3), max_size=4))
def test_any_map(raw):
    lines = [f"{json.dumps(key)} = {_toml(value)}" for key, value in raw.items()]
    text = "\n".join([*([] if "ids" in raw else ['ids = ["x"]']), *([] if "inherit" in raw else ['inherit = "llama"']), *lines])
    entry = refused_or(parse, text, Path("x.toml"), MAPS)
    if entry is not None:
        assert all(isinstance(path, str) and path for level in LEVELS for paths in entry.level(level).values() for path in paths)


MAPS = load_maps()


def _toml(value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
