import hashlib
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

import custom_ops

sys.path.insert(0, str(Path(__file__).parent))  # compare, inputs

from inputs import SIMULATED  # noqa: E402

try:
    from hypothesis import settings
except ImportError:
    pass
else:
    # One fixed sequence of examples per test; the machine's speed must not fail one.
    settings.register_profile("custom_ops", deadline=None, derandomize=True, print_blob=True)
    settings.load_profile("custom_ops")


def pytest_addoption(parser):
    parser.addoption("--backends", default="native," + ",".join(SIMULATED), help="comma separated; default: all")


def pytest_generate_tests(metafunc):
    if "backend" in metafunc.fixturenames:
        names = metafunc.config.getoption("--backends").split(",")
        metafunc.parametrize("backend", names, indirect=True)


class Backend:
    """Where an operator runs: `with backend: custom_ops.hc_pre_inv_rms(...)`."""

    def __init__(self, name: str):
        self.name = name
        self.simulated = name != "native"
        self._context = None

    def __enter__(self):
        self._context = custom_ops.simulate(self.name) if self.simulated else nullcontext()
        return self._context.__enter__()

    def __exit__(self, *exception):
        return self._context.__exit__(*exception)

    def __str__(self):
        return self.name


@pytest.fixture
def backend(request) -> Backend:
    return Backend(request.param)


@pytest.fixture
def rng(request) -> torch.Generator:
    """Seeded from the test's id: the same numbers alone, in any order and in parallel."""
    # Without the backend: all of them compute the same numbers.
    name = request.node.nodeid
    for backend_name in ("native", *SIMULATED):
        name = name.replace(backend_name, "backend")
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") >> 1)
