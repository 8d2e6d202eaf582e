"""What a long build shows: a bar on a terminal, one line elsewhere, nothing when it is short."""

import os
import subprocess
import sys

import pytest
from custom_ops.sim import progress
from custom_ops.sim.progress import Progress

BUILD = """
import time
from custom_ops.sim.progress import Progress
with Progress("building something", line=True) as shown:
    shown.expect(3)
    for name in ("one.cpp", "two.cpp"):
        shown.done(name)
    time.sleep(1.5)
    shown.done("three.cpp")
"""


def test_nothing_is_shown_of_a_short_build(capsys):
    with Progress("building something", enabled=True, line=True) as shown:
        shown.expect(1)
        shown.done("one.cpp")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("enabled, line, shows", [(None, True, True), (None, False, False), (True, False, True), (False, True, False)])
def test_a_line_where_stderr_is_no_terminal(enabled, line, shows, capsys, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with Progress("building something", enabled, line) as shown:
        if shown._timer:
            shown._timer.join()
    assert capsys.readouterr() == ("", "custom_ops: building something\n" if shows else "")


def test_a_bar_on_a_terminal():
    ours, theirs = os.openpty()
    child = subprocess.Popen([sys.executable, "-c", BUILD], stderr=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "120"})
    os.close(theirs)
    seen = b""
    try:
        while data := os.read(ours, 4096):
            seen += data
    except OSError:  # how the end of a pseudo terminal shows itself
        pass
    os.close(ours)
    assert child.wait() == 0
    assert b"building something" in seen and b"2/3" in seen and b"two.cpp" in seen and b"\x1b[" in seen
