"""Model capture: torch.npu graphs as a user writes them, and the C interface's rules."""

import ctypes
import threading

import pytest
import torch
from acl_api import (BLOCKING_COPY, CAPTURE_DEPENDENCY, D2D, D2H, EVENT_CAPTURED, EXTERNAL, GLOBAL, INVALIDATED, MODE_REFUSES, NOT_CAPTURED,
                     RELAXED, STREAM_CAPTURED, TASK_GROUP, THREAD_LOCAL, TIME_LINE, UNJOINED, UNMATCHED, UPDATE_FAILED, WRONG_THREAD,
                     AclError, acl, capture_info, download, elapsed_ms, end_capture, event, fails, malloc, out, stream, upload)

pytestmark = pytest.mark.usefixtures("simulated")
P = ctypes.c_void_p


@pytest.fixture(autouse=True)
def context():
    acl("aclrtSetDevice", 0)


@pytest.fixture
def s():
    handle = stream()
    yield handle
    if capture_info(handle) != 0:  # a test that failed in between
        with pytest.raises(AclError):
            end_capture(handle)
    acl("aclrtDestroyStream", P(handle))


def end_fails(code, handle, match=None):
    with pytest.raises(AclError, match=match) as caught:
        end_capture(handle)
    assert caught.value.code == code, caught.value
    assert capture_info(handle) == 0


def fill(address, value, size, on):
    acl("aclrtMemsetAsync", address, size, value, size, on)


# ---- as a user of torch writes it

def test_graph_of_an_operator_replays_on_fresh_inputs():
    import custom_ops

    x = torch.randn(17, 4, 256).npu()
    custom_ops.hc_pre_inv_rms(x)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = custom_ops.hc_pre_inv_rms(x)
    for _ in range(3):
        fresh = torch.randn(17, 4, 256)
        x.copy_(fresh)
        graph.replay()
        torch.testing.assert_close(y.cpu(), custom_ops.hc_pre_inv_rms(fresh))


def test_graph_runs_nothing_while_it_is_captured():
    x, y = torch.zeros(64).npu(), torch.ones(64).npu()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y.copy_(x)
    torch.npu.synchronize()
    assert y.cpu().eq(1).all()
    graph.replay()
    assert y.cpu().eq(0).all()


def test_graph_over_two_streams():
    import custom_ops

    x = torch.randn(8, 4, 64).npu()
    custom_ops.hc_pre_inv_rms(x)
    side = torch.npu.Stream()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        here = torch.npu.current_stream()
        side.wait_stream(here)
        with torch.npu.stream(side):
            a = custom_ops.hc_pre_inv_rms(x)
        b = custom_ops.hc_pre_inv_rms(x)
        here.wait_stream(side)
    fresh = torch.randn(8, 4, 64)
    x.copy_(fresh)
    graph.replay()
    want = custom_ops.hc_pre_inv_rms(fresh)
    torch.testing.assert_close(a.cpu(), want)
    torch.testing.assert_close(b.cpu(), want)


def test_synchronising_in_a_graph_is_an_error_and_the_next_graph_works():
    x = torch.zeros(64).npu()
    y = torch.ones(64).npu()
    with pytest.raises(RuntimeError, match="the capture is lost: stream [0-9]+ is captured and cannot be synchronised") as caught:
        with torch.npu.graph(torch.npu.NPUGraph()):
            y.copy_(x)
            torch.npu.current_stream().synchronize()
    assert "is captured and cannot be synchronised" in str(caught.value.__context__)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y.copy_(x)
    graph.replay()
    assert y.cpu().eq(0).all()


# ---- the rules

def test_replay(s):
    a, b = malloc(64), malloc(64)
    upload(a, b"0" * 64), upload(b, b"-" * 64)
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    assert capture_info(s) == 1
    acl("aclrtMemcpyAsync", b, 64, a, 64, D2D, s)
    fill(a, ord("x"), 8, s)
    model = end_capture(s)
    assert capture_info(s) == 0 and download(b, 64) == b"-" * 64
    acl("aclmdlRIExecuteAsync", model, s)
    acl("aclrtSynchronizeStream", P(s))
    assert download(b, 64) == b"0" * 64 and download(a, 64) == b"x" * 8 + b"0" * 56
    acl("aclmdlRIExecuteAsync", model, s)
    acl("aclmdlRIDestroy", P(model))  # what is queued still runs
    acl("aclrtSynchronizeStream", P(s))
    assert download(b, 9) == b"x" * 8 + b"0"
    fails(107017, "aclmdlRIExecuteAsync", model, s, match="was destroyed")
    acl("aclrtFree", a), acl("aclrtFree", b)


def test_memory_freed_between_capture_and_replay(s):
    a = malloc(64)
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    fill(a, 1, 64, s)
    model = end_capture(s)
    acl("aclrtFree", a)
    acl("aclmdlRIExecuteAsync", model, s)
    fails(107000, "aclrtSynchronizeStream", P(s), match="memset: .*was freed")


