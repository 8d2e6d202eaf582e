"""Progress of commands that take long: bars and lines on a terminal, nothing of them on a pipe."""

import io
import re
import sys

import pytest
from tiny_models import build_variant

pytest.importorskip("transformers")  # the extra `onboard`
from click.testing import CliRunner  # noqa: E402

from custom_ops.cli_commands import main  # noqa: E402
from custom_ops.cli_progress import bar, step  # noqa: E402
from custom_ops.onboarding import OnboardingError  # noqa: E402
from custom_ops.onboarding.weights import load  # noqa: E402


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch):
    """What standard error shows from here on, as a terminal."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("the sea is blue, the sky is wide\n" * 8)
    return tmp_path / "text.txt"


@pytest.fixture(params=["generate", "perplexity", "verify", "export"])
def long(request, text_dir, text, tmp_path):
    """Arguments of a command, and what begins a line while it works."""
    return {"generate": (["generate", text_dir, "-p", "the sea", "-n", 4, "--ignore-eos"], ["loading"]),
            "perplexity": (["perplexity", text_dir, text, "--context", 16], ["loading", "reading"]),
            "verify": (["verify", text_dir, "--batch", 1, "--length", 8], ["loading LlmModel ...", "weights", "loading transformers' model ..."]),
            "export": (["export", text_dir, "--format", "onnx", "-o", tmp_path / "model.onnx"], ["tensors"])}[request.param]


def run_to_its_end(arguments):
    main(["onboard", *map(str, arguments)], standalone_mode=False)


def test_on_a_terminal(long, monkeypatch, capsys):
    """A bar grows from less than its end to it, and what follows it has a line of its own."""
    arguments, beginnings = long
    shown = terminal(monkeypatch)
    run_to_its_end(arguments)
    lines = [re.sub(r"\x1b\[\S*?[hlK]", "", line) for line in shown.getvalue().split("\n")]
    for beginning in beginnings:
        [line] = [line for line in lines if line.lstrip("\r").startswith(beginning)]
        if not beginning.endswith("..."):
            percents = [int(number) for number in re.findall(r"(\d+)%", line)]
            assert percents == sorted(percents) and percents[0] < 50 and percents[-1] == 100
    assert "%" not in capsys.readouterr().out


def test_on_a_pipe(long):
    arguments, beginnings = long
    done = CliRunner().invoke(main, ["onboard", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    assert "%" not in done.output and not any(line.startswith(tuple(beginnings)) for line in done.output.splitlines())


def test_a_bar_that_fails_ends_its_line(monkeypatch):
    shown = terminal(monkeypatch)
    with pytest.raises(ValueError), bar("tensors") as progress:
        progress(1, 3)
        raise ValueError
    assert "33%" in shown.getvalue() and shown.getvalue().endswith("\x1b[?25h\n")


def test_no_bar_without_a_call(monkeypatch):
    shown = terminal(monkeypatch)
    with bar("tensors"):
        pass
    assert shown.getvalue() == ""
    step("loading")
    assert shown.getvalue() == "loading ...\n"


def test_bytes_of_a_load(text_dir):
    """Every tensor that is read counts, as often as it has bytes."""
    told = []
    model = load(text_dir, progress=lambda done, of: told.append((done, of)))
    done = [one for one, _ in told]
    assert done == sorted(set(done)) and {of for _, of in told} == {done[-1]}
    assert done[-1] == sum(parameter.nbytes for parameter in model.parameters()) and len(done) > 20


def test_a_load_that_fails_on_a_terminal(monkeypatch, tmp_path):
    """The message begins a line."""
    model = build_variant("llama")
    model.model.norm.weight.data[3] = float("nan")
    model.save_pretrained(tmp_path)
    shown = terminal(monkeypatch)
    with bar("loading") as progress, pytest.raises(OnboardingError, match="norm.weight are NaN"):
        load(tmp_path, progress=progress)
    assert shown.getvalue().endswith("\x1b[?25h\n") and "100%" not in shown.getvalue()
