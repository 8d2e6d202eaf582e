"""Devices and contexts, what they start with and end with, other chips, core limits."""

import ctypes
import os
import subprocess
import sys

import pytest
import torch
from acl_api import INVALID_PARAMETER, NOT_SUPPORTED, AclError, acl, download, fails, malloc, out, stream

pytestmark = pytest.mark.usefixtures("simulated")


@pytest.fixture(autouse=True)
def context():
    acl("aclrtSetDevice", 0)


PLAIN = """
import sys, ctypes
sys.path.insert(0, {tests!r})
load = ctypes.CDLL
ctypes.CDLL = lambda name, *rest: load({library!r} if name == "libascendcl.so" else name, *rest)
from acl_api import *
def code_of(call):
    try: call()
    except AclError as error: return error.code
    return 0
"""


def plain_program(body: str, **environment) -> str:
    """A program of the C interface alone: no torch, so nothing was initialised before."""
    library = next(line.split()[-1] for line in open("/proc/self/maps") if "/libascendcl.so" in line)
    code = PLAIN.format(tests=os.path.dirname(__file__), library=library) + body
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_thread_without_context():
    assert plain_program("""
print(code_of(lambda: malloc(64)), code_of(lambda: acl("aclrtSynchronizeStream", None)))
acl("aclInit", None)
print(code_of(lambda: malloc(64)), code_of(lambda: acl("aclInit", None)))
acl("aclrtSetDevice", 0)
acl("aclrtFree", malloc(64))
""") == "107002 107002\n107002 100002\n"


def test_default_device_of_the_configuration(tmp_path):
    (tmp_path / "acl.json").write_text('{"defaultDevice": {"default_device": "1"}}')
    assert plain_program(f"""
acl("aclInit", ctypes.c_char_p({str(tmp_path / "acl.json").encode()!r}))
acl("aclrtFree", malloc(64))
print(out("aclrtGetDevice", kind=c_int))
""", CUSTOM_OPS_NPU_DEVICES="2") == "1\n"


def test_reset_device_ends_its_streams_and_memory():
    assert plain_program("""
acl("aclInit", None), acl("aclrtSetDevice", 0)
a, s = malloc(4096), stream()
acl("aclrtMemsetAsync", a, 4096, 1, 4096, s)
acl("aclrtResetDevice", 0)
print(code_of(lambda: malloc(64)))
acl("aclrtSetDevice", 0)
print(code_of(lambda: download(a, 1)), code_of(lambda: acl("aclrtSynchronizeStream", c_void_p(s))), memory_info()[0] == memory_info()[1])
""") == "107002\n107000 107017 True\n"


def test_default_stream_and_capture_do_not_outlive_a_reset():
    assert plain_program("""
acl("aclInit", None), acl("aclrtSetDevice", 0)
acl("aclrtMemsetAsync", malloc(64), 64, 1, 64, None)
s = stream()
acl("aclmdlRICaptureBegin", c_void_p(s), 0)
acl("aclrtResetDevice", 0)
acl("aclrtSetDevice", 0)
a = malloc(64)
acl("aclrtMemset", a, 64, 0, 64)
acl("aclrtMemsetAsync", a, 64, 7, 64, None), acl("aclrtSynchronizeStream", None)
print(download(a, 1)[0])
""") == "7\n"


def test_unreadable_configuration_leaves_the_runtime_to_be_initialised():
    assert plain_program("""
print(code_of(lambda: acl("aclInit", ctypes.c_char_p(b"no such file"))))
acl("aclInit", None)
""") == "100003\n"


@pytest.mark.parametrize("function", ["aclrtBinaryLoadFromData", "aclrtIpcMemImportByKey", "aclmdlRIAddCondTask", "aclrtDeviceTaskAbort"])
def test_what_is_not_modelled_fails_by_name(function):
    fails(NOT_SUPPORTED, function, match=f"{function}: not modelled")


def test_core_limits():
    """Operators count with the cores they are granted."""
    import custom_ops

    torch.npu.set_device(0)
    assert torch.npu.get_device_limit(0)["vector_core_num"] == torch.npu.get_device_properties(0).vector_core_num
    x = torch.randn(64, 4, 256)
    want = custom_ops.hc_pre_inv_rms(x)
    everything = _block_dim(lambda: custom_ops.hc_pre_inv_rms(x.npu()), want)
    torch.npu.set_device_limit(0, 4, 8)
    try:
        assert _block_dim(lambda: custom_ops.hc_pre_inv_rms(x.npu()), want) <= 8 < everything
    finally:
        acl("aclrtResetDeviceResLimit", 0)
    s = stream()
    acl("aclrtSetStreamResLimit", s, 1, 3)
    value = ctypes.c_uint32()
    acl("aclrtGetStreamResLimit", s, 1, ctypes.byref(value))
    assert value.value == 3
    fails(INVALID_PARAMETER, "aclrtSetStreamResLimit", s, 1, 1000, match="1000 vector cores")


def _block_dim(call, want) -> int:
    import json

    simulator = ctypes.CDLL("libascendcl.so")
    simulator.SimNpuTakeReports.restype = ctypes.c_void_p
    take = lambda: json.loads(ctypes.string_at(simulator.SimNpuTakeReports()))
    torch.npu.synchronize()
    take()
    torch.testing.assert_close(call().cpu(), want)
    (report,) = take()
    assert report["op"] == "HcPreInvRms" and report["device"] == 0 and report["stream"] >= 0
    return report["blockDim"]


def test_several_devices(run_script):
    out = run_script("""
        import torch, torch_npu
        assert torch.npu.device_count() == 3
        a, b = (torch.full((1000,), float(n), device=f"npu:{n}") for n in (1, 2))
        c = a.to("npu:2") + b
        assert c.device.index == 2 and c.cpu().eq(3).all()
        with torch.npu.device(1):
            assert torch.npu.mem_get_info()[1] == 1 << 30 and torch.npu.current_device() == 1
        assert torch.npu.can_device_access_peer(0, 1)
        print(torch.npu.get_device_name(2))
    """, CUSTOM_OPS_NPU_DEVICES="3", CUSTOM_OPS_NPU_MEMORY="1GB")
    assert "Ascend910B3" in out


def test_tensors_of_two_devices(run_script):
    """Refused by the call, named, and the next call works; copies between devices are no such call."""
    out = run_script("""
import torch, torch_npu, custom_ops
a, b = torch.ones(3, device="npu:0"), torch.ones(3, device="npu:1")
for call in (lambda: a + b, lambda: torch.where(a > 0, a, b),
             lambda: custom_ops.hc_pre_inv_rms(torch.ones(2, 4, 16, device="npu:1")) + torch.ones(2, 1, device="npu:0")):
    try:
        call()
        torch.npu.synchronize()
    except RuntimeError as error:
        print("refused:", error)
b.copy_(a * 5)
print((a.to("npu:1") + b).tolist(), (a + torch.tensor(2.0)).tolist())
""", CUSTOM_OPS_NPU_DEVICES="2")
    assert out.count("refused:") == 3 and "aclnnAdd: other is on device 1, the tensors before it are on device 0" in out, out
    assert "[6.0, 6.0, 6.0] [3.0, 3.0, 3.0]" in out


@pytest.mark.parametrize("soc, name", [("ascend910_93", "Ascend910_93"), ("ascend950", "Ascend950")])
def test_other_chips(run_script, soc, name):
    assert name in run_script("import torch, torch_npu\nprint(torch.npu.get_device_name(), torch.ones(3).npu().cpu().sum())",
                              CUSTOM_OPS_NPU_SOC=soc)