def test_branches_and_their_modelled_time(s):
    """Branches overlap: two copies of the same size on two streams take as long as one."""
    size = 8 << 20
    a, b, c, other = malloc(size), malloc(size), malloc(size), stream()
    fork, join = event(0), event(0)
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    acl("aclrtRecordEvent", P(fork), P(s))
    acl("aclrtStreamWaitEvent", P(other), P(fork))
    assert capture_info(other) == 1
    acl("aclrtMemcpyAsync", b, size, a, size, D2D, s)
    acl("aclrtMemcpyAsync", c, size, a, size, D2D, other)
    acl("aclrtRecordEvent", P(join), P(other))
    acl("aclrtStreamWaitEvent", P(s), P(join))
    model = end_capture(s)
    assert capture_info(other) == 0
    start, middle, end = event(), event(), event()
    acl("aclrtRecordEvent", P(start), P(s))
    acl("aclmdlRIExecuteAsync", model, s)
    acl("aclrtRecordEvent", P(middle), P(s))
    acl("aclrtMemcpyAsync", b, size, a, size, D2D, s)
    acl("aclrtRecordEvent", P(end), P(s))
    acl("aclrtSynchronizeStream", P(s))
    assert elapsed_ms(start, middle) == pytest.approx(elapsed_ms(middle, end), rel=1e-4)
    for address in a, b, c:
        acl("aclrtFree", address)


def test_stream_that_is_not_joined(s):
    a, other, fork = malloc(64), stream(), event(0)
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    acl("aclrtRecordEvent", P(fork), P(s))
    acl("aclrtStreamWaitEvent", P(other), P(fork))
    fill(a, 1, 64, other)
    end_fails(UNJOINED, s, match="does not wait for its last task")
    assert capture_info(other) == 0
    acl("aclrtFree", a)


def test_capture_begins_and_ends_where_it_may(s):
    fails(NOT_CAPTURED, "aclmdlRICaptureEnd", P(s), ctypes.byref(P()))
    fails(MODE_REFUSES, "aclmdlRICaptureBegin", None, GLOBAL, match="default stream")
    fails(107000, "aclmdlRICaptureBegin", s, 7, match="mode 7")
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    fails(STREAM_CAPTURED, "aclmdlRICaptureBegin", s, GLOBAL, match="captured already")
    other, fork = stream(), event(0)
    acl("aclrtRecordEvent", P(fork), P(s))
    acl("aclrtStreamWaitEvent", P(other), P(fork))
    fails(UNMATCHED, "aclmdlRICaptureEnd", P(other), ctypes.byref(P()), match="did not begin on stream")
    end_fails(INVALIDATED, s, match="the capture did not begin on stream")


def test_ended_by_another_thread(s):
    seen = []

    def end():
        acl("aclrtSetDevice", 0)
        try:
            end_capture(s)
        except AclError as error:
            seen.append(error.code)

    acl("aclmdlRICaptureBegin", s, THREAD_LOCAL)
    thread = threading.Thread(target=end)
    thread.start(), thread.join()
    assert seen == [WRONG_THREAD]
    end_fails(INVALIDATED, s)
    acl("aclmdlRICaptureBegin", s, RELAXED)
    thread = threading.Thread(target=end)
    thread.start(), thread.join()
    assert seen == [WRONG_THREAD] and capture_info(s) == 0


@pytest.mark.parametrize("call, code", [
    (lambda s: acl("aclrtSynchronizeStream", P(s)), STREAM_CAPTURED),
    (lambda s: acl("aclrtStreamQuery", P(s), ctypes.byref(ctypes.c_int())), STREAM_CAPTURED),
    (lambda s: acl("aclrtSynchronizeDevice"), STREAM_CAPTURED),
    (lambda s: acl("aclrtDestroyStream", P(s)), STREAM_CAPTURED),
], ids=["synchronise", "query", "device", "destroy"])
def test_waiting_for_a_captured_stream_loses_the_capture(s, call, code):
    acl("aclmdlRICaptureBegin", s, RELAXED)
    with pytest.raises(AclError) as caught:
        call(s)
    assert caught.value.code == code and capture_info(s) == 2
    reason = caught.value.text.partition(": ")[2]
    a = malloc(64)
    fails(INVALIDATED, "aclrtMemsetAsync", a, 64, 0, 64, s, match=f"the capture is lost: {reason}$")
    end_fails(INVALIDATED, s)
    acl("aclrtFree", a)


def test_captured_event_cannot_be_asked(s):
    e = event(TIME_LINE)
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    acl("aclrtRecordEvent", P(e), P(s))
    fails(EVENT_CAPTURED, "aclrtSynchronizeEvent", P(e), match="recorded in a capture")
    end_fails(INVALIDATED, s)
    acl("aclrtRecordEvent", P(e), P(s))
    acl("aclrtSynchronizeEvent", P(e))


