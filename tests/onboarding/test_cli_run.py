"""`custom-ops onboard verify`: what is printed, and the exit codes."""

import re

import pytest

pytest.importorskip("transformers")  # the extra `onboard`
click_testing = pytest.importorskip("click.testing")
from tiny_models import build_variant  # noqa: E402

from custom_ops.cli_commands import main  # noqa: E402


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lfm2")
    build_variant("lfm2").save_pretrained(folder)
    return folder


def run(*arguments):
    return click_testing.CliRunner().invoke(main, ["onboard", *map(str, arguments)])


def test_verify_that_passes(model_dir, tmp_path):
    done = run("verify", model_dir, "--batch", 1, "--length", 12, "--html", tmp_path / "report.html")
    assert done.exit_code == 0, done.output
    assert "lfm2 float32, 1 x 12 tokens, against transformers" in done.output and "passed in" in done.output
    page = (tmp_path / "report.html").read_text()
    assert "lfm2: agrees with transformers" in page and page.count("<td>ok") == 11 and "class=no" not in page
    assert done.output.count(" ok\n") == 11 and "DIFFERS" not in done.output


def test_verify_that_differs(model_dir, tmp_path):
    """A map of the user's with gate and up the other way round."""
    names = 'mlp_names = { gate = "w3", up = "w1", down = "w2" }'
    (tmp_path / "wrong.toml").write_text(f'ids = ["lfm2"]\ninherit = "lfm2"\n[traits]\n{names}\n')
    done = run("verify", model_dir, "--map-dir", tmp_path, "--html", tmp_path / "report.html")
    assert done.exit_code == 1
    page = (tmp_path / "report.html").read_text()
    assert "lfm2: differs from transformers" in page and "gate and up are swapped in the MLP" in page and page.count("<td>block ") == 4
    assert page.count("<td class=no>differs") == 8 and list(tmp_path.glob("report.html.*")) == []
    assert "first difference: block 0, mlp down" in done.output and "cause: gate and up are swapped in the MLP" in done.output


def test_verify_says_what_begins(model_dir, tmp_path):
    from custom_ops.onboarding.verify import verify

    (tmp_path / "wrong.toml").write_text('ids = ["lfm2"]\ninherit = "lfm2"\n[traits]\nrope_pairing = "interleaved"\n')
    seen = []
    verify(model_dir, map_dirs=[tmp_path], batch=1, length=12, progress=seen.append)
    assert seen == ["loading LlmModel", "loading transformers' model", "comparing", "looking for the block, the part and the mistake"]


def test_verify_of_no_model(tmp_path):
    done = run("verify", tmp_path / "none")
    assert done.exit_code == 2 and "no such model directory" in done.output


def test_verify_with_another_theta(model_dir, tmp_path):
    """A family whose documented base is wrong: config.json states the right one, so the map's default is never taken."""
    (tmp_path / "other.toml").write_text('ids = ["lfm2"]\ninherit = "lfm2"\n[traits]\nrope_default_theta = 10000.0\n')
    assert run("verify", model_dir, "--map-dir", tmp_path, "--length", 12).exit_code == 0


def test_verify_with_the_wrong_pairing(model_dir, tmp_path):
    (tmp_path / "wrong.toml").write_text('ids = ["lfm2"]\ninherit = "lfm2"\n[traits]\nrope_pairing = "interleaved"\n')
    done = run("verify", model_dir, "--map-dir", tmp_path)
    assert done.exit_code == 1
    assert "first difference: block 1, attention" in done.output
    assert "cause: rotary pairing: is 'interleaved', the reference agrees with 'half'" in done.output


# --- generate, perplexity


def test_generate(text_dir):
    done = run("generate", text_dir, "-p", "the sea", "-n", 12, "--ignore-eos", "--threads", 1)
    assert done.exit_code == 0, done.output
    again = run("generate", text_dir, "-p", "the sea", "-n", 12, "--ignore-eos")
    assert done.stdout == again.stdout and done.stdout.strip()
    assert "12 tokens in" in done.stderr and "prompt tokens in" in done.stderr and "hybrid memory" in done.stderr
    drawn = run("generate", text_dir, "-p", "the sea", "-n", 12, "--ignore-eos", "--temperature", 2, "--seed", 5)
    assert drawn.exit_code == 0 and drawn.stdout != done.stdout


@pytest.mark.parametrize("arguments, message", [(["--top-p", 2], "top_p must be above 0 and at most 1, got 2.0"),
                                                (["--system", "x"], "--chat"), (["--chat"], "no chat template"),
                                                (["--mnn", "x.mnn", "--dtype", "float32"], "--dtype is for reading the checkpoint's"),
                                                (["--mnn", "x.mnn", "--map-dir", "maps"], "--map-dir is for reading the checkpoint's")])
def test_generate_refuses(arguments, message, text_dir):
    done = run("generate", text_dir, "-p", "the sea", *arguments)
    assert done.exit_code == 2 and message in done.output


def test_no_tokenizer(model_dir):
    done = run("generate", model_dir, "-p", "the sea")
    assert done.exit_code == 2 and "no tokenizer" in done.output


def test_perplexity(text_dir, tmp_path):
    (tmp_path / "text.txt").write_text("the sea is blue, the sky is wide\n" * 4)
    done = run("perplexity", text_dir, tmp_path / "text.txt", "--context", 16)
    assert done.exit_code == 0 and "perplexity " in done.stdout and "tokens in" in done.stdout
    done = run("perplexity", text_dir, tmp_path / "text.txt", "--context", 16, "--stride", 16)
    assert done.exit_code == 2 and "stride must be 1 to context - 1 = 15" in done.output
    assert run("perplexity", text_dir, tmp_path / "none.txt").exit_code == 2


