"""Device memory: extents, use after free, capacity, virtual and physical memory, what host code may touch."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch
from acl_api import (D2D, D2H, DEFAULT, H2D, INVALID_HANDLE, INVALID_PARAMETER, NOT_SUPPORTED, OUT_OF_MEMORY, AclError, acl, download,
                     fails, malloc, memory_info, out, stream, upload)

pytestmark = pytest.mark.usefixtures("simulated")
MB = 1 << 20


@pytest.fixture(autouse=True)
def context():
    acl("aclrtSetDevice", 0)


@pytest.fixture
def memory():
    addresses = []

    def allocate(size):
        addresses.append(malloc(size))
        return addresses[-1]

    yield allocate
    for address in addresses:
        acl("aclrtFree", address)


def test_round_trip(memory):
    data = os.urandom(100_003)
    a, b = memory(len(data)), memory(len(data))
    upload(a, data)
    acl("aclrtMemcpy", b, len(data), a, len(data), D2D)
    assert download(b, len(data)) == data
    acl("aclrtMemset", b, len(data), 0x5A, 10)
    assert download(b, 12) == b"\x5a" * 10 + data[10:12]


def test_copy_beyond_the_allocation(memory):
    a = memory(1000)
    buffer = ctypes.create_string_buffer(2000)
    text = fails(INVALID_PARAMETER, "aclrtMemcpy", a, 2000, ctypes.addressof(buffer), 1001, H2D, match="1 bytes beyond the end")
    assert "destination" in text and "+1000)" in text
    fails(INVALID_PARAMETER, "aclrtMemcpy", ctypes.addressof(buffer), 2000, a + 500, 501, D2H, match="source.*1 bytes beyond")
    fails(INVALID_PARAMETER, "aclrtMemset", a, 2000, 0, 1001, match="beyond the end")
    fails(INVALID_PARAMETER, "aclrtMemcpy", a, 10, ctypes.addressof(buffer), 11, H2D, match="destMax is 10")


def test_copy_kind_and_address_disagree(memory):
    a = memory(64)
    buffer = ctypes.create_string_buffer(64)
    host = ctypes.addressof(buffer)
    fails(INVALID_PARAMETER, "aclrtMemcpy", host, 64, a, 64, H2D, match="destination .* is device memory, but it is host memory")
    fails(INVALID_PARAMETER, "aclrtMemcpy", host, 64, host, 64, D2H, match="source .* is device memory, but it is host memory")
    acl("aclrtMemcpy", host, 64, a, 64, DEFAULT)
    fails(INVALID_PARAMETER, "aclrtMemcpy", host, 64, a, 64, 9, match="kind 9")
    fails(INVALID_PARAMETER, "aclrtMemcpy", None, 64, a, 64, D2D, match="destination is null")


def test_use_after_free():
    a = malloc(4096)
    upload(a, b"x" * 4096)
    acl("aclrtFree", a)
    buffer = ctypes.create_string_buffer(16)
    fails(INVALID_PARAMETER, "aclrtMemcpy", ctypes.addressof(buffer), 16, a + 8, 16, D2H, match="byte 8 of allocation #[0-9]+.*which was freed")
    fails(INVALID_PARAMETER, "aclrtFree", a, match="was freed")
    b = malloc(4096)
    assert b != a, "freed addresses come back late"
    fails(INVALID_PARAMETER, "aclrtFree", b + 16, match="not the begin of an allocation")
    acl("aclrtFree", b)
    fails(INVALID_PARAMETER, "aclrtFree", ctypes.addressof(buffer), match="no device memory")


def test_freed_before_its_copy_ran(memory):
    """An asynchronous copy looks at its memory when it runs, and its failure comes out at the synchronisation."""
    source, target = malloc(64), memory(64)
    s = stream()
    gate = _Gate(s)
    acl("aclrtMemcpyAsync", target, 64, source, 64, D2D, s)
    acl("aclrtFree", source)
    gate.open()
    fails(INVALID_PARAMETER, "aclrtSynchronizeStream", s, match="memcpy device to device, source: .*was freed")
    acl("aclrtSynchronizeStream", s)
    acl("aclrtDestroyStream", s)


class _Gate:
    """Holds a stream until it is opened."""

    def __init__(self, s):
        import threading

        from acl_api import host_function

        self._event = threading.Event()
        self._function = host_function(self._event.wait)
        self.open = self._event.set
        acl("aclrtLaunchHostFunc", s, ctypes.cast(self._function, ctypes.c_void_p), None)


def test_freed_while_work_uses_it():
    """An error of the program, which neither faults nor loses other work; the memory goes back when the work has ended."""
    size, s = 256 * MB, stream()
    for _ in range(3):
        at = malloc(size)
        for value in range(4):
            acl("aclrtMemsetAsync", at, size, value, size, s)
        time.sleep(0.02)  # into the first fill
        acl("aclrtFree", at)
        try:
            acl("aclrtSynchronizeStream", ctypes.c_void_p(s))
        except AclError as error:  # of a fill that began after the free
            assert error.code == INVALID_PARAMETER and "was freed" in error.text
    again = malloc(size)
    acl("aclrtMemset", again, size, 7, size)
    assert download(again, 16) == bytes([7] * 16)
    acl("aclrtFree", again)
    acl("aclrtDestroyStream", ctypes.c_void_p(s))


def test_memory_goes_back_to_the_system():
    def resident():
        return int(re.search(r"VmRSS:\s+(\d+)", open("/proc/self/status").read())[1]) * 1024

    acl("aclrtFree", malloc(64 * MB))
    before = resident()
    for _ in range(4):
        a = malloc(256 * MB)
        acl("aclrtMemset", a, 256 * MB, 1, 256 * MB)
        acl("aclrtFree", a)
    assert resident() - before < 64 * MB


def test_memory_info_and_capacity():
    free, total = memory_info()
    a = malloc(8 * MB)
    assert memory_info() == (free - 8 * MB, total)
    text = fails(OUT_OF_MEMORY, "aclrtMalloc", ctypes.byref(ctypes.c_void_p()), total, 0, match="out of memory")
    assert str(total) in text
    acl("aclrtFree", a)
    assert memory_info() == (free, total)
    fails(INVALID_PARAMETER, "aclrtMalloc", ctypes.byref(ctypes.c_void_p()), 0, 0, match="size is 0")


class PhysicalProperties(ctypes.Structure):
    _fields_ = [("handle_type", ctypes.c_int), ("allocation_type", ctypes.c_int), ("attribute", ctypes.c_int), ("id", ctypes.c_uint32),
                ("location", ctypes.c_int), ("reserved", ctypes.c_uint64)]


def physical(size):
    return out("aclrtMallocPhysical", size, ctypes.byref(PhysicalProperties(0, 0, 4, 0, 1, 0)), 0)


def test_virtual_memory():
    free, _ = memory_info()
    base = out("aclrtReserveMemAddress", 8 * MB, 0, None, 0)
    assert memory_info()[0] == free
    first, second = physical(2 * MB), physical(2 * MB)
    assert memory_info()[0] == free - 4 * MB
    fails(INVALID_PARAMETER, "aclrtMemset", base, MB, 0, MB, match="no memory mapped")
    acl("aclrtMapMem", base, 2 * MB, 0, first, 0)
    acl("aclrtMapMem", base + 2 * MB, 2 * MB, 0, second, 0)
    upload(base + 2 * MB - 4, b"abcdefgh")  # across two mappings
    assert download(base + 2 * MB - 4, 8) == b"abcdefgh"
    fails(INVALID_PARAMETER, "aclrtMemset", base, 8 * MB, 0, 5 * MB, match="beyond the end")
    fails(INVALID_PARAMETER, "aclrtMapMem", base + MB, 2 * MB, 0, first, 0, match="mapped already")
    fails(INVALID_PARAMETER, "aclrtReleaseMemAddress", base, match="still mapped")
    acl("aclrtUnmapMem", base + 2 * MB)
    acl("aclrtMapMem", base + 6 * MB, 2 * MB, 0, second, 0)  # physical memory keeps what was written
    assert download(base + 6 * MB, 4) == b"efgh"
    for address, handle in (base, first), (base + 6 * MB, second):
        acl("aclrtUnmapMem", address)
        acl("aclrtFreePhysical", handle)
    fails(INVALID_HANDLE, "aclrtFreePhysical", first, match="no handle of physical memory")
    acl("aclrtReleaseMemAddress", base)
    assert memory_info()[0] == free
    fails(INVALID_PARAMETER, "aclrtMapMem", base, 2 * MB, 0, physical(2 * MB), 0, match="not lie in one reservation")


def test_remapped_while_work_uses_it():
    """An error of the program: what is being filled goes away, and other memory comes in its place."""
    size, s = 128 * MB, stream()
    base = out("aclrtReserveMemAddress", size, 0, None, 0)
    handles = [physical(size) for _ in range(2)]
    acl("aclrtMapMem", base, size, 0, handles[0], 0)
    for round in range(20):
        acl("aclrtMemsetAsync", base, size, round, size, s)
        time.sleep(0.002)
        acl("aclrtUnmapMem", base)
        acl("aclrtMapMem", base, size, 0, handles[(round + 1) % 2], 0)
        try:
            acl("aclrtSynchronizeStream", ctypes.c_void_p(s))
        except AclError as error:  # of a fill that began in between
            assert error.code == INVALID_PARAMETER and "no memory mapped" in error.text
    acl("aclrtMemset", base, size, 7, size)
    assert download(base + size - 16, 16) == bytes([7] * 16)
    acl("aclrtUnmapMem", base)
    for handle in handles:
        acl("aclrtFreePhysical", handle)
    acl("aclrtReleaseMemAddress", base)
    acl("aclrtDestroyStream", ctypes.c_void_p(s))


def test_pinned_and_pageable_memory(memory):
    a = memory(64)
    host = out("aclrtMallocHost", 64)
    attributes = (ctypes.c_uint32 * 7)()
    where = lambda address: (acl("aclrtPointerGetAttributes", address, ctypes.addressof(attributes)), attributes[1])[1]
    buffer = ctypes.create_string_buffer(4096)
    pageable = ctypes.addressof(buffer)
    assert (where(a), where(host), where(pageable)) == (1, 0, 2)
    acl("aclrtHostRegisterV2", pageable, 4096, 0x10000000)
    assert where(pageable + 4095) == 0
    fails(507910, "aclrtHostRegisterV2", pageable + 8, 8, 0x10000000, match="registered already")
    acl("aclrtHostUnregister", pageable)
    fails(507911, "aclrtHostUnregister", pageable, match="not registered")
    fails(NOT_SUPPORTED, "aclrtHostRegisterV2", pageable, 4096, 2, match="aclrtHostRegisterV2.*not modelled")
    acl("aclrtFreeHost", host)
    fails(INVALID_PARAMETER, "aclrtFreeHost", pageable, match="not allocated by aclrtMallocHost")


def test_address_range(memory):
    a = memory(1000)
    begin, size = ctypes.c_void_p(), ctypes.c_size_t()
    acl("aclrtMemGetAddressRange", a + 7, ctypes.byref(begin), ctypes.byref(size))
    assert (begin.value, size.value) == (a, 1000)


SCRIPT = """
import sys, ctypes, torch, torch_npu
{before}
x = torch.arange(1000.).npu()
torch.npu.synchronize()
address = x.data_ptr()
{after}
print(ctypes.string_at(address + 4096 * 0 + 8, 4))
"""


@pytest.mark.parametrize("before, after", [("", ""), ("import faulthandler; faulthandler.enable()", ""),
                                           ("", "import faulthandler; faulthandler.enable()"),
                                           ("import custom_ops; custom_ops.hc_pre_inv_rms(torch.ones(4, 4, 16).npu()).cpu()", "")],
                         ids=["plain", "faulthandler_below", "faulthandler_above", "after_a_kernel"])
def test_host_touches_device_memory(tmp_path, before, after):
    script = tmp_path / "touch.py"
    script.write_text(SCRIPT.format(before=before, after=after))
    done = subprocess.run([sys.executable, "-m", "custom_ops.npu", script], capture_output=True, text=True, timeout=300)
    assert done.returncode in (-signal.SIGSEGV, 128 + signal.SIGSEGV), done.stderr
    assert "host code touched device memory: byte 8 of" in done.stderr and "of device 0" in done.stderr, done.stderr
    assert "tensor.cpu()" in done.stderr
    if "faulthandler" in before + after:
        assert "touch.py" in done.stderr, done.stderr  # the Python traceback


@pytest.mark.parametrize("expandable", [False, True], ids=["segments", "expandable"])
def test_torch_runs_out_of_memory_and_recovers(run_script, expandable):
    out = run_script("""
        import torch, torch_npu
        torch.npu.set_device(0)
        assert torch.npu.mem_get_info()[1] == 512 << 20
        x = torch.ones(1000).npu()
        for _ in range(3):
            held = []
            try:
                while True: held.append(torch.empty(64 << 20, dtype=torch.uint8, device="npu"))
            except torch.OutOfMemoryError as error:
                print(error)
            assert 5 <= len(held) <= 8, len(held)
            del held
        assert x.cpu().eq(1).all()
        y = torch.full((300 << 20,), 7, dtype=torch.uint8).npu()
        assert y.cpu().eq(7).all()
        del y
        torch.npu.empty_cache()
        assert torch.npu.mem_get_info()[0] > 500 << 20
    """, CUSTOM_OPS_NPU_MEMORY="512MB", **({"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"} if expandable else {}))
    assert "out of memory" in out and "512.00 MiB total capacity" in out, out


@pytest.mark.parametrize("size", ["lots", "0x10GB", "inf", "1e300", "3MB", "1.5.2GB", "20000TB"])
def test_memory_setting_that_cannot_be_read(run_script, size):
    out = run_script("import torch, torch_npu\ntorch.ones(1).npu()", status=1, CUSTOM_OPS_NPU_MEMORY=size)
    assert f"CUSTOM_OPS_NPU_MEMORY is '{size}'" in out


def test_torch_reports_device_memory_of_the_chip():
    free, total = torch.npu.mem_get_info()
    assert 0 < free <= total and torch.npu.get_device_properties(0).total_memory == total
