"""Files of custom_ops.LinearAttentionState: what is saved comes back, and nothing else is believed."""

import os
import pickle

import pytest
import torch
from linear_attention_state import VARIANTS, Layer, layer, same  # noqa: F401

from custom_ops import LinearAttentionState


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("attn_type", VARIANTS)
def test_file(attn_type, dtype, rng, tmp_path):
    layer = Layer(attn_type, rng, dtype=dtype)
    state, rest, path = layer.state(2), layer.inputs(2, 3), tmp_path / "prefix"
    layer.run(state, layer.inputs(2, 5))
    state.save(path, "model layer 3")
    assert os.listdir(tmp_path) == ["prefix"] and state.snapshot_lengths() == [5, 5]
    read, other = LinearAttentionState.from_file(path, "model layer 3"), layer.state(2)
    layer.run(other, layer.inputs(2, 1))
    other.load(path, "model layer 3")
    want = layer.run(state, rest)
    for restored in (read, other):
        assert torch.equal(layer.run(restored, rest), want) and same(restored, state)
        restored.erase(5)  # to the end of what was read
    state.save(path, "model layer 3")  # takes the old one's place
    assert LinearAttentionState.from_file(path, "model layer 3").lengths.tolist() == [8, 8]


def test_a_file_of_one_row_holds_one_row(layer, tmp_path):  # noqa: F811
    many = layer.state(64)
    many.view(5, 1).save(tmp_path / "row")
    many.save(tmp_path / "all")
    assert os.path.getsize(tmp_path / "row") < os.path.getsize(tmp_path / "all") / 2


def test_files_that_do_not_fit_are_refused(layer, tmp_path):  # noqa: F811
    state, path = layer.state(2), tmp_path / "prefix"
    layer.run(state, layer.inputs(2, 3))
    state.save(path, "layer 0")
    other_dims = Layer(layer.attn_type, layer.rng, taps=3).state(2)
    narrow = Layer(layer.attn_type, layer.rng, dtype=torch.bfloat16).state(2)
    for target, tag, message in ((state, "layer 1", "has the tag 'layer 0', not 'layer 1'"),
                                 (layer.state(3), "layer 0", "has 2 rows, this state 3"),
                                 (other_dims, "layer 0", "conv_kernel_size=4.*conv_kernel_size=3"),
                                 (narrow, "layer 0", "float32.*bfloat16")):
        before = target.clone()
        with pytest.raises(RuntimeError, match=message):
            target.load(path, tag)
        assert same(target, before)
    torch.save({"weights": torch.zeros(3)}, path)
    with pytest.raises(RuntimeError, match="is not a file of LinearAttentionState.save"):
        state.load(path)


def test_a_file_with_other_tensors_than_it_says_is_refused(layer, tmp_path):  # noqa: F811
    state, path = layer.state(2), tmp_path / "prefix"
    state.save(path)
    content = torch.load(path, weights_only=True)
    for name, wrong in (("conv_state", content["conv_state"].double()), ("conv_state", content["conv_state"][:, 1:]),
                        ("lengths", content["lengths"].int())):
        torch.save({**content, name: wrong}, path)
        with pytest.raises(RuntimeError, match="its tensors are not those of"):
            state.load(path)


@pytest.mark.parametrize("change, message", [
    ({"layout": None}, "its layout is none"), ({"layout": {"attn_type": "kda"}}, "its layout is none: .*missing"),
    ({"layout": []}, "its layout is none"), ({"tag": None}, "has the tag None, not ''"),
    ({"conv_state": 3}, "its tensors are not those of"), ({"conv_state": None}, "its tensors are not those of"),
    ({"lengths": None}, "its lengths are none"),
    ({"lengths": torch.zeros(0, dtype=torch.int64)}, "its lengths are none"), ({"lengths": torch.tensor([2, -1])}, "lengths must be >= 0"),
    ({"lengths": torch.zeros(2, dtype=torch.int64, device="meta")}, "its tensors are not those of"),
    ({"recurrent_state": 5}, "its tensors are not those of"), ({"format": "another"}, "is not a file of LinearAttentionState.save"),
], ids=str)
def test_a_file_that_lies_is_refused(layer, tmp_path, change, message):  # noqa: F811
    state, path = layer.state(2), tmp_path / "prefix"
    layer.run(state, layer.inputs(2, 3))
    state.save(path)
    before = state.clone()
    torch.save(torch.load(path, weights_only=True) | change, path)
    for read in (state.load, LinearAttentionState.from_file):
        with pytest.raises(RuntimeError, match=f"^LinearAttentionState: .*{message}"):
            read(path)
    assert same(state, before)


@pytest.mark.parametrize("field, value, message", [
    ("attn_type", "mamba", "attn_type 'mamba' is not known"), ("attn_type", [], "its layout is none"),
    ("conv_kernel_size", 0, "conv_kernel_size must be 1 to 8, got 0"), ("head_k_dim", -4, "head_k_dim must be 1 to "),
    ("num_v_heads", "2", "prefix: num_v_heads must be an integer"), ("dtype", "float32", "dtype must be one of"),
    ("dtype", torch.int64, "dtype must be one of"),
    ("conv_kernel_size", 3, "its tensors are not those of"),
])
def test_a_layout_that_lies_is_refused(layer, tmp_path, field, value, message):  # noqa: F811
    state, path = layer.state(2), tmp_path / "prefix"
    state.save(path)
    content = torch.load(path, weights_only=True)
    torch.save(content | {"layout": content["layout"] | {field: value}}, path)
    with pytest.raises(RuntimeError, match=f"^LinearAttentionState: .*{message}"):
        LinearAttentionState.from_file(path)


def test_tensors_of_a_file_do_not_lie_in_one_another(layer, tmp_path):  # noqa: F811
    """Two that share their storage come as two; one that is a row repeated is refused."""
    state, path = layer.state(2), tmp_path / "prefix"
    state.save(path)
    content = torch.load(path, weights_only=True)
    memory = torch.zeros(4096)
    shared = {name: memory[: value.numel()].view(value.shape) for name, value in content.items() if name.endswith("_state")}
    torch.save(content | shared, path)
    read = LinearAttentionState.from_file(path)
    read.conv_state.fill_(1)
    assert read.recurrent_state is None or not read.recurrent_state.any()
    torch.save(content | {"conv_state": content["conv_state"][:1].expand(2, -1, -1)}, path)
    with pytest.raises(RuntimeError, match="its tensors are not those of"):
        state.load(path)


def test_files_of_something_else(layer, tmp_path):  # noqa: F811
    path, state = tmp_path / "prefix", layer.state()
    state.save(path)
    for content in (b"", b"no file of torch", path.read_bytes()[:-100], pickle.dumps({"format": os.system})):
        path.write_bytes(content)
        with pytest.raises(RuntimeError, match="^LinearAttentionState: .* cannot be read"):
            LinearAttentionState.from_file(path)
    with pytest.raises(FileNotFoundError):
        state.load(tmp_path / "none")


def test_a_failed_save_leaves_the_old_file(layer, tmp_path, monkeypatch):  # noqa: F811
    state, path = layer.state(), tmp_path / "prefix"
    state.save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    layer.run(state, layer.inputs(1, 2))
    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        state.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["prefix"]
