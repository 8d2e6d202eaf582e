"""Two models trained on real text, from the checkpoint to every runtime: the same perplexity and the same words everywhere, and on the
simulated chips."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from trained_models import perplexity

for module, extra in (("transformers", "onboard"), ("tokenizers", "onboard"), ("gguf", "gguf"), ("MNN", "mnn"), ("onnxruntime", "onnx"),
                      ("llama_cpp", "llama-cpp")):
    pytest.importorskip(module, reason=f"pip install 'custom_ops[{extra}]'")

import onnxruntime  # noqa: E402
from click.testing import CliRunner  # noqa: E402
from inputs import SIMULATED  # noqa: E402
from tiny_models import build_variant  # noqa: E402

import custom_ops  # noqa: E402
from custom_ops.cli_commands import main  # noqa: E402
from custom_ops.onboarding.export.gguf.runtime import LlamaCpp  # noqa: E402
from custom_ops.onboarding.export.mnn.runtime import MnnModel  # noqa: E402
from custom_ops.onboarding.generate import Session  # noqa: E402
from custom_ops.onboarding.weights import load  # noqa: E402

PROMPT, NEW, SCORED = slice(100, 130), 40, 256
EXPORTS = {"gguf": ("--type", "f32"), "mnn": (), "onnx": ()}
DOCUMENT = Path(__file__).resolve().parents[2] / "docs/onboarding/export.md"

pytestmark = pytest.mark.usefixtures("one_thread")


def command(*arguments):
    done = CliRunner().invoke(main, ["onboard", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def files(real, tmp_path_factory):
    """Format -> the file that the command wrote of the model."""
    folder = tmp_path_factory.mktemp("exports")
    for format, options in EXPORTS.items():
        command("export", real[0], "--format", format, *options, "-o", folder / f"model.{format}")
    return {format: folder / f"model.{format}" for format in EXPORTS}


@pytest.fixture(scope="module")
def ids(real):
    return real[2].encode(real[3]).ids


@pytest.fixture(scope="module")
def words(real, ids):
    """The prompt and transformers' greedy continuation."""
    prompt = torch.tensor([ids[PROMPT]])
    with torch.no_grad():
        row = real[1].generate(prompt, max_new_tokens=NEW, do_sample=False)[0].tolist()
    assert len(row) == len(ids[PROMPT]) + NEW
    return row


class OnnxModel:
    """Called as LlmModel is without a memory."""

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def __call__(self, tokens):
        return torch.from_numpy(self._session.run(None, {"tokens": np.asarray(tokens, np.int64)})[0])


def test_analyze_and_verify(real):
    assert "ready" in command("analyze", real[0]).output.lower()
    assert "passed in" in command("verify", real[0]).output


def test_perplexity(real, files, ids, record_property):
    """Of 256 tokens held back; within 1e-5 of transformers', measured 7e-8."""
    ids = ids[:SCORED]
    tokens = torch.tensor([ids])
    want = perplexity(real[1](tokens).logits[0], ids)
    stepped = MnnModel(files["mnn"])
    memory = stepped.new_memory()
    got = {
        "LlmModel": load(real[0])(tokens)[0],
        "onnxruntime": OnnxModel(files["onnx"])(tokens)[0],
        "MNN": MnnModel(files["mnn"])(tokens)[0],
        "MNN, token by token": torch.cat([stepped(tokens[:, i : i + 1], memory)[0] for i in range(SCORED)]),
        "llama.cpp": LlamaCpp(files["gguf"]).logits([ids])[0],
    }
    found = {name: perplexity(logits, ids) for name, logits in got.items()}
    record_property("perplexity", (want, found))
    assert want < 60  # of 512: the model has learnt
    assert all(abs(value / want - 1) <= 1e-5 for value in found.values()), (want, found)


def test_continuation(real, files, words):
    """40 tokens, each the best one after those before it."""
    prompt, new = words[:-NEW], words[-NEW:]
    for model in (load(real[0]), MnnModel(files["mnn"])):
        assert list(Session(model).generate(prompt, NEW)) == new
    onnx, row = OnnxModel(files["onnx"]), list(prompt)
    for _ in range(NEW):
        row.append(onnx([row])[0, -1].argmax().item())
    assert row == words
    [logits] = LlamaCpp(files["gguf"]).logits([prompt, *([token] for token in new)])
    assert logits[len(prompt) - 1 : -1].argmax(-1).tolist() == new


def test_text_of_the_command(real, files, words):
    prompt = real[2].decode(words[:-NEW])
    arguments = "generate", real[0], "-p", prompt, "-n", 20
    ours, theirs = command(*arguments), command(*arguments, "--mnn", files["mnn"])
    assert ours.stdout == theirs.stdout and len(ours.stdout.strip()) > 20
    assert "hybrid memory" in theirs.stderr


def test_export_of_another_model(real, tmp_path):
    build_variant("llama").save_pretrained(tmp_path)
    command("export", tmp_path, "--format", "mnn", "-o", tmp_path / "other.mnn")
    for options, message in (((), "knows 96 tokens, the tokenizer of"), (("--dtype", "float16"), "--dtype is for reading the checkpoint")):
        done = CliRunner().invoke(main, ["onboard", "generate", str(real[0]), "-p", "a", "--mnn", str(tmp_path / "other.mnn"), *options])
        assert done.exit_code == 2 and message in done.output


@pytest.mark.parametrize("soc", SIMULATED)
def test_simulated_chip(soc, real, words):
    """A prompt of 8 tokens and three more, the linear layers in op_kernel: the same tokens and, within rounding, the same logits."""
    model = load(real[0])
    linear = sum(not layer.is_attention for layer in model.architecture.layers)
    prompt = words[:8]
    want, new = model(torch.tensor([prompt])), list(Session(model).generate(prompt, 3))
    with custom_ops.simulate(soc) as run:
        got = model(torch.tensor([prompt]))
        assert list(Session(model).generate(prompt, 3)) == new
    assert (got - want).abs().max() <= 1e-4
    assert [call.op for call in run.calls] == ["FusedLinearAttention"] * (4 * linear)  # a prompt twice, then two tokens
    assert not any(call.findings for call in run.calls)


def test_document(real, tmp_path, monkeypatch, capsys):
    """The example for MNN in docs/onboarding/export.md."""
    [code] = [block for block in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.S) if "MnnModel" in block]
    monkeypatch.chdir(tmp_path)
    exec(compile(code.replace("MODEL_DIR", str(real[0])), str(DOCUMENT), "exec"), {})
    text, speed = capsys.readouterr().out.rsplit("\n", 2)[:2]
    assert len(text) > 10 and "tokens in" in speed
