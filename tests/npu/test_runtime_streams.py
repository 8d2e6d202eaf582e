"""Streams, events and their modelled time, callbacks, and errors of the C interface."""

import ctypes
import threading
import time

import pytest
import torch
from acl_api import (D2D, EVENT_TIMEOUT, INVALID_DEVICE, INVALID_HANDLE, INVALID_PARAMETER, SYNC_TIMEOUT, TIMESTAMP_INVALID, AclError,
                     acl, download, elapsed_ms, event, fails, host_function, malloc, out, stream, upload)

pytestmark = pytest.mark.usefixtures("simulated")
MB = 1 << 20
POINTER = ctypes.c_void_p


@pytest.fixture(autouse=True)
def context():
    acl("aclrtSetDevice", 0)


class Gate:
    """Holds a stream until it is opened."""

    def __init__(self, s):
        self._event = threading.Event()
        self._function = host_function(self._event.wait)
        self.open = self._event.set
        acl("aclrtLaunchHostFunc", POINTER(s), ctypes.cast(self._function, POINTER), None)


def query(s) -> bool:
    return _status("aclrtStreamQuery", s) == 0


def _status(function, handle) -> int:
    value = ctypes.c_int()
    acl(function, POINTER(handle), ctypes.byref(value))
    return value.value


def test_work_is_asynchronous_and_in_order():
    a, b, s = malloc(64), malloc(64), stream()
    upload(a, b"1" * 64)
    gate = Gate(s)
    acl("aclrtMemcpyAsync", b, 64, a, 64, D2D, s)
    acl("aclrtMemsetAsync", b, 64, ord("2"), 32, s)
    assert not query(s)
    fails(SYNC_TIMEOUT, "aclrtSynchronizeStreamWithTimeout", s, 20, match="did not finish within 20 ms")
    gate.open()
    acl("aclrtSynchronizeStreamWithTimeout", s, 10_000)
    assert query(s) and download(b, 64) == b"2" * 32 + b"1" * 32
    acl("aclrtDestroyStream", POINTER(s))
    acl("aclrtFree", a), acl("aclrtFree", b)


def test_streams_run_side_by_side_and_wait_for_events():
    first, second = stream(), stream()
    order = []
    functions = [host_function(lambda n=n: order.append(n)) for n in range(3)]
    gate, ready = Gate(first), event()
    run = lambda s, n: acl("aclrtLaunchHostFunc", POINTER(s), ctypes.cast(functions[n], POINTER), None)
    run(first, 0)
    acl("aclrtRecordEvent", POINTER(ready), POINTER(first))
    run(second, 1)
    acl("aclrtSynchronizeStream", POINTER(second))
    acl("aclrtStreamWaitEvent", POINTER(second), POINTER(ready))
    run(second, 2)
    assert _status("aclrtQueryEventStatus", ready) == 0 and _status("aclrtQueryEventWaitStatus", ready) == 1
    fails(EVENT_TIMEOUT, "aclrtSynchronizeEventWithTimeout", ready, 20)
    assert order == [1]
    gate.open()
    acl("aclrtSynchronizeDevice")
    assert order == [1, 0, 2] and _status("aclrtQueryEventStatus", ready) == 1
    acl("aclrtSynchronizeEvent", POINTER(ready))
    for s in first, second:
        acl("aclrtDestroyStream", POINTER(s))
    acl("aclrtDestroyEvent", POINTER(ready))


def test_an_event_is_waited_for_as_it_was_then():
    """Recording it again does not hold a stream back that waited before."""
    s, other, e = stream(), stream(), event()
    acl("aclrtRecordEvent", POINTER(e), POINTER(s))
    acl("aclrtStreamWaitEvent", POINTER(other), POINTER(e))
    gate = Gate(s)
    acl("aclrtRecordEvent", POINTER(e), POINTER(s))
    acl("aclrtSynchronizeStreamWithTimeout", other, 10_000)
    gate.open()
    acl("aclrtSynchronizeEvent", POINTER(e))
    acl("aclrtResetEvent", POINTER(e), POINTER(s))
    acl("aclrtSynchronizeStream", POINTER(s))
    assert _status("aclrtQueryEventStatus", e) == 0


