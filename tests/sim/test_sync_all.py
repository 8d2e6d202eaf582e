"""SyncAll needs all blocks on a core at once: op_host has to ask for batch mode (facts on AscendC, 2.4)."""

from pathlib import Path

import numpy as np
import pytest

import custom_ops
from custom_ops import KernelError

OPS = Path(__file__).parent / "ops"


@pytest.fixture(scope="module", params=["ascend910b", "ascend950"])
def meet(request):
    return custom_ops.sim.build(OPS / "meet", soc=request.param)


def test_without_batch_mode_is_reported(meet):
    with pytest.raises(KernelError, match="SyncAll without batch mode") as caught:
        meet(np.ones(64, np.float32), batch_mode=False, soft=False)
    assert caught.value.rule == "deadlock" and "SetScheduleMode(1)" in str(caught.value)


@pytest.mark.parametrize("batch_mode, soft", [(True, False), (True, True), (False, True)])
def test_batch_mode_or_the_soft_form_is_silent(meet, batch_mode, soft):
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(meet(x, batch_mode=batch_mode, soft=soft), x)


def test_more_blocks_than_cores_is_reported():
    rules = Path(__file__).parent / "rules"
    with pytest.raises(KernelError, match="blockDim 41 exceeds the 40 vector cores") as caught:
        custom_ops.sim.launch(rules / "gm.cpp", "return_before_sync_all", 41, [np.ones(8, np.float32), np.ones(8, np.float32), np.bool_(True)],
                              soc="ascend910b", inputs=[0])
    assert caught.value.rule == "deadlock"