def test_perplexity_page(text_dir, tmp_path):
    (tmp_path / "text.txt").write_text("the sea is blue, the sky is wide & the sea <is> blue\n" * 40)
    page = tmp_path / "page.html"
    done = run("perplexity", text_dir, tmp_path / "text.txt", "--context", 16, "--html", page)
    assert done.exit_code == 0, done.output
    text, (_, value, *rest) = page.read_text(), done.stdout.split()
    tokens = int(rest[rest.index("over") + 1])
    assert f"<td style='text-align:left'>{value}</tr>" in text and f"{tokens} tokens scored in" in text and "lfm2, 4 blocks, hybrid" in text
    assert "tokens/s" in text and str(text_dir) in text and list(tmp_path.glob("page.html.*")) == []
    curves = [curve.split("'")[1].split() for curve in text.split("<polyline ")[1:]]
    each = -(-tokens // 300)
    assert each > 1 and [len(points) for points in curves] == [-(-tokens // each)] * 2
    assert len(re.findall(r"<td>\d+ to \d+<td>", text)) == 10 and "nan" not in text and "<script" not in text


def test_perplexity_page_of_known_losses(tmp_path):
    """The curves show the losses that were measured: means of pieces, and the mean so far, whose end is the result."""
    import torch

    from custom_ops.onboarding.page_perplexity import page
    from custom_ops.onboarding.perplexity import Perplexity

    losses = torch.tensor([4.0, 2.0, 0.0, 2.0], dtype=torch.float64)
    text = page(Perplexity(7.389, 2.0, 4, 2.0, losses, ((0, 1, 3), (1, 3, 5)), "llama <x>"), "models/a&b", "t.txt")
    thin, running = (curve.split("'")[1] for curve in text.split("<polyline ")[1:])
    heights = [float(point.split(",")[1]) for point in thin.split()]
    assert heights == [0.5, 135.5, 270.5, 135.5]  # 4 is at the top, 0 at the bottom of 270
    assert [float(point.split(",")[1]) for point in running.split()] == [0.5, 68.0, 135.5, 135.5]
    assert "<td>1 to 2<td><td>3.0000<td>20.086" in text and "<td>3 to 4<td><td>1.0000<td>2.718" in text
    assert "models/a&amp;b (llama &lt;x&gt;)" in text and "2.0 tokens/s, 2.0 s (measured)" in text
    hopeless = Perplexity(float("inf"), 1e4, 4, 2.0, losses + 1e4, ((0, 1, 5),))  # exp of it is beyond float64
    assert "<td>1 to 4<td><td>10002.0000<td>inf" in page(hopeless, "m", "t.txt")


# --- what is said before a long run, or instead of one


@pytest.mark.parametrize("command", [["verify"], ["perplexity", "-"]])
def test_a_page_that_cannot_be_written(command, text_dir, tmp_path):
    done = run(command[0], text_dir, *command[1:], "--html", tmp_path / "none" / "page.html")
    assert done.exit_code == 2 and "no such folder" in done.output and "passed" not in done.output


def test_more_than_the_model_is_made_for(text_dir, tmp_path):
    (tmp_path / "text.txt").write_text("the sea is blue\n" * 300)
    done = run("generate", text_dir, "-p", "the sea", "-n", 600, "--ignore-eos")
    assert done.exit_code == 0 and "more than the 512 that the model is made for" in done.stderr
    done = run("perplexity", text_dir, tmp_path / "text.txt", "--context", 600)
    assert done.exit_code == 0 and "note: 600 tokens are more than the 512" in done.stderr
    assert "note" not in run("perplexity", text_dir, tmp_path / "text.txt").stderr


def test_a_tokenizer_of_another_model(text_dir, tmp_path):
    from tokenizers import AddedToken
    from transformers import AutoTokenizer

    build_variant("llama", vocab_size=200).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(text_dir)
    tokenizer.add_tokens([AddedToken("sea", normalized=False)])
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "text.txt").write_text("the sea is blue")
    for command in (["generate", tmp_path, "-p", "the sea"], ["perplexity", tmp_path, tmp_path / "text.txt"]):
        done = run(*command)
        assert done.exit_code == 2 and "the model has 200: they do not belong together" in done.output


def test_text_that_is_no_unicode(text_dir, tmp_path):
    (tmp_path / "text.txt").write_bytes(b"\xff\xfe\x00")
    done = run("perplexity", text_dir, tmp_path / "text.txt")
    assert done.exit_code == 2 and "text.txt: is no UTF-8 text" in done.output
    done = click_testing.CliRunner().invoke(main, ["onboard", "generate", str(text_dir), "-p", "-"], input=b"\xff\xfe")
    assert done.exit_code == 2 and "standard input: is no UTF-8 text" in done.output


@pytest.mark.parametrize("option", [["--threads", 100_000], ["--seed", 2**70], ["--seed", -1]])
def test_numbers_beyond_what_torch_takes(option, text_dir):
    assert run("generate", text_dir, "-p", "the sea", *option).exit_code == 2


def test_what_transformers_refuses_before_it_is_a_tokenizer(text_dir, tmp_path):
    """config.json is told of by its key, not by an exception of transformers."""
    import json

    for path in text_dir.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"vocab_size": "320"}))
    for command in (["generate", tmp_path, "-p", "the sea"], ["verify", tmp_path]):
        done = run(*command)
        assert done.exit_code == 2 and "vocab_size: must be an integer >= 1, is '320'" in done.output
