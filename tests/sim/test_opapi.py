"""The C interface under the generated aclnn functions: arguments, inference, tiling, staging, errors, threads."""

import ctypes
import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from custom_ops import _paths

SOURCES = Path(__file__).parent / "opapi"
CODES = {"float32": 0, "float16": 1, "int32": 3, "float64": 11}
ND, FRACTAL_NZ = 2, 29


class Options(ctypes.Structure):
    _fields_ = [("soc", ctypes.c_char_p), ("checks", ctypes.c_int32), ("trace", ctypes.c_int32), ("seed", ctypes.c_uint64),
                ("threads", ctypes.c_int32), ("timeout", ctypes.c_double), ("ignored", ctypes.c_uint64), ("raises", ctypes.c_int32)]


class Attribute(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("value", ctypes.c_void_p)]


@pytest.fixture(scope="module")
def lib():
    lib = ctypes.CDLL(str(_paths.library("custom_ops_sim")))
    for name in ("SimDescribeHostLibrary", "SimTakeReports", "SimTakeTrace", "SimInferShapes", "aclCreateTensor",
                 "aclCreateIntArray", "aclCreateTensorList"):
        getattr(lib, name).restype = ctypes.c_void_p
    lib.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return lib


def compile_host(target: Path, limit: int) -> None:
    lib = _paths.LIBRARY_DIR
    subprocess.run([os.environ.get("CXX", "g++"), "-std=c++17", "-Wall", "-Wextra", "-Werror", "-O0", "-fPIC", "-shared",
                    f"-DLIMIT={limit}", "-I", _paths.SOURCE_ROOT / "sim/host/include", SOURCES / "host_ops.cpp", "-o", target,
                    f"-L{lib}", "-lcustom_ops_sim", f"-Wl,-rpath,{lib}"], check=True)


def compile_kernel(target: Path, define: str) -> None:
    fresh = target.with_suffix(".new")
    subprocess.run([os.environ.get("CXX", "g++"), "-std=c++17", "-O1", "-fPIC", "-shared", f"-D{define}",
                    SOURCES / "kernels.cpp", "-o", fresh], check=True)
    fresh.rename(target)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    root = tmp_path_factory.mktemp("package")
    for folder in ("op_host", "op_api/lib", "kernel/membase", "kernel/regbase"):
        (root / folder).mkdir(parents=True)
    compile_host(root / "op_host/libcust_opmaster.so", 1000)
    for op in ("biased", "scaled", "gathered"):
        compile_kernel(root / f"kernel/membase/{op}_0.so", op.upper())
    shutil.copy(root / "kernel/membase/biased_0.so", root / "kernel/regbase/biased_apt_0.so")
    return root


