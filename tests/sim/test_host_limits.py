"""A host with too little memory or too few threads: an error, and a process that goes on."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import resource, sys
import numpy as np
import custom_ops

def launch(blocks):
    custom_ops.sim.launch(sys.argv[1], "return_before_sync_all", blocks, [np.ones(8, np.float32), np.ones(8, np.float32), np.bool_(True)],
                          soc="ascend910b", inputs=[0])

launch(1)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]) * 2**20, hard))
try:
    launch(40)
    print("launched")
except Exception as error:
    print(type(error).__name__, error)
resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
launch(40)
print("goes on")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS")
@pytest.mark.parametrize("megabytes", [9, 40, 120])
def test_too_little_memory_is_an_error(megabytes):
    kernel = Path(__file__).parent / "rules" / "gm.cpp"
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(kernel), str(megabytes)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "the host ran out of" in done.stdout and "goes on" in done.stdout, done.stdout
