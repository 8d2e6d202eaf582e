"""GGUF files that others wrote, that are damaged or hostile: read into an LlmModel, or refused."""

import struct

import pytest
import torch
from gguf_models import rewrite

from custom_ops.onboarding import OnboardingError

pytest.importorskip("gguf", reason="pip install 'custom_ops[gguf]'")
pytest.importorskip("transformers", reason="pip install 'custom_ops[onboard]'")

from custom_ops.onboarding.export.gguf.read import GgufFile, architecture, load  # noqa: E402

TOKENS = torch.arange(3, 51).view(1, 48)


def test_damaged_files(gguf_file, tmp_path):
    path = gguf_file("llama")
    content = path.read_bytes()
    for size in (3, 8, 100, 3000, len(content) // 2, len(content) - 1):
        (tmp_path / "cut.gguf").write_bytes(content[:size])
        with pytest.raises(OnboardingError, match="not a GGUF file, or damaged"):
            load(tmp_path / "cut.gguf")
    (tmp_path / "cut.gguf").write_bytes(b"")
    with pytest.raises(OnboardingError, match="cannot be read"):
        load(tmp_path / "cut.gguf")
    with pytest.raises(OnboardingError, match="no such file"):
        load(tmp_path / "absent.gguf")


def text(value):
    return struct.pack("<Q", len(value)) + value


def tensor(name, shape=(32,), kind=0, offset=0, dims=None):
    return text(name) + struct.pack("<I", len(shape) if dims is None else dims) + struct.pack(f"<{len(shape)}QIQ", *shape, kind, offset)


HUGE = 2**62
HOSTILE = {  # what follows "GGUF" and the version; numbers of tensors and keys first
    "tensors": (struct.pack("<QQ", HUGE, 0), "4611686018427387904 values where 0 bytes are left"),
    "keys": (struct.pack("<QQ", 0, HUGE), "4611686018427387904 values where"),
    "text": (struct.pack("<QQ", 0, 1) + struct.pack("<Q", HUGE) + b"x" * 50, "cut short: 4611686018427387904 bytes"),
    "list": (struct.pack("<QQ", 0, 1) + text(b"a") + struct.pack("<IIQ", 9, 0, HUGE) + b"x" * 50, "4611686018427387904 values where 50"),
    "list_of_texts": (struct.pack("<QQ", 0, 1) + text(b"a") + struct.pack("<IIQ", 9, 8, HUGE) + b"x" * 50, "values where 50 bytes"),
    "list_of_lists": (struct.pack("<QQ", 0, 1) + text(b"a") + struct.pack("<IIQ", 9, 9, 1) + b"x" * 50, "a value of type 9"),
    "kind_of_value": (struct.pack("<QQ", 0, 1) + text(b"a") + struct.pack("<I", 77) + b"x" * 50, "a value of type 77"),
    "name": (struct.pack("<QQ", 0, 1) + text(b"\xff\xfe") + b"x" * 50, "a name is no UTF-8 text"),
    "twice": (struct.pack("<QQ", 0, 2) + 2 * (text(b"a") + struct.pack("<II", 4, 1)), "key 'a' stands twice"),
    "alignment": (struct.pack("<QQ", 0, 1) + text(b"general.alignment") + struct.pack("<II", 4, 24), "24 is no power of 2"),
    "dims": (struct.pack("<QQ", 1, 0) + tensor(b"t", dims=9), "tensor 't' has 9 dimensions"),
    "kind": (struct.pack("<QQ", 1, 0) + tensor(b"t", kind=999), "is of type 999"),
    "size": (struct.pack("<QQ", 1, 0) + tensor(b"t", (HUGE, HUGE)), r"ends at byte \d+, the file at"),
    "blocks": (struct.pack("<QQ", 1, 0) + tensor(b"t", (31,), kind=8), r"\[31\] at 0 does not fit blocks of 32"),
    "offset": (struct.pack("<QQ", 1, 0) + tensor(b"t", offset=4), "at 4 does not fit .* multiples of 32"),
    "same_name": (struct.pack("<QQ", 2, 0) + 2 * tensor(b"t") + bytes(512), "tensor 't' stands twice"),
    "overlap": (struct.pack("<QQ", 2, 0) + tensor(b"s") + tensor(b"t", offset=64) + bytes(512), "tensor 't' overlaps"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files(case, tmp_path):
    content, message = HOSTILE[case]
    (tmp_path / "hostile.gguf").write_bytes(b"GGUF" + struct.pack("<I", 3) + content)
    with pytest.raises(OnboardingError, match=f"not a GGUF file, or damaged: .*{message}"):
        load(tmp_path / "hostile.gguf")


def test_changed_bytes(gguf_file, tmp_path, rng):
    """Any byte of the header changed: the file is read, or an error of ours says why not."""
    path = gguf_file("lfm2moe", "q8_0")
    content = bytearray(path.read_bytes())
    header = GgufFile(path).tensors["token_embd.weight"].begin
    refused = 0
    for _ in range(300):
        place, value = torch.randint(header, (), generator=rng).item(), torch.randint(256, (), generator=rng).item()
        kept, content[place] = content[place], value
        (tmp_path / "changed.gguf").write_bytes(content)
        try:
            architecture(GgufFile(tmp_path / "changed.gguf"))
        except OnboardingError:
            refused += 1
        content[place] = kept
    assert refused > 30


@pytest.mark.parametrize("name", ["gemma2", "lfm2moe", "qwen35moe"])
def test_wrong_numbers(name, gguf_file):
    """Every number of the keys made 0 or very large: an error of ours, or a model with that number where it has no size to fit."""
    path = gguf_file(name)
    values = GgufFile(path).values
    numbers = [key for key, value in values.items() if key.startswith(name) and isinstance(value, (int, float)) and "count_kv" not in key]
    unread = {f"{name}.{key}" for key in ("vocab_size", "context_length", "rope.freq_base", "attention.value_length", "ssm.inner_size",
                                          "full_attention_interval", "final_logit_softcapping", "attn_logit_softcapping",
                                          "attention.sliding_window", "attention.layer_norm_rms_epsilon", "leading_dense_block_count")}
    refused = set()
    for key in numbers:
        for wrong in (0, 2**31 - 1):
            try:
                load(rewrite(path, arch=name, keys=lambda this, value: wrong if this == key else value))
            except OnboardingError:
                refused.add(key)
    assert set(numbers) - unread <= refused, set(numbers) - unread - refused


@pytest.mark.parametrize("kind", ["Q4_0", "Q5_1", "Q8_0", "F16"])
def test_types_of_other_writers(kind, gguf_file, rng):
    """Tensors of any type that the gguf package decodes."""
    gguf = pytest.importorskip("gguf")
    values = torch.randn(64, 64, generator=rng).numpy()
    data = gguf.quants.quantize(values, gguf.GGMLQuantizationType[kind])
    path = rewrite(gguf_file("llama"), change=lambda name, old: data if name == "blk.2.attn_v.weight" else old,
                   kinds={"blk.2.attn_v.weight": gguf.GGMLQuantizationType[kind]})
    want = torch.from_numpy(gguf.quants.dequantize(data, gguf.GGMLQuantizationType[kind]).astype("float32"))
    assert torch.equal(GgufFile(path).read("blk.2.attn_v.weight"), want)
    assert (want - torch.from_numpy(values)).abs().max() < 0.5


def test_files_that_do_not_fit(gguf_file):
    path = gguf_file("llama")
    torch.testing.assert_close(load(rewrite(path))(TOKENS), load(path)(TOKENS))
    with pytest.raises(OnboardingError, match=r"1 missing tensors: blk\.1\.attn_k\.weight"):
        load(rewrite(path, drop=["blk.1.attn_k.weight"]))
    with pytest.raises(OnboardingError, match="GGUF architecture 'bert' is not read here"):
        load(rewrite(path, arch="bert"))
    with pytest.raises(OnboardingError, match="key llama.attention.head_count is missing"):
        load(rewrite(path, keys=lambda name, value: None if name.endswith("head_count") else value))
    with pytest.raises(OnboardingError, match="block 0 has 5 heads and 2 key heads"):
        load(rewrite(path, keys=lambda name, value: 5 if name.endswith("head_count") else value))
    with pytest.raises(OnboardingError, match=r"1 wrong shapes: blk\.0\.attn_k\.weight \[32, 32\], expected \[32, 64\]"):
        load(rewrite(path, change=lambda name, values: values[:, :32] if name == "blk.0.attn_k.weight" else values))
    with pytest.raises(OnboardingError, match=r"values of blk\.0\.attn_k\.weight are NaN or infinite"):
        load(rewrite(path, change=lambda name, values: values * float("nan") if name == "blk.0.attn_k.weight" else values))
