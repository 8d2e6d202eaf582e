"""Small models of transformers trained for about a minute on real text, with a tokenizer of their own: what random weights cannot show, a
perplexity far below the vocabulary and text that continues. The text is Python's own documentation, which every CPython has."""

import json
import os
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest

IDS = 512
COMMON = dict(vocab_size=IDS, hidden_size=96, intermediate_size=192, num_attention_heads=4, num_key_value_heads=2,
              max_position_embeddings=512, bos_token_id=0, eos_token_id=0, pad_token_id=0, tie_word_embeddings=True)
MODELS = {  # name: (configuration class, arguments, steps)
    "lfm2": ("Lfm2Config", dict(num_hidden_layers=5, layer_types=["conv", "conv", "full_attention", "conv", "full_attention"],
                                block_auto_adjust_ff_dim=False), 160),
    "qwen3_5_text": ("Qwen3_5TextConfig", dict(
        num_hidden_layers=4, head_dim=32, linear_key_head_dim=32, linear_value_head_dim=32, linear_num_key_heads=2,
        linear_num_value_heads=4, linear_conv_kernel_dim=4,
        rope_parameters=dict(rope_type="default", rope_theta=1e6, partial_rotary_factor=0.5, mrope_section=[3, 3, 2],
                             mrope_interleaved=True)), 120),
}
_WORDS, _REST = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?", r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPLIT = {  # of the family's real tokenizers
    "lfm2": _WORDS + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+" + _REST,
    "qwen3_5_text": _WORDS + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+" + _REST,
}
BATCH, LENGTH = 8, 96


def texts() -> tuple[str, str]:
    """For training, and held back."""
    from pydoc_data.topics import topics

    whole = [topics[name] for name in sorted(topics)]
    return "\n".join(whole[4:]), "\n".join(whole[:4])


def trained(name: str, tmp_path_factory) -> Path:
    """A model directory with a trained model and its tokenizer, made once for all processes of a run; in CUSTOM_OPS_CACHE_DIR, where that
    is set, for the next run too."""
    from filelock import FileLock

    given, base = os.environ.get("CUSTOM_OPS_CACHE_DIR"), tmp_path_factory.getbasetemp()
    parent = Path(given) if given else base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = parent / f"trained_{name}_{zlib.crc32(Path(__file__).read_bytes()):08x}"
    parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            made = Path(tempfile.mkdtemp(dir=parent, prefix=folder.name))
            _save(name, made)
            made.rename(folder)
    return folder


def perplexity(logits, tokens) -> float:
    """Of tokens [L] under logits [L, vocab]; NumPy, float64."""
    logits = np.asarray(logits, np.float64)[:-1]
    losses = np.logaddexp.reduce(logits, -1) - logits[np.arange(len(logits)), tokens[1:]]
    return float(np.exp(losses.mean()))


def _save(name: str, folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    tokenizer = _tokenizer(name, folder)
    ids = torch.tensor(tokenizer.encode(texts()[0]).ids)
    kind, arguments, steps = MODELS[name]
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, kind)(**COMMON, **arguments)).float()
    optimiser = torch.optim.AdamW(model.parameters(), 4e-3, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, steps, pct_start=0.1)
    for _ in range(steps):
        starts = torch.randint(len(ids) - LENGTH, (BATCH, 1))
        batch = ids[starts + torch.arange(LENGTH)]
        loss = model(batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
    model.eval().save_pretrained(folder)


def _tokenizer(name: str, folder: Path):
    tokenizers = pytest.importorskip("tokenizers")
    steps = tokenizers.pre_tokenizers
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = steps.Sequence([steps.Split(tokenizers.Regex(SPLIT[name]), "isolated"),
                                         steps.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=IDS, special_tokens=["<|end|>"], initial_alphabet=steps.ByteLevel.alphabet(),
                                             show_progress=False)
    made.train_from_iterator([texts()[0]], trainer)
    made.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "bos_token": "<|end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return made