def test_elapsed_time_is_the_modelled_time():
    """A copy on the device moves its bytes twice over the memory's bandwidth, after the launch's fixed cost; waits take the later clock."""
    size = 16 * MB
    a, b, s, other = malloc(size), malloc(size), stream(), stream()
    start, middle, end = event(), event(), event()
    acl("aclrtRecordEvent", POINTER(start), POINTER(s))
    acl("aclrtMemcpyAsync", b, size, a, size, D2D, s)
    acl("aclrtRecordEvent", POINTER(middle), POINTER(s))
    acl("aclrtStreamWaitEvent", POINTER(other), POINTER(middle))
    acl("aclrtMemcpyAsync", b, size, a, size, D2D, other)
    acl("aclrtRecordEvent", POINTER(end), POINTER(other))
    acl("aclrtSynchronizeEvent", POINTER(end))
    one = elapsed_ms(start, middle)
    assert one == pytest.approx((4e-6 + 2 * size / 1.6e12) * 1e3, rel=0.3)
    assert elapsed_ms(start, end) == pytest.approx(2 * one, rel=1e-3)
    with pytest.raises(AclError, match="before the start event") as caught:
        elapsed_ms(end, start)
    assert caught.value.code == 107007
    time.sleep(0.05)
    acl("aclrtRecordEvent", POINTER(end), POINTER(other))
    acl("aclrtSynchronizeEvent", POINTER(end))
    assert elapsed_ms(start, end) == pytest.approx(2 * one, rel=1e-3), "the host's time does not count"
    acl("aclrtFree", a), acl("aclrtFree", b)


def test_elapsed_time_needs_time_line_and_records():
    plain, timed, s = event(0x2), event(), stream()
    acl("aclrtRecordEvent", POINTER(plain), POINTER(s))
    acl("aclrtRecordEvent", POINTER(timed), POINTER(s))
    acl("aclrtSynchronizeStream", POINTER(s))
    with pytest.raises(AclError, match="without ACL_EVENT_TIME_LINE") as caught:
        elapsed_ms(plain, timed)
    assert caught.value.code == TIMESTAMP_INVALID
    with pytest.raises(AclError, match="was not recorded"):
        elapsed_ms(timed, event())


def test_the_host_orders_modelled_time():
    """What is submitted after the host waited for a stream cannot start earlier, on whatever stream."""
    s, other = stream(), stream()
    a, b = malloc(64 * MB), malloc(64 * MB)
    e, later = event(), event()
    acl("aclrtMemcpyAsync", b, 64 * MB, a, 64 * MB, D2D, s)
    acl("aclrtRecordEvent", POINTER(e), POINTER(s))
    acl("aclrtSynchronizeStream", POINTER(s))
    acl("aclrtRecordEvent", POINTER(later), POINTER(other))
    acl("aclrtSynchronizeStream", POINTER(other))
    assert elapsed_ms(e, later) == 0
    acl("aclrtFree", a), acl("aclrtFree", b)


def test_torch_events_follow_the_kernels():
    import custom_ops

    def modelled(tokens):
        x = torch.ones(tokens, 4, 512).npu()
        custom_ops.hc_pre_inv_rms(x)
        start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
        start.record()
        custom_ops.hc_pre_inv_rms(x)
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    once = modelled(512)
    assert modelled(512) == once, "modelled time does not depend on the host"
    assert once < modelled(4096) and 0.004 < once < 10


def test_handles_that_are_none():
    fails(INVALID_HANDLE, "aclrtSynchronizeStream", POINTER(0x1234567), match="is no stream")
    fails(INVALID_HANDLE, "aclrtSynchronizeStream", POINTER(event()), match="is no stream but of kind event")
    s = stream()
    acl("aclrtDestroyStream", POINTER(s))
    fails(INVALID_HANDLE, "aclrtSynchronizeStream", POINTER(s), match="was destroyed")
    fails(INVALID_HANDLE, "aclrtRecordEvent", POINTER(0x40), None, match="is no event")
    fails(INVALID_PARAMETER, "aclrtCreateStream", None, match="must not be null")


def test_destroying_a_stream_lets_its_work_end():
    a, s = malloc(64), stream()
    gate = Gate(s)
    acl("aclrtMemsetAsync", a, 64, 7, 64, s)
    threading.Timer(0.05, gate.open).start()
    acl("aclrtDestroyStream", POINTER(s))
    assert download(a, 64) == b"\7" * 64
    forced = stream()
    gate = Gate(forced)
    acl("aclrtMemsetAsync", a, 64, 9, 64, forced)
    threading.Timer(0.05, gate.open).start()
    acl("aclrtDestroyStreamForce", POINTER(forced))
    assert download(a, 64) == b"\7" * 64
    acl("aclrtFree", a)


