"""What goes wrong on the device or before it is said where it shows, and the process goes on."""

import os
import subprocess
from pathlib import Path

import faulty_packages
import pytest
import torch
from faulty_packages import FAILING_TOKENS, FAULTY_TOKENS, REFUSED_TOKENS

SOC = os.environ.get("CUSTOM_OPS_NPU_SOC") or "ascend910b"
#: How torch_npu hands launches to the device: from the caller, from its queue's thread, from there with waiting after each.
MODES = {"direct": {"TASK_QUEUE_ENABLE": "0"}, "queue": {"TASK_QUEUE_ENABLE": "1"}, "queue2": {"TASK_QUEUE_ENABLE": "2"},
         "blocking": {"ASCEND_LAUNCH_BLOCKING": "1"}}

PRELUDE = """
import torch, torch_npu, custom_ops
def x_of(tokens): return torch.arange(1., 1 + tokens * 64).view(tokens, 4, 16).bfloat16()
def right(tokens):
    x = x_of(tokens)
    torch.testing.assert_close(custom_ops.hc_pre_inv_rms(x.npu()).cpu(), custom_ops.hc_pre_inv_rms(x))
    torch.testing.assert_close((x.npu().float() + 1).cpu(), x.float() + 1)
def raised(call, error=RuntimeError):
    try: call()
    except error as exception: return str(exception)
    raise AssertionError("nothing was raised")
"""


@pytest.fixture(scope="session")
def faulty_kernel(tmp_path_factory) -> Path:
    return faulty_packages.faulty_kernel(tmp_path_factory.mktemp("faulty"), SOC)


@pytest.fixture(scope="session")
def failing_phases(tmp_path_factory, faulty_kernel) -> Path:
    return faulty_packages.failing_phases(tmp_path_factory.mktemp("failing"), faulty_kernel)


@pytest.mark.parametrize("mode", MODES)
def test_kernel_error(mode, faulty_kernel, run_script, simulated):
    """The exception has the simulator's report, at the latest where the host waits for the device; the next calls work."""
    out = run_script(PRELUDE + f"""
right(4)
def faulty():
    y = custom_ops.hc_pre_inv_rms(x_of({FAULTY_TOKENS}).npu())
    torch.npu.synchronize()
for _ in range(2):
    print(raised(faulty))
    right(4)
def faulty_copy(): custom_ops.hc_pre_inv_rms(x_of({FAULTY_TOKENS}).npu()).cpu()
print(raised(faulty_copy))
right(4)
side = torch.npu.Stream()
def on_a_stream():
    with torch.npu.stream(side):
        custom_ops.hc_pre_inv_rms(x_of({FAULTY_TOKENS}).npu())
    side.synchronize()
print(raised(on_a_stream))
with torch.npu.stream(side):
    right(4)
right(4)
""", ASCEND_CUSTOM_OPP_PATH=str(faulty_kernel), **MODES[mode])
    assert out.count("HcPreInvRms") >= 4 and "rows_copy.h" in out and "outside" in out, out


def test_kernel_that_takes_too_long(op, run_script, simulated):
    """Each operator's own kernel fails: the error comes where the host waits, from a stream and from the default one; then all is well."""
    out = run_script(PRELUDE + """
import ctypes, sys
from acl_api import acl
from op_table import OPS, on
op = OPS[sys.argv[1]]
inputs = on("npu", op.inputs(torch.Generator().manual_seed(1), (7,), 96, torch.bfloat16))
def results(): return [result.cpu() for result in op(**inputs, **op.attributes)]
def limit(microseconds): acl("aclrtSetOpExecuteTimeOutV2", microseconds, ctypes.byref(ctypes.c_uint64()))
def late():
    op(**inputs, **op.attributes)
    torch.npu.synchronize()
want = results()
for stream in (torch.npu.default_stream(), torch.npu.Stream()):
    with torch.npu.stream(stream):
        limit(1)
        for _ in range(2): print(raised(late))
        limit(0)
        assert all(map(torch.equal, results(), want))
right(4)
""", op.name)
    assert out.count("507034") >= 4 and "us (modelled), aclrtSetOpExecuteTimeOut allows" in out, out


def test_kernel_error_that_nobody_waits_for(faulty_kernel, run_script, simulated):
    out = run_script(PRELUDE + f"custom_ops.hc_pre_inv_rms(x_of({FAULTY_TOKENS}).npu())", ASCEND_CUSTOM_OPP_PATH=str(faulty_kernel))
    assert "outside every tensor" in out and "rows_copy.h" in out, out  # torch_npu synchronises at exit, and warns


@pytest.mark.parametrize("mode", MODES)
def test_first_phase_refuses(mode, failing_phases, run_script, simulated):
    out = run_script(PRELUDE + f"""
print(raised(lambda: custom_ops.hc_pre_inv_rms(x_of({REFUSED_TOKENS}).npu())))
right(4)
""", ASCEND_CUSTOM_OPP_PATH=str(failing_phases), **MODES[mode])
    assert "aclnnHcPreInvRmsGetWorkspaceSize failed with 561002" in out


@pytest.mark.parametrize("mode", MODES)
def test_second_phase_fails(mode, failing_phases, run_script, simulated):
    """Raised by this call or, when it fails in the queue, by the next; its result is NaN, and torch_npu's queue goes on."""
    out = run_script(PRELUDE + f"""
right(4)
def failing():
    y = custom_ops.hc_pre_inv_rms(x_of({FAILING_TOKENS}).npu())
    torch.npu.synchronize()
    assert y.isnan().all()
    custom_ops.hc_pre_inv_rms(x_of(4).npu())
for _ in range(2):
    print(raised(failing))
    right(4)
""", ASCEND_CUSTOM_OPP_PATH=str(failing_phases), **MODES[mode])
    assert "aclnnHcPreInvRms failed with 507899" in out


