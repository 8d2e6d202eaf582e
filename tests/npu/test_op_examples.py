"""Users' scripts, as they are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "npu").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_runs(script):
    done = subprocess.run([sys.executable, "-m", "custom_ops.npu", script, "--tokens", "3"], capture_output=True, text=True, timeout=600,
                          env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("replayed") == 4 and "all within" in done.stdout