@pytest.mark.parametrize("stops", [False, True], ids=["continue", "stop"])
def test_failure_mode(stops):
    """A stream that stops on failure leaves out what was queued behind it, until the failure was reported."""
    s, a, gone = stream(), malloc(64), malloc(64)
    acl("aclrtSetStreamFailureMode", s, int(stops))
    upload(a, b"0" * 64)
    gate = Gate(s)
    acl("aclrtMemsetAsync", gone, 64, 1, 64, s)
    acl("aclrtMemsetAsync", a, 64, ord("1"), 64, s)
    acl("aclrtFree", gone)
    gate.open()
    fails(INVALID_PARAMETER, "aclrtSynchronizeStream", POINTER(s), match="memset: .*was freed")
    assert download(a, 1) == (b"0" if stops else b"1")
    acl("aclrtMemsetAsync", a, 64, ord("2"), 64, s)
    acl("aclrtSynchronizeStream", POINTER(s))
    assert download(a, 1) == b"2"
    acl("aclrtFree", a)


def test_last_error_and_message():
    fails(INVALID_DEVICE, "aclrtSetDevice", 99, match="aclrtSetDevice: device 99 does not exist: there are 1")
    runtime = ctypes.CDLL("libascendcl.so")
    assert runtime.aclrtPeekAtLastError(0) == INVALID_DEVICE and runtime.aclrtGetLastError(0) == INVALID_DEVICE
    assert runtime.aclrtGetLastError(0) == 0


def test_error_kind_is_given_once():
    """Nothing went wrong in a kernel here: no memory or core error is reported."""
    info = (ctypes.c_uint8 * 4096)()
    acl("aclrtGetErrorVerbose", 0, ctypes.addressof(info))
    acl("aclrtGetErrorVerbose", 0, ctypes.addressof(info))
    assert ctypes.cast(info, ctypes.POINTER(ctypes.c_int))[1] == 0


def test_host_callbacks_of_a_subscribed_thread():
    s = stream()
    fails(107015, "aclrtLaunchCallback", ctypes.cast(host_function(print), POINTER), None, 1, s, match="no thread has subscribed")
    ran, ready = [], threading.Event()
    function = host_function(lambda: ran.append(threading.get_ident()))

    def serve():
        acl("aclrtSetDevice", 0)
        acl("aclrtSubscribeReport", threading.get_ident(), s)
        ready.set()
        acl("aclrtProcessReport", 10_000)
        with pytest.raises(AclError, match="no callback within"):
            acl("aclrtProcessReport", 10)
        acl("aclrtUnSubscribeReport", threading.get_ident(), s)

    thread = threading.Thread(target=serve)
    thread.start()
    ready.wait()
    acl("aclrtLaunchCallback", ctypes.cast(function, POINTER), None, 1, s)
    acl("aclrtSynchronizeStream", POINTER(s))
    assert ran == [thread.ident]
    thread.join()


def test_pinned_copies_through_torch():
    x = torch.arange(10_000.).pin_memory()
    assert x.is_pinned()
    y = x.to("npu", non_blocking=True)
    z = torch.empty(10_000).pin_memory()
    z.copy_(y, non_blocking=True)
    torch.npu.current_stream().synchronize()
    assert torch.equal(z, x)


def test_soak_of_threads_and_streams():
    """Copies and fills of several threads, each on streams of its own, memory allocated and freed in between."""
    failures = []

    def work(seed):
        try:
            acl("aclrtSetDevice", 0)
            streams = [stream() for _ in range(2)]
            for step in range(150):
                size = 64 * (1 + (seed * 31 + step * 7) % 500)
                a, b = malloc(size), malloc(size)
                first, second = streams[step % 2], streams[1 - step % 2]
                done = event(0)
                acl("aclrtMemsetAsync", a, size, (seed + step) % 251, size, first)
                acl("aclrtRecordEvent", POINTER(done), POINTER(first))
                acl("aclrtStreamWaitEvent", POINTER(second), POINTER(done))
                acl("aclrtMemcpyAsync", b, size, a, size, D2D, second)
                acl("aclrtSynchronizeStream", POINTER(second))
                assert download(b, size) == bytes([(seed + step) % 251]) * size
                acl("aclrtDestroyEvent", POINTER(done))
                acl("aclrtFree", a), acl("aclrtFree", b)
            for s in streams:
                acl("aclrtDestroyStream", POINTER(s))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures and not any(thread.is_alive() for thread in threads)
