"""custom_ops.sim.launch: bare kernels, what their arguments may be, what a report and an error carry."""

import ctypes
import inspect
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import custom_ops
from custom_ops import BuildError, KernelError
from custom_ops.sim import tiling_decode

SOCS = ["ascend910b", "ascend950"]

# y = x * factor + shift.a over blocks of `count` elements
KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
struct Shift { int32_t a; uint8_t b; };
extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, float factor, Shift shift, uint32_t count) {
    GlobalTensor<float> xGm, yGm;
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * count, count);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * count, count);
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> in;
    TQue<QuePosition::VECOUT, 1> out;
    pipe.InitBuffer(in, 1, count * sizeof(float));
    pipe.InitBuffer(out, 1, count * sizeof(float));
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xGm, count);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    Muls(b, a, factor, int32_t(count));
    PipeBarrier<PIPE_V>();
    Adds(b, b, float(shift.a), int32_t(count));
    out.EnQue(b);
    in.FreeTensor(a);
    b = out.DeQue<float>();
    DataCopy(yGm, b, count);
    out.FreeTensor(b);
}
"""

# y[0] = the tiling's fields, written by the scalar unit's view of GM through UB
TILED = """
#include "kernel_operator.h"
using namespace AscendC;
struct Plan { uint32_t count; float value; };
extern "C" __global__ __aicore__ void fill(GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(Plan, plan, tiling);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, plan.count * sizeof(float));
    LocalTensor<float> row = buffer.Get<float>();
    Duplicate(row, TILING_KEY_IS(7) ? plan.value : -plan.value, int32_t(plan.count));
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    GlobalTensor<DTYPE_Y> yGm;
    yGm.SetGlobalBuffer((__gm__ DTYPE_Y*)y);
    DataCopy(yGm, row, plan.count);
}
"""


class Shift(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int32), ("b", ctypes.c_uint8)]


class Plan(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint32), ("value", ctypes.c_float)]


def broken(kernel=KERNEL):
    return kernel.replace("    a = in.DeQue<float>();\n", "").replace("in.EnQue(a);", "")


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("make", [lambda n: np.arange(n, dtype=np.float32), lambda n: torch.arange(n, dtype=torch.float32)],
                         ids=["numpy", "torch"])
def test_arguments_by_position(make, soc):
    x, y = make(64), make(64) * 0
    report = custom_ops.sim.launch(KERNEL, "scale", 4, [x, y, 2.5, Shift(3, 0), 16], soc=soc, outputs=["y"])
    assert (y == x * 2.5 + 3).all()
    assert report.ok and report.cores == 4 and report.op == "scale"


def test_arguments_by_name_and_integers_for_floats():
    x, y = np.ones(16, np.float32), np.empty(16, np.float32)
    custom_ops.sim.launch(KERNEL, "scale", 1, {"count": np.uint32(16), "x": x, "y": y, "factor": 2, "shift": bytes(Shift(1, 0))})
    assert (y == 3).all()


TILINGS = {
    "ctypes": Plan(32, 1.5),
    "bytes": bytes(Plan(32, 1.5)),
    "record": np.array((32, 1.5), dtype=[("count", "u4"), ("value", "f4")]),
}


@pytest.mark.parametrize("tiling", TILINGS.values(), ids=TILINGS)
@pytest.mark.parametrize("key, sign", [(7, 1), (0, -1)])
def test_tiling_and_key(tiling, key, sign):
    y = np.zeros(32, np.float32)
    report = custom_ops.sim.launch(TILED, "fill", 1, [y], tiling, tiling_key=key, ignore=["tiling-key"])
    assert (y == sign * 1.5).all()
    assert report.tiling_key == key and report.tiling_bytes == bytes(Plan(32, 1.5))
    assert report.plan == ({} if isinstance(tiling, bytes) else {"count": 32, "value": 1.5})


def test_entries_made_by_macros():
    body = KERNEL[KERNEL.index("    GlobalTensor"):].replace("\n", " \\\n").rstrip(" \\\n")
    source = KERNEL[:KERNEL.index('extern "C"')] + (
        "#define SCALE(kind) \\\n"
        'extern "C" __global__ __aicore__ void scale_##kind(GM_ADDR x, GM_ADDR y, float factor, Shift shift, uint32_t count) { \\\n'
        f"{body}\nSCALE(once)\nSCALE(twice)\n")
    x, y = np.ones(16, np.float32), np.empty(16, np.float32)
    for entry in ("scale_once", "scale_twice"):
        report = custom_ops.sim.launch(source, entry, 1, [x, y, 2.0, Shift(1, 0), 16])
        assert report.op == entry and (y == 3).all()
    with pytest.raises(BuildError, match=r"has no entry scale_thrice\(...\) declared __global__; it has .*scale_twice"):
        custom_ops.sim.launch(source, "scale_thrice", 1, [x, y, 2.0, Shift(1, 0), 16])


def test_plan_floats_are_the_shortest_that_read_back():
    y, value = np.zeros(32, np.float32), np.float32(1e-6)
    for tiling in (Plan(32, 1e-6), np.array((32, 1e-6), dtype=[("count", "u4"), ("value", "f4")])):
        report = custom_ops.sim.launch(TILED, "fill", 1, [y], tiling, tiling_key=7)
        assert repr(report.plan["value"]) == "1e-06" and (y == value).all()


@pytest.mark.parametrize("value", [0.1, 1 / 3, -3.4028235e38, 1e-45, 16777217.0, float("inf"), 0.0])
def test_shortest_reads_back(value):
    exact = float(np.float32(value))
    assert np.float32(tiling_decode.shortest(exact)) == exact
    assert len(repr(tiling_decode.shortest(exact))) <= len(repr(exact))


def test_tiling_buffer_shorter_than_its_struct():
    with pytest.raises(KernelError, match="4 bytes past its end; it has 4 bytes") as caught:
        custom_ops.sim.launch(TILED, "fill", 1, [np.zeros(32, np.float32)], bytes(Plan(32, 1.5))[:4], tiling_key=7)
    assert caught.value.rule == "gm-out-of-bounds" and caught.value.instruction == "GET_TILING_DATA"


def test_launch_is_documented():
    assert "raise_on_finding" in inspect.signature(custom_ops.sim.launch).parameters
    assert "block_dim:" in custom_ops.sim.launch.__doc__ and "launch" in dir(custom_ops.sim)


def test_tiling_key_without_a_branch():
    with pytest.raises(KernelError) as caught:
        custom_ops.sim.launch(TILED, "fill", 1, [np.zeros(32, np.float32)], Plan(32, 1.5), tiling_key=3)
    assert caught.value.rule == "tiling-key"


@pytest.mark.parametrize("soc", SOCS)
def test_finding_reaches_python_with_its_attributes(soc):
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    with pytest.raises(KernelError) as caught:
        custom_ops.sim.launch(broken(), "scale", 1, [x, y, 2.0, Shift(), 64], soc=soc)
    error = caught.value
    assert isinstance(error, RuntimeError)
    assert error.rule == "hazard" and error.instruction == "Muls" and error.pipe == "V"
    assert error.op == "scale" and error.soc.startswith("Ascend") and error.core == 0
    assert Path(error.file).name == "scale.cpp" and "Muls" in broken().splitlines()[error.line - 1]
    assert error.message in str(error) and "MTE2 writes" in str(error) and "a = in" not in str(error)
    assert error.findings[0]["rule"] == error.rule and error.report.findings == error.findings


def test_findings_without_raising():
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    report = custom_ops.sim.launch(broken(), "scale", 1, [x, y, 2.0, Shift(), 64], raise_on_finding=False)
    assert not report.ok and "scale.cpp:" in report.text()
    assert report.text() in report.summary()
    assert repr(report).startswith("<OpCall scale on Ascend910B3: 1 cores, modelled ")
    assert repr(report).endswith(f" {report.modelled_us:.2f} us, {len(report.findings)} findings>")


def test_output_starts_unwritten():
    kernel = KERNEL.replace("DataCopy(a, xGm, count)", "DataCopy(a, yGm, count)")
    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    custom_ops.sim.launch(kernel, "scale", 1, [x, y, 2.0, Shift(), 64])
    with pytest.raises(KernelError) as caught:
        custom_ops.sim.launch(kernel, "scale", 1, [x, y, 2.0, Shift(), 64], outputs=[1])
    assert caught.value.rule == "uninitialized-read"


def test_trace(tmp_path):
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    report = custom_ops.sim.launch(KERNEL, "scale", 2, [x, y, 2.0, Shift(), 32], trace=True)
    trace = json.loads(report.save_trace(tmp_path / "trace.json").read_text())
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {"DataCopy", "Muls", "Adds"} <= {e["name"].split()[0] for e in slices}
    assert len({e["pid"] for e in slices}) == 2, "one process per core"
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in slices)
    names = {e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {"V", "MTE2", "MTE3"} <= names
    with pytest.raises(ValueError, match="no trace was recorded for scale"):
        custom_ops.sim.launch(KERNEL, "scale", 2, [x, y, 2.0, Shift(), 32]).save_trace(tmp_path / "none.json")


X = np.ones(64, np.float32)
REFUSED = [
    (TypeError, r"scale takes 5 arguments \(x, y, factor, shift, count\), got 2", dict(args=[X, X])),
    (TypeError, "no parameter 'z'; it has 'x'", dict(args={"z": X})),
    (TypeError, "y, factor, shift, count not given", dict(args={"x": X})),
    (TypeError, "x is a GM pointer and takes a torch tensor or a NumPy array, got float", dict(args=[1.0, X, 1.0, Shift(), 64])),
    (TypeError, "factor is a float passed by value", dict(args=[X, X, "two", Shift(), 64])),
    (TypeError, "shift is a Shift passed by value", dict(args=[X, X, 1.0, 3, 64])),
    (ValueError, "count: -1 does not fit uint32_t", dict(args=[X, X, 1.0, Shift(), -1])),
    (ValueError, "x must be contiguous", dict(args=[X[::2], X, 1.0, Shift(), 32])),
    (TypeError, "no parameter 'q'; it has", dict(args=[X, X, 1.0, Shift(), 64], outputs=["q"])),
    (BuildError, "has no entry skale", dict(entry="skale", args=[])),
    (BuildError, "does not exist", dict(file="/nowhere/k.cpp", args=[])),
    (ValueError, "soc 'ascend910c' is not known; families are ascend910b, ", dict(args=[X, X, 1.0, Shift(), 64], soc="ascend910c")),
    (ValueError, "rule 'hazzard' is not known; known are 'hazard'", dict(args=[X, X, 1.0, Shift(), 64], ignore=["hazzard"])),
    (ValueError, "adversarial_seed must be", dict(args=[X, X, 1.0, Shift(), 64], adversarial_seed=-1)),
    *((kind, text, {"args": [X, X, 1.0, Shift(), 64], **call}) for kind, text, call in [
        (TypeError, "entry must be the name of a kernel function, got 3", dict(entry=3)),
        (TypeError, "scale: block_dim must be an int from 1 to 65535, got True", dict(block_dim=True)),
        (TypeError, "block_dim must be .*, got 2.0", dict(block_dim=2.0)),
        (ValueError, "block_dim must be .*, got 0", dict(block_dim=0)),
        (ValueError, "block_dim must be .*, got 65536", dict(block_dim=65536)),
        (ValueError, "scale: tiling_key must be an int from 0 to 18446744073709551615, got -1", dict(tiling_key=-1)),
        (ValueError, "tiling_key must be .*, got 18446744073709551616", dict(tiling_key=2**64)),
        (TypeError, "tiling_key must be .*, got '7'", dict(tiling_key="7")),
        (ValueError, "scale: workspace must be an int from 0 .*, got -1", dict(workspace=-1)),
        (TypeError, "workspace must be .*, got None", dict(workspace=None)),
        (ValueError, r"scale: x is in both inputs= and outputs=", dict(inputs=["x"], outputs=[0])),
        (ValueError, "scale has no parameter 5; its 5 are x, y, factor, shift, count", dict(outputs=[5])),
        (ValueError, "scale has no parameter -6", dict(inputs=[-6])),
        (TypeError, "scale has no parameter True", dict(outputs=[True])),
        (TypeError, r'ignore must be .*, got .hazard.: give \["hazard"\]', dict(ignore="hazard")),
        (ValueError, r"x has a lazy neg bit .*: call \.resolve_neg\(\)",
         dict(args=[torch._neg_view(torch.ones(64)), X, 1.0, Shift(), 64])),
    ]),
    (ValueError, "fill: workspace of 4611686018427387904 bytes does not fit in the memory",
     dict(file=TILED, entry="fill", args=[X.copy()], tiling=Plan(64, 1.5), workspace=2**62)),
]


@pytest.mark.parametrize("kind, text, call", REFUSED, ids=[text for _, text, _ in REFUSED])
def test_wrong_arguments_name_what_is_accepted(kind, text, call):
    call = {"file": KERNEL, "entry": "scale", "block_dim": 1, **call}
    with pytest.raises(kind, match=text):
        custom_ops.sim.launch(**call)


def test_read_only_array_needs_inputs():
    x = np.ones(64, np.float32)
    x.flags.writeable = False
    y = np.zeros(64, np.float32)
    with pytest.raises(ValueError, match="x is read-only"):
        custom_ops.sim.launch(KERNEL, "scale", 1, [x, y, 2.0, Shift(), 64])
    custom_ops.sim.launch(KERNEL, "scale", 1, [x, y, 2.0, Shift(), 64], inputs=["x"])
    assert (y == 2).all()


def test_defines_and_dtypes():
    kernel = TILED.replace("plan.value :", "plan.value * FACTOR :")
    y = np.zeros(16, np.float32)
    custom_ops.sim.launch(kernel, "fill", 1, [y], Plan(16, 1.5), tiling_key=7, defines={"FACTOR": "4.0f"}, dtypes={"y": "float32"})
    assert (y == 6).all()