def test_waiting_for_work_outside_the_capture(s):
    other, e = stream(), event(0)
    acl("aclrtRecordEvent", P(e), P(other))
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    fails(CAPTURE_DEPENDENCY, "aclrtStreamWaitEvent", P(s), P(e), match="ACL_EVENT_EXTERNAL")
    end_fails(INVALIDATED, s)


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
def test_calls_that_take_effect_at_once(s, mode):
    """A synchronous copy: never while the own thread captures, in others only during a global capture, anywhere when relaxed."""
    a = malloc(64)
    buffer = ctypes.create_string_buffer(64)
    copy = lambda: acl("aclrtMemcpy", ctypes.addressof(buffer), 64, a, 64, D2H)
    seen = []

    def elsewhere():
        acl("aclrtSetDevice", 0)
        try:
            copy()
            seen.append(0)
        except AclError as error:
            seen.append(error.code)

    acl("aclmdlRICaptureBegin", s, mode)
    thread = threading.Thread(target=elsewhere)
    thread.start(), thread.join()
    assert seen == [MODE_REFUSES if mode == GLOBAL else 0]
    if mode == RELAXED:
        copy()
        end_capture(s)
    else:
        fails(MODE_REFUSES, "aclrtMemset", a, 64, 0, 64, match="cannot be captured")
        end_fails(INVALIDATED, s)
    acl("aclrtFree", a)


def test_thread_exchanges_its_mode(s):
    a = malloc(64)
    mode = ctypes.c_int(RELAXED)
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    acl("aclmdlRICaptureThreadExchangeMode", ctypes.byref(mode))
    assert mode.value == GLOBAL
    upload(a, b"a" * 64)
    acl("aclmdlRICaptureThreadExchangeMode", ctypes.byref(mode))
    assert mode.value == RELAXED and capture_info(s) == 1
    end_capture(s)
    acl("aclrtFree", a)


def test_pageable_memory_cannot_be_captured(s):
    a, pinned = malloc(64), out("aclrtMallocHost", 64)
    upload(a, b"p" * 64)
    buffer = ctypes.create_string_buffer(64)
    acl("aclmdlRICaptureBegin", s, RELAXED)
    acl("aclrtMemcpyAsync", pinned, 64, a, 64, D2H, s)
    fails(BLOCKING_COPY, "aclrtMemcpyAsync", ctypes.addressof(buffer), 64, a, 64, D2H, s, match="use pinned memory")
    end_fails(INVALIDATED, s)
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    acl("aclrtMemcpyAsync", pinned, 64, a, 64, D2H, s)
    model = end_capture(s)
    acl("aclmdlRIExecuteAsync", model, s)
    acl("aclrtSynchronizeStream", P(s))
    assert ctypes.string_at(pinned, 64) == b"p" * 64
    acl("aclrtFreeHost", pinned), acl("aclrtFree", a)


def group_of(s, *addresses):
    acl("aclmdlRICaptureTaskGrpBegin", P(s))
    for address in addresses:
        fill(address, 1, 64, s)
    group = P()
    acl("aclmdlRICaptureTaskGrpEnd", P(s), ctypes.byref(group))
    return group


def test_task_group_update(s):
    """The way torch_npu updates a graph: the group waits for an external event that the update's stream records."""
    a, b, other, go = malloc(64), malloc(64), stream(), event(EXTERNAL)
    upload(a, bytes(64)), upload(b, bytes(64))
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    acl("aclrtStreamWaitEvent", P(s), P(go))
    acl("aclrtResetEvent", P(go), P(s))
    group = group_of(s, a)
    model = end_capture(s)
    for value, target in ((5, a), (6, b), (7, a)):
        acl("aclmdlRIExecuteAsync", model, s)
        acl("aclmdlRICaptureTaskUpdateBegin", P(other), group)
        fill(target, value, 64, other)
        acl("aclmdlRICaptureTaskUpdateEnd", P(other))
        acl("aclrtRecordEvent", P(go), P(other))
        acl("aclrtSynchronizeStream", P(s))
        assert download(target, 64) == bytes([value]) * 64
    acl("aclrtFree", a), acl("aclrtFree", b)


def test_task_group_rules(s):
    a, other = malloc(64), stream()
    fails(NOT_CAPTURED, "aclmdlRICaptureTaskGrpBegin", P(s))
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    fails(TASK_GROUP, "aclmdlRICaptureTaskGrpEnd", P(s), ctypes.byref(P()))
    group = group_of(s, a, a)
    fails(STREAM_CAPTURED, "aclmdlRICaptureTaskUpdateBegin", P(s), group)
    end_capture(s)
    fails(TASK_GROUP, "aclmdlRICaptureTaskUpdateEnd", P(other))
    acl("aclmdlRICaptureTaskUpdateBegin", P(other), group)
    fill(a, 2, 64, other)
    fails(UPDATE_FAILED, "aclmdlRICaptureTaskUpdateEnd", P(other), match="the task group has 2 tasks, the update 1")
    acl("aclrtFree", a)


def test_debug_print(s, tmp_path):
    import json

    a = malloc(64)
    acl("aclmdlRICaptureBegin", s, GLOBAL)
    fill(a, 1, 64, s)
    model = end_capture(s)
    path = tmp_path / "model.json"
    acl("aclmdlRIDebugJsonPrint", model, str(path).encode(), 0)
    assert json.loads(path.read_text())["tasks"] == [{"stream": 0, "type": "task", "name": "memset"}]
    acl("aclrtFree", a)