class Caller:
    """One call as a generated aclnn function makes it."""

    def __init__(self, lib, package, soc="ascend910b", raises=True):
        self.lib, self.package, self.keep = lib, package, []
        self.use(soc, raises)

    def use(self, soc, raises=True):
        assert self.lib.SimSetOptions(ctypes.byref(Options(soc.encode(), 1, 0, 0, 0, 0, 0, raises))) == 0

    def text(self, pointer):
        return json.loads(ctypes.string_at(pointer)) if pointer else self.lib.aclGetRecentErrMsg().decode()

    def tensor(self, array, form=ND):
        if array is None:
            return None
        if isinstance(array, list):
            handles = (ctypes.c_void_p * len(array))(*[self.tensor(a) for a in array])
            return self.lib.aclCreateTensorList(handles, ctypes.c_uint64(len(array)))
        shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        strides = (ctypes.c_int64 * max(array.ndim, 1))(*[s // array.itemsize for s in array.strides])
        return self.lib.aclCreateTensor(shape, ctypes.c_uint64(array.ndim), CODES[array.dtype.name], strides, ctypes.c_int64(0),
                                        form, None, ctypes.c_uint64(0), ctypes.c_void_p(array.ctypes.data))

    def attribute(self, value):
        if value is None:
            return Attribute(3, None)
        if isinstance(value, list):
            return Attribute(4, self.lib.aclCreateIntArray((ctypes.c_int64 * max(len(value), 1))(*value), ctypes.c_uint64(len(value))))
        kind, boxed = (1, ctypes.c_double(value)) if isinstance(value, float) else (0, ctypes.c_int64(value))
        self.keep.append(boxed)
        return Attribute(kind, ctypes.addressof(boxed))

    def packed(self, op, inputs, attributes):
        return (str(self.package / "op_api/lib/libcust_opapi.so").encode(), op.encode(),
                (ctypes.c_void_p * len(inputs))(*[self.tensor(a) if not isinstance(a, int) else a for a in inputs]), len(inputs),
                (Attribute * max(len(attributes), 1))(*map(self.attribute, attributes)), len(attributes))

    def __call__(self, op, inputs, attributes, outputs, workspace=None):
        """(status, message or workspace bytes)"""
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        targets = (ctypes.c_void_p * len(outputs))(*map(self.tensor, outputs))
        status = self.lib.SimOpPrepare(*self.packed(op, inputs, attributes), targets, len(outputs), ctypes.byref(size),
                                       ctypes.byref(executor))
        if status == 0:
            bytes_ = size.value if workspace is None else workspace
            memory = np.empty(max(bytes_, 1), np.uint8)
            status = self.lib.SimOpRun(ctypes.c_void_p(memory.ctypes.data), ctypes.c_uint64(bytes_), executor, None)
        return status, (self.lib.aclGetRecentErrMsg() or b"").decode() if status else size.value

    def reports(self):
        return self.text(self.lib.SimTakeReports())


@pytest.fixture
def call(lib, package):
    caller = Caller(lib, package)
    caller.reports()
    return caller


def numbers(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_description(call, package):
    ops = {op["type"]: op for op in call.text(call.lib.SimDescribeHostLibrary(str(package / "op_host/libcust_opmaster.so").encode()))}
    biased = ops["Biased"]
    # the 950's own list adds one column to the three that the other SoCs share
    assert biased["inputs"][0]["dtypes"] == ["DT_FLOAT", "DT_FLOAT16", "DT_BF16", "DT_INT32"] == biased["outputs"][0]["dtypes"]
    assert biased["configs"][0] == {"soc": "ascend910b", "file": "biased", "columns": [0, 1, 2]}
    assert biased["configs"][2] == {"soc": "ascend950", "file": "biased_apt", "columns": [0, 3]}
    assert biased["attrs"] == [{"name": "alpha", "type": "Float", "required": False, "default": 1e-6},
                               {"name": "axes", "type": "ListInt", "required": False, "default": [4, 5]}]
    keyed = {c["key"]: c for c in biased["tilingClasses"]}
    assert keyed[7]["class"] == "SplitTiling" and keyed[None]["bytes"] == 32
    assert [(f["name"], f["offset"], f["count"]) for f in keyed[None]["fields"]] == [
        ("total", 0, 1), ("alpha", 4, 1), ("hasBias", 8, 1), ("axes", 10, 3), ("split", 16, 1)]
    scaled = ops["Scaled"]
    assert scaled["inputs"][0]["dtypes"] == ["DT_FLOAT", "DT_FLOAT16"] and scaled["inputs"][1]["dtypes"] == ["DT_FLOAT"] * 2
    assert scaled["inputs"][1]["valueDepend"] and scaled["outputs"][0]["inPlace"]


@pytest.mark.parametrize("with_bias", [True, False])
def test_optional_input_and_macro_tiling(call, with_bias):
    x, y = numbers(3, 4), np.empty((3, 4), np.float32)
    bias = np.ones_like(x) if with_bias else None
    assert call("Biased", [x, bias], [2.0, [1]], [y]) == (0, (16 << 20) + 64)
    np.testing.assert_array_equal(y, x * 2 + with_bias)
    (report,) = call.reports()
    assert report["tilingKey"] == 0 and report["workspaceBytes"] == (16 << 20) + 64
    assert bytes.fromhex(report["tilingData"])[:4] == (12).to_bytes(4, "little")


def test_defaults_of_attributes(call):
    x, y = numbers(3, 4), np.empty((3, 4), np.float32)
    assert call("Biased", [x, None], [None, None], [y])[0] == 0
    np.testing.assert_array_equal(y, x * np.float32(1e-6))


def test_views_are_staged(call):
    x, wide = numbers(4, 6).T[::2], np.full((8, 3), -1, np.float32)
    y = wide.T[:, ::2]
    assert call("Biased", [x, None], [2.0, None], [y])[0] == 0
    np.testing.assert_array_equal(y, x * 2)
    assert (wide[1::2] == -1).all()


def test_in_place_view_with_value_dependency(call):
    base = numbers(3, 8)
    want = base.copy()
    want[:, ::2] *= 0.5 * 40
    assert call("Scaled", [base[:, ::2], np.array([0.5], np.float32)], [], [base[:, ::2]])[0] == 0
    np.testing.assert_array_equal(base, want)


def test_list_input_ignored_contiguity_and_initial_value(call):
    strided, y = numbers(7)[::2], np.zeros(1, np.float32)
    status = call("Gathered", [[numbers(3), numbers(4)], strided], [], [y])
    assert status == (0, 0) and y[0] == 100 + 3 + 6 + strided[-1]


def test_infer_shapes(call):
    got = call.text(call.lib.SimInferShapes(*call.packed("Biased", [numbers(3, 4), None], [1.0, None])))
    assert got == [{"name": "y", "shape": [3, 4], "dtype": "DT_FLOAT"}]


def test_empty_outputs_are_not_launched(call):
    empty = np.zeros((0, 4), np.float32)
    assert call("Biased", [empty, None], [1.0, None], [empty]) == (0, 0) and call.reports() == []


X, Y = numbers(3, 4), np.zeros((3, 4), np.float32)
REFUSED = {
    "unknown op": ("Bias", [X], [], [Y], 161002, "op Bias is not in .*, which has Biased, Scaled, Gathered"),
    "input count": ("Biased", [X], [1.0, None], [Y], 161002, r"Biased has 2 inputs \(x, bias\), got 1"),
    "attribute count": ("Biased", [X, None], [1.0], [Y], 161002, r"Biased has 2 attributes \(alpha, axes\), got 1"),
    "null": ("Biased", [None, X], [1.0, None], [Y], 161001, "Biased: x is required, got a null tensor"),
    "dtype": ("Biased", [X.astype("f8"), None], [1.0, None], [Y], 161002,
              "Biased: x has dtype float64, supported on ascend910b: float32, float16, bfloat16"),
    "dtypes together": ("Biased", [X.astype("f2"), X], [1.0, None], [Y], 161002,
                        r"the dtypes \(x float16, bias float32, y float32\) are no supported combination on ascend910b; those are "
                        r"\(x float32, bias float32, y float32\), \(x float16, bias float32, y float16\)"),
    "shape": ("Biased", [X, X], [1.0, None], [Y[:2]], 161002,
              r"output y is \[2, 4\], expected \[3, 4\] for x \[3, 4\] float32, bias \[3, 4\] float32"),
    "attribute type": ("Biased", [X, None], [1, None], [Y], 161002, "Biased: attribute alpha is Float, got Int"),
    "tiling": ("Biased", [numbers(1001), None], [1.0, None], [numbers(1001)], 561003,
               r"Biased: x has 1001 elements, at most 1000 \(tiling on Ascend910B3, given x \[1001\] float32, bias absent\)"),
    "not built": ("Biased", [X.astype("f2"), None], [1.0, None], [Y.astype("f2")], 561107, "not built for dtype column 1 on ascend910b"),
    "in place": ("Scaled", [X, X], [], [Y], 161002, "Scaled: x is written in place, input and output must be the same tensor"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(call, case):
    op, inputs, attributes, outputs, status, text = REFUSED[case]
    got, message = call(op, inputs, attributes, outputs)
    assert got == status and re.search(text, message), message
    assert call.reports() == []


def test_refuses_a_format(call):
    got, message = call("Biased", [call.tensor(X, FRACTAL_NZ), None], [1.0, None], [Y])
    assert got == 161002 and message == "Biased: x has format FORMAT_FRACTAL_NZ, supported on ascend910b: FORMAT_ND"


def test_refuses_a_small_workspace(call):
    assert call("Biased", [X, None], [1.0, None], [Y], workspace=10) == (
        161002, "Biased: the workspace has 10 bytes, GetWorkspaceSize asked for 16777280")


def test_refuses_a_soc_without_config(call):
    call.use("ascend950")
    assert call("Scaled", [X, X], [], [X]) == (161002, "Scaled is not defined for ascend950, its OpDef has ascend910b")
    assert call("Biased", [X, None], [3.0, None], [Y])[0] == 0 and (Y == X * 3).all()


def test_rebuilt_files_and_two_versions_side_by_side(lib, package, tmp_path, call):
    copy = tmp_path / "package"
    shutil.copytree(package, copy)
    other, y = Caller(lib, copy), np.empty((3, 4), np.float32)
    for value in (1, 2):
        compile_kernel(copy / "kernel/membase/biased_0.so", f"CONSTANT={value}")
        assert other("Biased", [X, None], [1.0, None], [y])[0] == 0 and y[0, 0] == value
    compile_host(copy / "op_host/next.so", 6)
    (copy / "op_host/next.so").rename(copy / "op_host/libcust_opmaster.so")
    assert "at most 6" in other("Biased", [X, None], [1.0, None], [y])[1]
    assert call("Biased", [X, None], [1.0, None], [y])[0] == 0


def test_threads_have_their_own_soc_and_reports(lib, package):
    failures = []

    def work(soc, factor):
        caller = Caller(lib, package, soc)
        x, y = numbers(3, 4) + factor, np.empty((3, 4), np.float32)
        for _ in range(50):
            if caller("Biased", [x, None], [float(factor), None], [y])[0] or not (y == x * factor).all():
                failures.append(f"{soc}: wrong numbers")
        socs = {report["soc"] for report in caller.reports()}
        if socs != {"ascend910b": {"Ascend910B3"}, "Ascend910B1": {"Ascend910B1"}}[soc]:
            failures.append(f"{soc}: reports of {socs}")

    threads = [threading.Thread(target=work, args=(soc, k)) for k, soc in enumerate(["ascend910b", "Ascend910B1"] * 2, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
