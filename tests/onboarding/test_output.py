"""Files that are written: under their names whole, together, or not at all."""

import os
import signal
import subprocess
import sys
import time

import pytest
from tiny_models import save

from custom_ops.onboarding import OnboardingError
from custom_ops.onboarding.output import atomic, require_free


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(output, overwrite=False, fault=None):
    with atomic(output, overwrite) as part:
        for suffix in ("", ".data"):
            part(suffix).write_text("new" + suffix)
        if fault:
            fault()


def test_files_appear_together(tmp_path):
    output = tmp_path / "out"

    def nothing_yet():
        assert not output.exists() and len(names(tmp_path)) == 2
    write(output, fault=nothing_yet)
    assert names(tmp_path) == ["out", "out.data"] and output.read_text() == "new"
    assert output.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_after_an_error(error, tmp_path):
    def fail():
        raise error("why")
    with pytest.raises(error, match="why"):
        write(tmp_path / "out", fault=fail)
    assert names(tmp_path) == []


@pytest.mark.parametrize("taken", ["out", "out.data"])
def test_a_name_taken_meanwhile_is_kept(taken, tmp_path):
    """By somebody else, while this one wrote: neither file appears, theirs stays."""
    with pytest.raises(OnboardingError, match=rf"{taken}: exists already; .*\(--force\)"):
        write(tmp_path / "out", fault=lambda: (tmp_path / taken).write_text("theirs"))
    assert names(tmp_path) == [taken] and (tmp_path / taken).read_text() == "theirs"
    write(tmp_path / "out", overwrite=True)
    assert names(tmp_path) == ["out", "out.data"] and (tmp_path / taken).read_text().startswith("new")


def test_what_cannot_be_a_file(tmp_path):
    (tmp_path / "there").write_text("mine")
    for name, message in ((".", "is a directory"), ("none/out", "no such folder"), ("there", "exists already")):
        with pytest.raises(OnboardingError, match=message):
            require_free(tmp_path / name)
    require_free(tmp_path / "there", overwrite=True)
    for refuses in (require_free, write):
        with pytest.raises(OnboardingError, match="name of the file to write is empty"):
            refuses("")
    with pytest.raises(OnboardingError, match="out: cannot be written: No space left on device"):
        write(tmp_path / "out", fault=lambda: open("/dev/full", "wb", buffering=0).write(b"x"))
    assert names(tmp_path) == ["there"]


SLOW = """
import sys, time
from custom_ops.onboarding.export import FORMATS
from custom_ops.onboarding.export.gguf import write
whole = write.encode
def encode(*arguments):
    time.sleep(0.3)
    return whole(*arguments)
write.encode = encode
from custom_ops.cli import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_in_the_middle_of_an_export(number, tmp_path):
    pytest.importorskip("gguf", reason="pip install 'custom_ops[gguf]'")
    pytest.importorskip("click")
    save("llama", tmp_path / "model")
    arguments = ["onboard", "export", tmp_path / "model", "--format", "gguf", "--no-tokenizer", "-o", tmp_path / "out.gguf"]
    # a shell's background jobs ignore SIGINT, what nohup starts ignores SIGHUP, and so does what those start
    process = subprocess.Popen([sys.executable, "-c", SLOW, *arguments], stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    deadline = time.monotonic() + 60
    while names(tmp_path) == ["model"] and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)
    assert process.poll() is None and len(names(tmp_path)) == 2
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130 and said.endswith("interrupted\n"), said
    assert names(tmp_path) == ["model"]
