"""A host with too little memory or too few threads, and a kernel that would fill any: an error, and a process that goes on."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import custom_ops
from custom_ops import KernelError

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


FORK = """
import os, signal, sys
import numpy as np
import custom_ops

def launch():
    custom_ops.sim.launch(sys.argv[1], "return_before_sync_all", 3, [np.ones(8, np.float32), np.ones(8, np.float32), np.bool_(True)],
                          soc="ascend910b", inputs=[0])

launch()
child = os.fork()
if child == 0:
    signal.alarm(60)
    launch()
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
launch()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_forked_process_has_threads_of_its_own():
    kernel = Path(__file__).parent / "rules" / "gm.cpp"
    done = subprocess.run([sys.executable, "-c", FORK, str(kernel)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("checks", [True, False])
def test_endless_kernel_ends_with_a_full_record(checks, monkeypatch):
    """Long before the time limit of ten minutes, whatever the number of cores."""
    monkeypatch.setenv("CUSTOM_OPS_SIM_LOG_MEMORY", "32MB")

    def launch(repaired):
        x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
        custom_ops.sim.launch(Path(__file__).parent / "rules" / "faults.cpp", "never_ends_with_a_record", 3, [x, y, np.bool_(repaired)],
                              soc="ascend910b", inputs=[0], checks=checks)

    with pytest.raises(KernelError, match="still running after the record of the launch's instructions had filled 32 MiB") as caught:
        launch(repaired=False)
    assert caught.value.rule == "timeout"
    launch(repaired=True)


def test_size_of_the_record_is_checked(monkeypatch):
    monkeypatch.setenv("CUSTOM_OPS_SIM_LOG_MEMORY", "much")
    with pytest.raises(RuntimeError, match="CUSTOM_OPS_SIM_LOG_MEMORY must be a size like 4GB, it is 'much'"):
        custom_ops.sim.launch(Path(__file__).parent / "rules" / "faults.cpp", "never_ends_with_a_record", 1,
                              [np.ones(8, np.float32), np.zeros(8, np.float32), np.bool_(True)], soc="ascend910b", inputs=[0])
