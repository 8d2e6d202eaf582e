"""Checkpoints are somebody else's files: what is damaged or hostile is refused by name before anything is read or allocated."""

import json
import os
import pickle
import struct

import pytest
import torch
from safetensors.torch import save_file

from custom_ops.onboarding import OnboardingError
from custom_ops.onboarding.checkpoint import INDEX, SINGLE, Checkpoint, read_header

CONFIG = {"model_type": "llama"}
TENSORS = {
    "a.weight": torch.arange(12, dtype=torch.float32).reshape(3, 4), "b": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "c": torch.tensor(7, dtype=torch.int64), "d": torch.empty(0, 4, dtype=torch.float16), "e": torch.tensor([True, False, True]),
    "f": torch.tensor([1.0, 2.0], dtype=torch.float16), "g": torch.tensor([3, 4], dtype=torch.uint8),
}


def write(path, header, data=b"", length=None):
    """A safetensors file byte by byte: header as text or object."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


@pytest.fixture
def model(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


@pytest.fixture
def sharded(model):
    save_file({"a.weight": TENSORS["a.weight"]}, model / "model-00001-of-00002.safetensors")
    save_file({"b": TENSORS["b"]}, model / "model-00002-of-00002.safetensors")
    index = {"metadata": {}, "weight_map": {"a.weight": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (model / INDEX).write_text(json.dumps(index))
    return model


def reindexed(folder, **changes):
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"].update(changes)
    (folder / INDEX).write_text(json.dumps(index))


def refused(folder, message):
    with pytest.raises(OnboardingError, match=message):
        Checkpoint(folder)


def test_reads_what_safetensors_wrote(model):
    save_file(TENSORS, model / SINGLE, metadata={"format": "pt"})
    checkpoint = Checkpoint(model)
    assert set(checkpoint.names) == set(TENSORS)
    for name, want in TENSORS.items():
        got = checkpoint.read(name)
        assert got.dtype == want.dtype and got.shape == want.shape and torch.equal(got, want)
        assert checkpoint.tensors[name].shape == tuple(want.shape)
    assert checkpoint.nbytes == sum(t.numel() * t.element_size() for t in TENSORS.values())


def test_tensors_are_private_and_outlive_the_checkpoint(model):
    save_file(TENSORS, model / SINGLE)
    checkpoint = Checkpoint(model)
    got = checkpoint.read("a.weight")
    got.mul_(2)
    checkpoint.close()
    assert torch.equal(got, TENSORS["a.weight"] * 2)
    assert torch.equal(Checkpoint(model).read("a.weight"), TENSORS["a.weight"])


def test_a_tensor_at_an_odd_offset_is_read(model):
    data = b"\x07" + TENSORS["a.weight"].numpy().tobytes()
    write(model / SINGLE, {"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                           "a": {"dtype": "F32", "shape": [3, 4], "data_offsets": [1, 49]}}, data)
    assert torch.equal(Checkpoint(model).read("a"), TENSORS["a.weight"])


def test_shards(sharded):
    checkpoint = Checkpoint(sharded)
    assert [file.name for file in checkpoint.files] == ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    assert torch.equal(checkpoint.read("b"), TENSORS["b"]) and checkpoint.unindexed == []


def test_tensors_the_index_does_not_list_are_told_not_taken(sharded):
    save_file({"b": TENSORS["b"], "z": TENSORS["c"]}, sharded / "model-00002-of-00002.safetensors")
    checkpoint = Checkpoint(sharded)
    assert checkpoint.unindexed == ["z"] and "z" not in checkpoint.tensors


def test_missing_shards_are_all_counted(sharded):
    (sharded / "model-00002-of-00002.safetensors").unlink()
    refused(sharded, "1 of 2 shards are missing: model-00002-of-00002.safetensors")


def test_a_listed_tensor_must_be_in_its_shard(sharded):
    reindexed(sharded, c="model-00002-of-00002.safetensors")
    refused(sharded, r"lists tensors that its shards do not hold: c \(in model-00002-of-00002.safetensors\)")
    reindexed(sharded, c="model-00001-of-00002.safetensors", b="model-00001-of-00002.safetensors")
    refused(sharded, "lists tensors that its shards do not hold")


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/secret.safetensors", "sub/x.safetensors", "..\\x.safetensors",
                                  ".safetensors",
                                  "x.bin", "x\x00.safetensors", "", "..", "C:\\x.safetensors"])
def test_shard_names_stay_in_the_folder(sharded, name):
    save_file({"b": TENSORS["b"]}, sharded.parent / "secret.safetensors")
    reindexed(sharded, b=name)
    refused(sharded, "is no plain name of a .safetensors file of this folder")


@pytest.mark.parametrize("index", ["[]", "{}", '{"weight_map": []}', '{"weight_map": {}}', '{"weight_map": {"a": 3}}',
                                   '{"weight_map": null}'])
def test_an_index_of_another_shape_is_refused(model, index):
    (model / INDEX).write_text(index)
    refused(model, "weight_map must be an object of tensor name: file name")


class Bomb:
    def __reduce__(self):
        return (open, ("opened", "w"))


def test_pickles_are_never_opened(model, monkeypatch):
    monkeypatch.chdir(model)
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))
    refused(model, r"only pickled weights \(pytorch_model.bin\), which can run any code and are never loaded; .*save_pretrained")
    save_file(TENSORS, model / SINGLE)
    Checkpoint(model)  # beside safetensors they are ignored
    assert not (model / "opened").exists()


def test_folders_without_weights_or_with_too_many(model, tmp_path):
    refused(model, "no model.safetensors and no model.safetensors.index.json")
    save_file(TENSORS, model / "a.safetensors")
    assert len(Checkpoint(model).tensors) == len(TENSORS)  # one file under any name is the model
    save_file(TENSORS, model / "b.safetensors")
    refused(model, "2 safetensors files .* without model.safetensors.index.json")
    refused(tmp_path / "none", "no such model directory")


CONFIGS = {
    "missing": (None, "config.json: No such file"), "empty": ("", "config.json: JSON cannot be read"),
    "cut": ('{"a": ', "JSON cannot be read"),
    "list": ("[1]", "must hold an object, holds list"), "nan": ('{"a": NaN}', "NaN is no number of JSON"),
    "twice": ('{"a": 1, "a": 2}', "key 'a' stands twice"), "deep": ("[" * 100_000, "nested too deeply"),
    "bytes": (b"\xff\xfe{}", "JSON cannot be read"), "long number": ('{"a": ' + "9" * 10_000 + "}", "JSON cannot be read"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_broken_configurations(tmp_path, case):
    text, message = CONFIGS[case]
    if text is not None:
        (tmp_path / "config.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(tmp_path, message)


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


HEADERS = {  # case: (header, data, message)
    "unknown dtype": ({"a": entry("F31")}, b"\0" * 8, "tensor 'a': dtype 'F31' is not supported, use one of F64"),
    "dtype a number": ({"a": entry(3)}, b"\0" * 8, "dtype '3' is not supported"),
    "packed dtype": ({"a": entry("F4")}, b"\0" * 8, "dtype 'F4' is not supported"),
    "negative shape": ({"a": entry(shape=(-2,))}, b"\0" * 8, "shape must be a list of integers >= 0"),
    "shape of floats": ({"a": entry(shape=(2.0,))}, b"\0" * 8, "shape must be a list"),
    "shape of flags": ({"a": entry(shape=(True,))}, b"\0" * 8, "shape must be a list"),
    "overflowing shape": ({"a": entry(shape=(2**40, 2**40))}, b"\0" * 8, "needs .* bytes, data_offsets .* give 8"),
    "offsets backwards": ({"a": entry(offsets=(8, 0))}, b"\0" * 8, "needs 8 bytes"),
    "offsets negative": ({"a": entry(offsets=(-8, 0))}, b"\0" * 8, "data_offsets must be two integers"),
    "three offsets": ({"a": entry(offsets=(0, 8, 8))}, b"\0" * 8, "data_offsets must be two integers"),
    "no offsets": ({"a": {"dtype": "F32", "shape": [2]}}, b"\0" * 8, "data_offsets must be two integers"),
    "offsets into the header": ({"a": entry(), "b": entry(offsets=(0, 8))}, b"\0" * 8, "tensor 'b' overlaps the tensor before it"),
    "overlap": ({"a": entry(), "b": entry(offsets=(4, 12))}, b"\0" * 12, "'b' overlaps"),
    "hole": ({"a": entry(), "b": entry(offsets=(12, 20))}, b"\0" * 20, "'b' leaves 4 bytes unused before it"),
    "hole at the start": ({"a": entry(offsets=(8, 16))}, b"\0" * 16, "'a' leaves 8 bytes unused"),
    "cut data": ({"a": entry()}, b"\0" * 7, "cut short: its tensors need"),
    "trailing data": ({"a": entry()}, b"\0" * 9, "1 bytes follow the last tensor"),
    "entry a list": ({"a": []}, b"", "tensor 'a': entry must be an object"),
    "header a list": ("[]", b"", "header must be an object"),
    "header no JSON": ("{", b"", "header cannot be read"),
    "header twice": ('{"a": {}, "a": {}}', b"", "key 'a' stands twice"),
    "header deep": ('{"a":' * 50_000, b"", "header is nested too deeply"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_broken_headers(tmp_path, case):
    header, data, message = HEADERS[case]
    write(tmp_path / "x.safetensors", header, data)
    with pytest.raises(OnboardingError, match=message):
        read_header(tmp_path / "x.safetensors")


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 10**8 + 1, 1000])
def test_header_lengths_that_do_not_fit(tmp_path, length):
    write(tmp_path / "x.safetensors", {}, length=length)
    with pytest.raises(OnboardingError, match=f"not a safetensors file, or cut short: its header would be {length} bytes, the file has 10"):
        read_header(tmp_path / "x.safetensors")


def test_every_truncation_is_noticed(tmp_path):
    file = tmp_path / "x.safetensors"
    save_file({"a": TENSORS["a.weight"], "b": TENSORS["b"]}, file)
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(OnboardingError):
            read_header(file)


def test_a_file_that_shrinks_after_its_header_was_read(model):
    save_file({"a": TENSORS["a.weight"]}, model / SINGLE)
    checkpoint = Checkpoint(model)
    (model / SINGLE).write_bytes((model / SINGLE).read_bytes()[:-8])
    with pytest.raises(OnboardingError, match="became shorter"):
        checkpoint.read("a")


def test_unknown_names_name_the_nearest(model):
    save_file(TENSORS, model / SINGLE)
    with pytest.raises(OnboardingError, match="no tensor 'a.weigth'; nearest: 'a.weight'"):
        Checkpoint(model).read("a.weigth")


@pytest.mark.parametrize("name", ["config.json", SINGLE, INDEX])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_has_no_end_or_none_to_read(name, kind, model):
    """A pipe that nobody writes to would block, /dev/zero would fill the memory."""
    save_file(TENSORS, model / SINGLE)
    (model / name).unlink(missing_ok=True)
    {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "folder": os.mkdir}[kind](model / name)
    refused(model, f"{name}: is no regular file")
