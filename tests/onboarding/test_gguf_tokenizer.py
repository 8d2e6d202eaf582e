"""Tokenizers in GGUF files: what is written, and what is refused. What llama.cpp makes of them: test_gguf_llama_cpp.py."""

import json

import pytest
from gguf_models import TOKENIZERS, save_tokenizer

from custom_ops.onboarding import OnboardingError
from custom_ops.onboarding.export import export

pytest.importorskip("gguf", reason="pip install 'custom_ops[gguf]'")
pytest.importorskip("transformers", reason="pip install 'custom_ops[onboard]'")

from custom_ops.onboarding.export.gguf.read import GgufFile  # noqa: E402


@pytest.fixture
def with_tokenizer(gguf_folders, tmp_path):
    """A copy of the llama model with a tokenizer of this kind."""
    def make(kind="qwen2", name="llama"):
        for path in gguf_folders(name).iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        if kind:
            save_tokenizer(kind, tmp_path)
        return tmp_path
    return make


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_tokenizer_keys(kind, with_tokenizer):
    folder = with_tokenizer(kind)
    export(folder, "gguf", folder / "out.gguf")
    values = {key.removeprefix("tokenizer.ggml."): value for key, value in GgufFile(folder / "out.gguf", words=True).values.items()}
    spm = kind.startswith("sentencepiece")
    assert values["model"] == ("llama" if spm else "gpt2") and values.get("pre") == (None if spm else kind)
    words, kinds = values["tokens"], values["token_type"]
    assert len(words) == len(kinds) == len(set(words)) == 512
    if spm:
        assert words[:3] == ["<unk>", "<s>", "</s>"] and kinds[:4] == [2, 3, 3, 6] and len(values["scores"]) == 512
        assert values["add_bos_token"] and values["add_space_prefix"]
    else:
        assert values["eos_token_id"] == 0 and values["bos_token_id"] == 1 and values["padding_token_id"] == 2
        assert kinds[0] == 3 and kinds[words.index("<tool>")] == 4 and words[-1] == "[PAD511]" and kinds[-1] == 5
        assert values["add_bos_token"] == (kind == "llama-bpe") and values["tokenizer.chat_template"] == "{{ messages }}"
        merged = json.loads((folder / "tokenizer.json").read_text())["model"]["merges"]
        assert values["merges"] == [pair if isinstance(pair, str) else " ".join(pair) for pair in merged]


def test_several_ends_and_a_template_file(with_tokenizer):
    folder = with_tokenizer()
    (folder / "generation_config.json").write_text('{"eos_token_id": [7, 0]}')
    (folder / "chat_template.jinja").write_text("{# own #}")
    export(folder, "gguf", folder / "out.gguf")
    values = GgufFile(folder / "out.gguf", words=True).values
    assert values["tokenizer.ggml.eos_token_id"] == 0 and values["tokenizer.ggml.eot_token_id"] == 7
    assert values["tokenizer.chat_template"] == "{# own #}"


def test_a_named_pre_tokenizer(with_tokenizer):
    folder = with_tokenizer("gpt-2")
    export(folder, "gguf", folder / "out.gguf", pre="olmo")
    assert GgufFile(folder / "out.gguf", words=True).values["tokenizer.ggml.pre"] == "olmo"


def change(part, value):
    def apply(folder):
        path = folder / "tokenizer.json"
        content = json.loads(path.read_text())
        inner = content
        for step in part[:-1]:
            inner = inner[step]
        inner[part[-1]] = value(inner[part[-1]]) if callable(value) else value
        path.write_text(json.dumps(content))
    return apply


TOKENIZER_ERRORS = {
    "missing": (None, lambda folder: None, r"no tokenizer\.json and no tokenizer\.model; save the tokenizer .* \(--no-tokenizer\)"),
    "no_json": ("qwen2", lambda folder: (folder / "tokenizer.json").write_text("{"), "tokenizer.json: JSON cannot be read"),
    "unknown_split": ("qwen2", change(["pre_tokenizer", "pretokenizers", 0, "pattern"], {"Regex": "x+"}),
                      r"pre-tokenizer is none of gpt-2, .*: split \['x\+'\].*--pre NAME"),
    "unknown_step": ("gpt-2", change(["pre_tokenizer"], {"type": "Sequence", "pretokenizers": [
        {"type": "Punctuation"}, {"type": "ByteLevel"}]}), r"split \['<Punctuation>'\]"),
    "normaliser": ("qwen2", change(["normalizer"], {"type": "Lowercase"}), r"its normalizer \(Lowercase\) has no counterpart"),
    "too_many": ("qwen2", change(["model", "vocab"], lambda vocab: vocab | {"zzz": 512}), "ids up to 512, the embedding 512 rows"),
    "two_of_one_id": ("qwen2", change(["model", "vocab"], lambda vocab: vocab | {"zzz": 5}), "gives two tokens one id"),
    "two_ids": ("qwen2", change(["added_tokens"], lambda added: [*added, {"id": 510, "content": "<tool>"}]), "token '<tool>' has two ids"),
    "nul": ("qwen2", change(["added_tokens"], lambda added: [*added, {"id": 510, "content": "a\0b"}]), "holds a NUL character"),
    "bad_added": ("qwen2", change(["added_tokens"], [{"id": "0"}]), "added_tokens must be a list of objects"),
    "bad_merge": ("qwen2", change(["model", "merges"], ["a b c"]), "merge 'a b c' is no pair"),
    "word_piece": ("qwen2", change(["model"], {"type": "WordPiece", "vocab": {}}), "of kind 'WordPiece' has no counterpart"),
    "list": ("qwen2", lambda folder: (folder / "tokenizer.json").write_text("[]"), "of kind None has no counterpart"),
    "template": ("qwen2", lambda folder: (folder / "chat_template.jinja").write_bytes(b"\xff\xfe"), "is no UTF-8 text"),
    "settings": ("qwen2", lambda folder: (folder / "tokenizer_config.json").write_text("[]"), "must hold an object, holds list"),
    "generation": ("qwen2", lambda folder: (folder / "generation_config.json").write_text("[1]"), "must hold an object, holds list"),
    "cut_model": ("sentencepiece", lambda folder: (folder / "tokenizer.model").write_bytes((folder / "tokenizer.model").read_bytes()[:-9]),
                  "no SentencePiece model, or damaged"),
    "no_model": ("sentencepiece", lambda folder: (folder / "tokenizer.model").write_bytes(b"\xff" * 100),
                 "no SentencePiece model, or damaged"),
    "empty_model": ("sentencepiece", lambda folder: (folder / "tokenizer.model").write_bytes(b""), "has no pieces"),
    "unigram": ("sentencepiece", lambda folder: (folder / "tokenizer.model").write_bytes(b"\x0a\x03\x0a\x01a"), "is of kind 1"),
}


@pytest.mark.parametrize("case", TOKENIZER_ERRORS)
def test_tokenizer_errors(case, with_tokenizer):
    kind, break_it, message = TOKENIZER_ERRORS[case]
    folder = with_tokenizer(kind)
    break_it(folder)
    before = sorted(folder.iterdir())
    with pytest.raises(OnboardingError, match=message):
        export(folder, "gguf", folder / "out.gguf")
    assert sorted(folder.iterdir()) == before
