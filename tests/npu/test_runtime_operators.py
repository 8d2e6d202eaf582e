"""An op package on device memory through the two-phase call: values that tiling reads, views, extents, handles."""

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from acl_api import acl, malloc, stream

sys.path.append(str(Path(__file__).parents[1] / "sim"))
from test_opapi import Caller, lib, package  # noqa: E402, F401  (fixtures)

pytestmark = pytest.mark.usefixtures("simulated")


class DeviceArray:
    """Has what Caller takes from an array; the data is at a device address."""

    def __init__(self, tensor: torch.Tensor, address: int | None = None):
        self.tensor, self.shape, self.ndim, self.itemsize = tensor, tuple(tensor.shape), tensor.ndim, tensor.element_size()
        self.strides = tuple(s * self.itemsize for s in tensor.stride())
        self.dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))
        self.ctypes = SimpleNamespace(data=tensor.data_ptr() if address is None else address)


@pytest.fixture
def call(lib, package):  # noqa: F811
    acl("aclrtSetDevice", 0)
    return Caller(lib, package)


def synchronised(code=0):
    runtime = ctypes.CDLL("libascendcl.so")
    runtime.aclGetRecentErrMsg.restype = ctypes.c_char_p
    assert runtime.aclrtSynchronizeDevice() == code
    return (runtime.aclGetRecentErrMsg() or b"").decode() if code else ""


def test_in_place_view_with_a_value_that_tiling_reads(call):
    base = torch.arange(24.).view(3, 8)
    want = base.clone()
    want[:, ::2] *= 0.5 * 40
    device, factor = base.npu(), torch.tensor([0.5]).npu()
    torch.npu.synchronize()
    assert call("Scaled", [DeviceArray(device[:, ::2]), DeviceArray(factor)], [], [DeviceArray(device[:, ::2])]) == (0, 0)
    synchronised()
    assert torch.equal(device.cpu(), want)


def test_tensor_beyond_its_allocation(call):
    a, b = malloc(60), malloc(64)
    like = torch.empty(16)
    assert call("Biased", [DeviceArray(like, a), None], [2.0, None], [DeviceArray(like, b)])[0] == 0
    assert "Biased: x: 64 bytes at" in (text := synchronised(507035)) and "4 bytes beyond the end" in text, text
    synchronised()
    assert call("Biased", [DeviceArray(like, b), None], [2.0, None], [DeviceArray(like, b)])[0] == 0
    text = synchronised(507035)  # Caller's workspace is an array of the host
    assert "Biased: workspace:" in text and "is host memory" in text
    for address in a, b:
        acl("aclrtFree", address)


def test_tensor_on_the_host(call):
    like, out = torch.empty(16), torch.empty(16).npu()
    assert call("Biased", [DeviceArray(like), None], [2.0, None], [DeviceArray(out)])[0] == 0
    text = synchronised(507035)
    assert "Biased: x:" in text and "is host memory" in text


def test_the_same_package_on_the_host(call):
    """Without a stream and without device memory the call is simulate()'s: it runs at once."""
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    assert call("Biased", [x, None], [2.0, None], [y])[0] == 0
    np.testing.assert_array_equal(y, x * 2)


def test_value_cannot_be_read_while_a_capture_runs(call):
    s, x, factor = stream(), torch.ones(3, 4).npu(), torch.tensor([0.5]).npu()
    torch.npu.synchronize()
    acl("aclmdlRICaptureBegin", s, 0)
    status, text = call("Scaled", [DeviceArray(x), DeviceArray(factor)], [], [DeviceArray(x)])
    assert status == 107030 and "cannot be captured" in text
    assert ctypes.CDLL("libascendcl.so").aclmdlRICaptureEnd(ctypes.c_void_p(s), ctypes.byref(ctypes.c_void_p())) == 507903
