"""Runs under `pytest -p custom_ops.npu`: on the simulated NPU, or on a real one. Without torch_npu nothing here is collected."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

AVAILABLE = "torch_npu" in sys.modules and torch.npu.is_available()
collect_ignore_glob = [] if AVAILABLE else ["test_*.py"]

HERE = Path(__file__).parent
if AVAILABLE:
    from custom_ops.npu import environment

    sys.path.insert(0, str(HERE))  # op_table
    SIMULATED = environment.simulated()


@pytest.fixture
def simulated():
    """The test is about the simulator, not about a device."""
    if not SIMULATED:
        pytest.skip("a real NPU")


def pytest_generate_tests(metafunc):
    if "op" in metafunc.fixturenames and metafunc.module.__name__.rpartition(".")[2].startswith("test_op_"):
        from op_table import OPS

        metafunc.parametrize("op", OPS.values(), ids=OPS)


@pytest.fixture
def run_script(tmp_path):
    """Runs `code` as a user's script in a process of its own and gives its output; `environment` is added to this process's."""

    def run(code: str, *arguments, status: int = 0, **environment) -> str:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(code))
        paths = os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run([sys.executable, "-m", "custom_ops.npu", script, *arguments], capture_output=True, text=True, timeout=600,
                              cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths, **environment})
        assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    return run
