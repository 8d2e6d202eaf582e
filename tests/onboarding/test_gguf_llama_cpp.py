"""Exported GGUF files in llama.cpp: logits, decode and perplexity against transformers, tokens against the tokenizer itself."""

import numpy as np
import pytest
import torch
from gguf_models import MODELS, SPECIAL, TEXTS, TOKENIZERS, rewrite, save_model, save_tokenizer
from trained_models import perplexity

from custom_ops.onboarding import OnboardingError
from custom_ops.onboarding.export import export

pytest.importorskip("llama_cpp", reason="pip install 'custom_ops[llama-cpp]'")
pytest.importorskip("gguf", reason="pip install 'custom_ops[gguf]'")
pytest.importorskip("transformers")

from custom_ops.onboarding.export.gguf.read import load  # noqa: E402
from custom_ops.onboarding.export.gguf.runtime import LlamaCpp  # noqa: E402

TOKENS = torch.randint(512, (2, 48), generator=torch.Generator().manual_seed(7))
ROW = TOKENS[0].tolist()


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """name -> (float32 file, transformers' logits of TOKENS)."""
    made = {}

    def get(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            model = save_model(name, folder / "model")
            export(folder / "model", "gguf", folder / "f32.gguf", type="f32", tokenizer=False)
            with torch.no_grad():
                made[name] = folder / "f32.gguf", model(TOKENS).logits.float().numpy()
        return made[name]
    return get


def nmse(got, want):
    return float(((got - want) ** 2).sum() / (want**2).sum())


#: normalised mean square error, largest error of a logit, relative error of perplexity; models with logits of standard deviation 2 to 6.
#: Measured: 9e-10, 4e-4, 3e-6; gemma2 4e-7, 6e-3, 2e-5, see test_gemma2_has_a_table_of_gelu.
BOUNDS = {"gemma2": (1e-6, 2e-2, 1e-4)}
BOUND = 1e-8, 1e-3, 1e-5


@pytest.mark.parametrize("name", MODELS)
def test_logits(name, exported, record_property):
    """A prompt of 48 tokens; and one of 40 continued by 8 single tokens."""
    path, want = exported(name)
    bounds = BOUNDS.get(name, BOUND)
    whole, stepped = LlamaCpp(path).logits([ROW], [ROW[:40], *([token] for token in ROW[40:])])
    for part, got in (("whole", whole), ("stepped", stepped)):
        ours, theirs = perplexity(got, ROW), perplexity(want[0], ROW)
        figures = nmse(got, want[0]), float(abs(got - want[0]).max()), abs(ours / theirs - 1)
        record_property(part, [f"{figure:.1e}" for figure in (*figures, ours, theirs)])
        assert all(figure <= bound for figure, bound in zip(figures, bounds)), (part, figures, ours, theirs)


def test_gemma2_has_a_table_of_gelu(exported):
    """llama.cpp looks GELU up in a table of float16; with the same rounding the model agrees a hundred times better (measured 2e-9)."""
    path, want = exported("gemma2")
    [got] = LlamaCpp(path).logits([ROW])
    model = load(path)
    for block in model.blocks:
        block.mlp.act = lambda x: torch.nn.functional.gelu(x.half().float(), approximate="tanh").half().float()
    assert nmse(got, model(TOKENS[:1])[0].numpy()) <= 1e-8 < 1e-7 < nmse(got, want[0])


HYBRIDS = ["llama", "gemma2", "lfm2", "lfm2moe", "qwen3next", "qwen35", "qwen35moe"]


@pytest.mark.parametrize("name", HYBRIDS)
def test_sequences_in_one_batch(name, exported):
    """Prompts of unequal lengths, then single tokens of both."""
    path, want = exported(name)
    one, two = TOKENS.tolist()
    got = LlamaCpp(path).together([one[:40], two[:33]], *([[one[40 + i]], [two[33 + i]]] for i in range(8)))
    assert nmse(got[:48], want[0]) <= 1e-6 and nmse(got[48:], want[1, :41]) <= 1e-6


FAULTS = {  # what a mistake in a file looks like: the bound above tells it
    "base": ("llama", dict(keys=lambda name, value: 1e4 if name.endswith("freq_base") else value)),
    "pairs": ("qwen3", dict(change=lambda name, values: values[[*range(0, 32, 2), *range(1, 32, 2), *range(32, 128)]]
                            if name == "blk.0.attn_q.weight" else values)),
    "kernel": ("lfm2", dict(change=lambda name, values: values[:, ::-1].copy() if "conv.conv" in name else values)),
    "norms": ("gemma2", dict(change=lambda name, values: values - 1 if name == "blk.0.attn_norm.weight" else values)),
    "heads": ("qwen35", dict(change=lambda name, values: values[::-1].copy() if name == "blk.0.ssm_a" else values)),
    "selection": ("lfm2moe", dict(change=lambda name, values: values * 0 if "exp_probs_b" in name else values)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_show(fault, exported):
    name, how = FAULTS[fault]
    path, want = exported(name)
    [got] = LlamaCpp(rewrite(path, arch=name, **how)).logits([ROW])
    assert nmse(got, want[0]) > 1e-4


@pytest.mark.parametrize("type, bound", [("f16", 1e-4), ("bf16", 2e-3), ("q8_0", 0.1)])
@pytest.mark.parametrize("name", ["llama", "lfm2", "qwen3next"])
def test_types(name, type, bound, exported, tmp_path):
    """Against the same file in LlmModel: what is left is llama.cpp's rounding of activations to the type of the weights, which random
    layers amplify. Measured 1e-5, 6e-4, 3e-2 for qwen3next, where it also moves choices of experts; others a tenth of that."""
    path, _ = exported(name)
    export(path.parent / "model", "gguf", tmp_path / "out.gguf", type=type, tokenizer=False)
    [got] = LlamaCpp(tmp_path / "out.gguf").logits([ROW])
    assert nmse(got, load(tmp_path / "out.gguf")(TOKENS[:1])[0].numpy()) <= bound


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_tokens(kind, tmp_path):
    """Every text gives the ids that the tokenizer itself gives, control and added tokens in it too."""
    save_model("llama", tmp_path)
    save_tokenizer(kind, tmp_path)
    export(tmp_path, "gguf", tmp_path / "out.gguf", type="f32")
    encode = encoder(kind, tmp_path)
    texts = TEXTS if kind.startswith("sentencepiece") else [*TEXTS, f"a<tool>b{SPECIAL[0]} c {SPECIAL[2]}"]
    texts = [*texts, *(text + " " + text for text in TEXTS)]
    for text, got in zip(texts, LlamaCpp(tmp_path / "out.gguf").tokens(*texts)):
        assert got == encode(text), text


def encoder(kind, folder):
    if kind == "sentencepiece":
        import sentencepiece

        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
        return lambda text: model.encode(text, add_bos=True)
    import tokenizers

    made = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda text: made.encode(text).ids


def test_a_process_that_fails_is_an_error(exported, tmp_path):
    path, _ = exported("llama")
    with pytest.raises(OnboardingError, match="llama.cpp ended with 1:(.|\n)*cannot load the file"):
        LlamaCpp(rewrite(path, drop=["blk.0.attn_q.weight"])).logits([ROW])
    with pytest.raises(OnboardingError, match="llama.cpp ended with"):
        LlamaCpp(tmp_path / "absent.gguf").logits([ROW])
    with pytest.raises(OnboardingError, match="did not finish in 0.01 s"):
        LlamaCpp(path, timeout=0.01).logits([ROW])


# --- models that were trained: perplexity and continuations that mean something

RELATIVE = {"f32": 1e-5, "f16": 1e-3, "q8_0": 5e-3}  # of perplexity; measured 1e-6, 1e-4 and 1e-3


@pytest.mark.parametrize("type", RELATIVE)
def test_perplexity_of_a_trained_model(type, real, tmp_path, record_property):
    """llama.cpp cuts the text into the same tokens and is as surprised by them as transformers and as LlmModel on the same file."""
    folder, model, tokenizer, text = real
    export(folder, "gguf", tmp_path / "out.gguf", type=type)
    runtime = LlamaCpp(tmp_path / "out.gguf")
    [ids] = runtime.tokens(text)
    assert ids == tokenizer.encode(text).ids
    ids = ids[:256]
    with torch.no_grad():
        want = perplexity(model(torch.tensor([ids])).logits[0].numpy(), ids)
        ours = perplexity(load(tmp_path / "out.gguf")(torch.tensor([ids]))[0].numpy(), ids)
    got = perplexity(runtime.logits([ids])[0], ids)
    record_property("perplexity", (want, ours, got))
    assert want < 60  # of 512: the model has learnt
    assert abs(got / want - 1) <= RELATIVE[type] and abs(ours / want - 1) <= RELATIVE[type]


def test_continuation_of_a_trained_model(real, tmp_path):
    """40 tokens of transformers' greedy continuation are what llama.cpp would choose one by one, and LlmModel on the file."""
    folder, model, tokenizer, text = real
    export(folder, "gguf", tmp_path / "out.gguf", type="f32")
    prompt = tokenizer.encode(text).ids[100:130]
    with torch.no_grad():
        row = model.generate(torch.tensor([prompt]), max_new_tokens=40, do_sample=False)[0].tolist()
    assert len(row) == 70
    [got] = LlamaCpp(tmp_path / "out.gguf").logits([prompt, *([token] for token in row[30:])])
    assert got[29:-1].argmax(-1).tolist() == row[30:]
    assert load(tmp_path / "out.gguf")(torch.tensor([row]))[0, 29:-1].argmax(-1).tolist() == row[30:]


def test_command_line(real, tmp_path):
    from click.testing import CliRunner

    from custom_ops.cli_commands import main

    path = tmp_path / "out.gguf"
    arguments = ["onboard", "export", str(real[0]), "--format", "gguf", "--type", "q8_0", "-o", str(path)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0 and "tensors" in done.output, done.output
    assert LlamaCpp(path).tokens("Python's words")[0]
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 2 and "exists already" in again.output
