"""Every operator in other processes: beside this one, spawned, on each SoC, on a second device, in every way torch_npu launches."""

import os

import pytest
import spawn_target
import torch

CHECK = """
import sys
import torch, torch_npu, custom_ops
from op_table import OPS, on, to_cpu
def check(device="npu:0"):
    rng = torch.Generator().manual_seed(1)
    for op in OPS.values():
        for tokens, d, dtype in (((17,), 272, torch.bfloat16), ((2, 3), 48, torch.float16), ((41,), 16, torch.float32)):
            inputs = op.inputs(rng, tokens, d, dtype)
            op.matches(to_cpu(op(**on(device, inputs), **op.attributes)), inputs, op.attributes, device)
"""


@pytest.mark.parametrize("soc", ["ascend910b", "ascend910_93", "ascend950"])
def test_on_every_soc(soc, run_script, simulated):
    own = os.environ["ASCEND_CUSTOM_OPP_PATH"].rpartition(":")[0]  # without this process's package, which is of its SoC
    out = run_script(CHECK + "check(); print(torch.npu.get_device_name())", CUSTOM_OPS_NPU_SOC=soc, ASCEND_CUSTOM_OPP_PATH=own)
    assert "Ascend" + {"ascend910b": "910B", "ascend910_93": "910_93", "ascend950": "950"}[soc] in out


@pytest.mark.parametrize("environment", [{"TASK_QUEUE_ENABLE": "0"}, {"TASK_QUEUE_ENABLE": "2"}, {"ASCEND_LAUNCH_BLOCKING": "1"},
                                         {"LD_BIND_NOW": "1"}], ids=str)
def test_every_way_to_launch(environment, run_script):
    run_script(CHECK + "check()", **environment)


def test_second_device(run_script, simulated):
    """The tensor's device counts, not the current one."""
    run_script(CHECK + """
assert torch.npu.device_count() == 2 and torch.npu.current_device() == 0
check("npu:1")
assert torch.npu.current_device() == 0
x = torch.ones(2, 4, 16, device="npu:1")
assert custom_ops.hc_pre_inv_rms(x).device == x.device
""", CUSTOM_OPS_NPU_DEVICES="2")


def test_spawned_process():
    """As a data loader or a tensor-parallel rank: multiprocessing's spawn, without a word about the launcher."""
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=spawn_target.put_result, args=(queue,))
    child.start()
    got = queue.get(timeout=300)
    child.join()
    assert child.exitcode == 0 and got == [[1.0], [1.0]]


def test_forked_process(run_script, simulated):
    """Says what to do instead of waiting for threads of the process it was forked from, and ends at once; that one goes on."""
    out = run_script("""
        import os, signal, time
        import torch, torch_npu, custom_ops
        x = torch.ones(2, 4, 16).npu()
        custom_ops.hc_pre_inv_rms(x).cpu()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            for call in (x.cpu, torch.npu.synchronize, lambda: custom_ops.hc_pre_inv_rms(x), lambda: x + x):
                try:
                    call()
                except RuntimeError as error:
                    print("refused:", error, flush=True)
            os._exit(3)  # as multiprocessing does
        start = time.monotonic()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert time.monotonic() - start < 30
        assert custom_ops.hc_pre_inv_rms(x).cpu().tolist() == [[1.0], [1.0]]
    """)
    assert out.count("refused:") == 4 and out.count("aclnnHcPreInvRmsGetWorkspaceSize failed") == 1, out  # before anything is queued
    assert "forked from one that uses the NPU" in out and "spawn" in out