def test_queue_ended_by_another_operator(run_script, simulated):
    """torch_npu drops all launches after an error in its queue, in silence: ours say so. (The size of nonzero's result cannot be
    known while a graph is captured: such an error.)"""
    out = run_script(PRELUDE + """
x = torch.ones(32, 4, 64).npu()
def capture():
    with torch.npu.graph(torch.npu.NPUGraph()): x.nonzero()
raised(capture)
print(raised(lambda: custom_ops.hc_pre_inv_rms(x)))
""", TASK_QUEUE_ENABLE="1")
    assert "aclnnHcPreInvRms was not launched: torch_npu's task queue has ended with an earlier error" in out


def test_package_is_missing(run_script, simulated):
    out = run_script("""
        import os
        import torch, torch_npu, custom_ops
        own = os.environ["ASCEND_CUSTOM_OPP_PATH"]
        os.environ["ASCEND_CUSTOM_OPP_PATH"] = "/nowhere"
        x = torch.zeros(2, 4, 16).npu()
        try:
            custom_ops.hc_pre_inv_rms(x)
        except RuntimeError as error:
            print(error)
        os.environ["ASCEND_CUSTOM_OPP_PATH"] = own  # looked for again
        custom_ops.hc_pre_inv_rms(x)
    """)
    assert "aclnnHcPreInvRmsGetWorkspaceSize is in no op package. ASCEND_CUSTOM_OPP_PATH is '/nowhere'" in out
    assert "/nowhere/op_api/lib/libcust_opapi.so: cannot open shared object file" in out


def test_package_without_the_operator(tmp_path, run_script, simulated):
    """An older package before ours in the path: ours is found behind it."""
    library = tmp_path / "older" / "op_api" / "lib" / "libcust_opapi.so"
    library.parent.mkdir(parents=True)
    (tmp_path / "empty.c").write_text("")
    subprocess.run(["g++", "-shared", "-fPIC", tmp_path / "empty.c", "-o", library], check=True)
    own = os.environ["ASCEND_CUSTOM_OPP_PATH"]
    run_script(PRELUDE + "right(4)", ASCEND_CUSTOM_OPP_PATH=f"{tmp_path / 'older'}:{own}")


def test_vendor_packages_of_the_toolkit(tmp_path, run_script, simulated):
    """Packages installed into CANN are found through its config.ini."""
    vendors = tmp_path / "opp" / "vendors"
    vendors.mkdir(parents=True)
    (vendors / "config.ini").write_text("load_priority=absent,ours\n")
    (vendors / "ours").symlink_to(os.environ["ASCEND_CUSTOM_OPP_PATH"].split(":")[-1])
    run_script(f"""
import os
os.environ["ASCEND_CUSTOM_OPP_PATH"], os.environ["ASCEND_OPP_PATH"] = "", {str(vendors.parent)!r}
{PRELUDE}
right(4)
""")


def test_out_of_memory(op, run_script, simulated):
    """The front end's allocation fails as torch_npu's own do, and what fits still runs."""
    run_script(PRELUDE + """
import sys
from op_table import OPS, on
op = OPS[sys.argv[1]]
inputs = on("npu", op.inputs(torch.Generator().manual_seed(1), (40,), 4096, torch.bfloat16))
want = [result.cpu() for result in op(**inputs, **op.attributes)]
big = {name: value.repeat(50, *[1] * (value.dim() - 1)) if value.dim() and value.shape[0] == 40 else value for name, value in inputs.items()}
# Nothing is free any more, not even in the blocks that the caching allocator keeps.
hog = []
for size in (2**20, 2**14, 2**9):
    try:
        while True: hog.append(torch.empty(size, dtype=torch.uint8, device="npu"))
    except torch.OutOfMemoryError: pass
for _ in range(2):
    raised(lambda: op(**big, **op.attributes), torch.OutOfMemoryError)
    torch.npu.synchronize()
del hog
right(4)
got = [result.cpu() for result in op(**inputs, **op.attributes)]
assert all(map(torch.equal, got, want))
""", op.name, CUSTOM_OPS_NPU_MEMORY="256MB")


def test_refusal_launches_nothing(simulated):
    import custom_ops

    torch.npu.synchronize()
    before = torch.npu.memory_allocated()
    for x in (torch.zeros(4, 16), torch.zeros(2, 17, 16)):
        with pytest.raises(RuntimeError, match="npu_hc_pre_inv_rms: "):
            custom_ops.hc_pre_inv_rms(x.npu())
    assert torch.npu.memory_allocated() == before


def test_ctrl_c_while_waiting_for_the_device(run_script, simulated):
    """It is Python's: KeyboardInterrupt when the wait is over, as with the device, and the next call works."""
    out = run_script("""
        import ctypes, os, signal, threading, time
        import torch, torch_npu, custom_ops
        from acl_api import acl, host_function
        x = torch.ones(2, 4, 16).npu()
        begun = threading.Event()
        def interrupt():
            begun.wait()
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)
        callback = host_function(interrupt)
        torch.npu.synchronize()
        acl("aclrtLaunchHostFunc", ctypes.c_void_p(torch.npu.current_stream().npu_stream), ctypes.cast(callback, ctypes.c_void_p), None)
        try:
            begun.set()
            custom_ops.hc_pre_inv_rms(x)
            torch.npu.synchronize()
        except KeyboardInterrupt:
            print("interrupted")
        torch.npu.synchronize()
        print(custom_ops.hc_pre_inv_rms(x).cpu().tolist())
        """)
    assert "interrupted\n[[1.0], [1.0]]" in out, out
