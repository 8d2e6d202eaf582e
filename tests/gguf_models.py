"""Tiny models and tokenizers for the tests of GGUF export: what llama.cpp can run, so key and value heads of one size, a full rotation for
llama, and rotary sections that fit."""

import json

import pytest
from tiny_models import CONVS, MOE, save

SIZES = dict(vocab_size=512, hidden_size=64, intermediate_size=96, num_hidden_layers=4, max_position_embeddings=256)
DELTA = dict(head_dim=16, linear_key_head_dim=16, linear_value_head_dim=16)
WIDE = dict(MOE, moe_intermediate_size=32)  # a whole q8_0 block
SHARED = dict(WIDE, shared_expert_intermediate_size=32)
LLAMA3 = dict(rope_type="llama3", rope_theta=1e4, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=32)

#: name -> (model_type, architecture of llama.cpp, changes to the configuration)
MODELS = {
    "llama": ("llama", "llama", dict(rope_theta=5e5)),
    "llama3": ("llama", "llama", dict(rope_parameters=LLAMA3, tie_word_embeddings=True)),
    "llama_biases": ("llama", "llama", dict(attention_bias=True, num_key_value_heads=4, head_dim=32)),
    "qwen2": ("qwen2", "qwen2", dict(rope_theta=1e6)),
    "qwen2_linear": ("qwen2", "qwen2", dict(rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=4.0))),
    "qwen3": ("qwen3", "qwen3", dict(head_dim=32)),
    "qwen3_yarn": ("qwen3", "qwen3", dict(head_dim=32, rope_parameters=YARN)),
    "qwen3_yarn_magnitude": ("qwen3", "qwen3", dict(head_dim=32, rope_parameters=dict(YARN, attention_factor=1.3, beta_fast=16.0))),
    "qwen3moe": ("qwen3_moe", "qwen3moe", dict(WIDE, head_dim=16, norm_topk_prob=True)),
    "gemma2": ("gemma2", "gemma2", dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=8, attn_logit_softcapping=20.0,
                                        final_logit_softcapping=15.0)),
    "lfm2": ("lfm2", "lfm2", CONVS),
    "lfm2moe": ("lfm2_moe", "lfm2moe", dict(CONVS, **WIDE)),
    "qwen3next": ("qwen3_next", "qwen3next", dict(DELTA, **SHARED, head_dim=32)),
    "qwen35": ("qwen3_5_text", "qwen35", dict(DELTA, head_dim=64, rope_parameters=dict(
        rope_type="default", rope_theta=1e6, partial_rotary_factor=0.25, mrope_section=[3, 3, 2], mrope_interleaved=True))),
    "qwen35_order": ("qwen3_5_text", "qwen35", dict(DELTA, head_dim=32, linear_num_value_heads=6, layer_types=[
        "linear_attention", "full_attention", "full_attention", "linear_attention"])),
    "qwen35moe": ("qwen3_5_moe_text", "qwen35moe", dict(DELTA, **SHARED, head_dim=32)),
}


def save_model(name: str, folder):
    """Of MODELS, saved as transformers writes it, without a tokenizer; returns the model."""
    model_type, _, changes = MODELS[name]
    return save(model_type, folder, **{**SIZES, **changes})


TEXTS = ["The quick brown fox, it's said, didn't jump over 12345 lazy dogs!", "  leading and   inner spaces\n\n\tand a tab",
         "naïve café — Ünïcode: 你好，世界 и привет ١٢٣", "def f(x):\n    return x ** 2  # squared\n",
         "I'LL say: he'd, WE'VE, x's 'quoted' … end ", ""]
SPLITS = {
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen35": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
TOKENIZERS = ("gpt-2", "smollm", *SPLITS, "sentencepiece", "sentencepiece-json")
SPECIAL = ["<|end|>", "<|begin|>", "<|pad|>"]


def save_tokenizer(kind: str, folder, ids: int = 512) -> None:
    """A tokenizer of TOKENIZERS with at most so many ids, trained on TEXTS and on this package's own documentation."""
    if kind.startswith("sentencepiece"):
        _sentencepiece(folder, ids)
        if kind.endswith("json"):
            _as_json(folder)
        return
    tokenizers = pytest.importorskip("tokenizers")
    steps, by = tokenizers.pre_tokenizers, []
    if kind in SPLITS:
        by = [steps.Split(tokenizers.Regex(SPLITS[kind]), "isolated"), steps.ByteLevel(add_prefix_space=False, use_regex=False)]
    else:
        by = [steps.Digits(individual_digits=True)] * (kind == "smollm") + [steps.ByteLevel(add_prefix_space=False)]
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = steps.Sequence(by)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=ids - 10, special_tokens=SPECIAL, initial_alphabet=steps.ByteLevel.alphabet(),
                                             show_progress=False)
    made.train_from_iterator(corpus(), trainer)
    made.add_tokens(["<tool>"])
    if kind == "llama-bpe":
        made.post_processor = tokenizers.processors.TemplateProcessing("<|begin|> $A", special_tokens=[("<|begin|>", 1)])
    made.save(str(folder / "tokenizer.json"))
    settings = {"eos_token": SPECIAL[0], "bos_token": {"content": SPECIAL[1]}, "pad_token": SPECIAL[2], "chat_template": "{{ messages }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def corpus() -> list[str]:
    import custom_ops

    return TEXTS * 20 + [custom_ops.fused_linear_attention.__doc__ or "", custom_ops.__doc__ or ""]


def _sentencepiece(folder, ids: int) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    with open(folder / "tokenizer.model", "wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter("\n".join(corpus()).splitlines()), model_writer=stream, vocab_size=ids, model_type="bpe",
            byte_fallback=True, character_coverage=1.0, unk_id=0, bos_id=1, eos_id=2, pad_id=-1, hard_vocab_limit=False, minloglevel=2,
            normalization_rule_name="identity", remove_extra_whitespaces=False)


def _as_json(folder) -> None:
    """The same pieces as a tokenizer.json, the way transformers writes Llama 2's."""
    sentencepiece, tokenizers = pytest.importorskip("sentencepiece"), pytest.importorskip("tokenizers")
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    words = [model.id_to_piece(i) for i in range(model.get_piece_size())]
    places = {word: i for i, word in enumerate(words)}
    splits = [(i, word[:cut], word[cut:]) for i, word in enumerate(words) if not model.is_byte(i) for cut in range(1, len(word))]
    pairs = [(left, right) for _, left, right in sorted((-model.get_score(i), left, right) for i, left, right in splits)
             if left in places and right in places]
    made = tokenizers.Tokenizer(tokenizers.models.BPE(places, pairs, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    steps = tokenizers.normalizers
    made.normalizer = steps.Sequence([steps.Prepend("▁"), steps.Replace(" ", "▁")])
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    made.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer.model").unlink()


def rewrite(path, arch="llama", drop=(), change=lambda name, values: values, keys=lambda name, value: value, kinds=None):
    """A copy of a file with the package's own writer. kinds: types of tensors that `change` encodes by itself."""
    gguf = pytest.importorskip("gguf")
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(path.with_name("changed.gguf"), arch)
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture" and (value := keys(name, field.contents())) is not None:
            writer.add_key_value(name, value, field.types[0], field.types[-1] if len(field.types) > 1 else None)
    for tensor in reader.tensors:
        if tensor.name not in drop:
            writer.add_tensor(tensor.name, change(tensor.name, tensor.data.copy()), raw_dtype=(kinds or {}).get(tensor.name))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.with_name("changed.gguf")
