"""custom_ops.sim.build on op folders outside the tree: layout, dtype columns, arguments, cache, errors."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

import custom_ops
from custom_ops.sim import cache

OPS = Path(__file__).parent / "ops"
SOCS = ["ascend910b", "ascend950"]
TOLERANCE = {"float32": 1e-6, "float16": 2e-3, "bfloat16": 8e-3}  # half an ulp of the type at 1, twice rounded


@pytest.fixture(scope="module", params=SOCS)
def axpy(request):
    return custom_ops.sim.build(OPS / "axpy", soc=request.param)


@pytest.fixture(scope="module", params=SOCS)
def scale_bias(request):
    return custom_ops.sim.build(OPS / "scale_bias", soc=request.param)


def sample(shape, dtype, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (1025, 17)], ids=str)
def test_plain_struct_op_computes(axpy, shape, dtype):
    x, y = sample(shape, dtype, 1), sample(shape, dtype, 2)
    z = axpy(x, y, alpha=0.5)
    assert z.dtype == x.dtype and z.shape == x.shape
    torch.testing.assert_close(z, (0.5 * x.double() + y.double()).to(x.dtype), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("with_bias", [True, False], ids=["bias", "no-bias"])
def test_macro_tiling_op_computes(scale_bias, dtype, with_bias):
    x = sample((7, 33), dtype, 1)
    bias = sample((33,), dtype, 2) if with_bias else None
    y = scale_bias(x=x, bias=bias, scale=3)
    want = x.double() * 3 + (bias.double() if with_bias else 0)
    torch.testing.assert_close(y, want.to(x.dtype), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_tiling_is_decoded(axpy, scale_bias):
    axpy(sample((1024,), "float32"), sample((1024,), "float32"))
    assert axpy.report.plan == {"total": 1024, "tile": {"elements": 256, "tilesPerCore": 1}, "alpha": 2.0, "spare": [0, 0, 0, -7]}
    scale_bias(sample((7, 33), "float16"), scale=0.5)
    assert scale_bias.report.plan == {"hasBias": 0, "width": 33, "scale": 0.5, "marks": [1, -2, 3],
                                        "row": {"rowsPerCore": 1, "rows": 7}}
    assert scale_bias.report.tiling_key == 2 and scale_bias.report.cores == 7


def test_report_has_what_a_reader_wants(axpy):
    axpy(sample((4096,), "float32"), sample((4096,), "float32"))
    report = axpy.report
    assert report.op == "Axpy" and report.soc.startswith("Ascend") and report.ok
    assert report.cores == 16 and report.modelled_cycles > 0 and report.modelled_us > 0
    assert report.pipes["MTE2"].bytes == 2 * 4096 * 4 and report.pipes["MTE3"].bytes == 4096 * 4
    assert report.pipes["V"].instructions >= 32
    assert report.ub_peak == 6 * 1024
    assert {"xQueue_", "yQueue_", "zQueue_"} <= {buffer["name"] for buffer in report.ub_map}
    assert "Axpy" in report.summary() and "modelled" in report.summary()
    assert all(buffer["name"] in report.summary() for buffer in report.ub_map) and "1,024 x 2" in report.summary()


@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16], ids=str)
def test_numpy_in_numpy_out(scale_bias, dtype):
    x = np.arange(24, dtype=np.float32).reshape(4, 6).astype(dtype)
    y = scale_bias(x=x, scale=2.0)
    assert isinstance(y, np.ndarray) and y.dtype == x.dtype
    np.testing.assert_array_equal(y.astype(np.float32), 2 * x.astype(np.float32))


def test_strided_inputs_and_given_output(axpy):
    wide = sample((6, 20), "float32")
    x, y = wide[:, ::2], wide.t()[:10].t()
    room = torch.zeros(6, 30)
    z = axpy(x, y, alpha=1.0, out=room[:, 5:15])
    assert z.data_ptr() == room[:, 5:15].data_ptr()
    torch.testing.assert_close(room[:, 5:15], x + y)
    assert room[:, :5].abs().sum() == 0 and room[:, 15:].abs().sum() == 0


def test_inputs_stay_as_they_are(axpy):
    x, y = sample((100,), "float32", 1), sample((100,), "float32", 2)
    before = x.clone(), y.clone()
    axpy(x, y)
    assert torch.equal(x, before[0]) and torch.equal(y, before[1])


def test_empty_call_launches_nothing(axpy):
    z = axpy(torch.empty(0, 4), torch.empty(0, 4))
    assert z.shape == (0, 4) and axpy.calls == [] and axpy.report is None


def test_results_do_not_depend_on_threads_or_seed(axpy):
    x, y = sample((5000,), "float16", 1), sample((5000,), "float16", 2)
    want = axpy(x, y)
    for changes in ({"host_threads": 1}, {"adversarial_seed": 7}, {"checks": False}):
        assert torch.equal(axpy.with_options(**changes)(x, y), want), changes


X32, X16 = torch.ones(4), torch.ones(4, dtype=torch.float16)
REFUSED = [
    (TypeError, "y is missing", lambda op: op(X32)),
    (TypeError, "takes 2 tensors, got 3", lambda op: op(X32, X32, X32)),
    (TypeError, "no 'alhpa'; it takes x, y, alpha", lambda op: op(X32, X32, alhpa=1.0)),
    (TypeError, "x was given twice", lambda op: op(X32, X32, x=X32)),
    (TypeError, "x must be a torch tensor or a NumPy array, got list", lambda op: op([1.0], X32)),
    (TypeError, "cannot be mixed", lambda op: op(X32, X32.numpy())),
    (TypeError, "supported are x float32, y float32; x float16, y float16", lambda op: op(X32, X16)),
    (TypeError, "alpha must be float, got 'a'", lambda op: op(X32, X32, alpha="a")),
    (TypeError, "alpha must be float, got True", lambda op: op(X32, X32, alpha=True)),
    (ValueError, "x is on meta", lambda op: op(X32.to("meta"), X32)),
    (ValueError, r"out z must be \[4\] float32, got \[5\] float32", lambda op: op(X32, X32, out=torch.empty(5))),
    (TypeError, "out must give 1 arrays", lambda op: op(X32, X32, out=[X32, X32])),
    (TypeError, "no output 'q'", lambda op: op(X32, X32, out={"q": X32})),
    (TypeError, "'chekcs' is no option; options are 'checks'", lambda op: op.with_options(chekcs=False)),
]


@pytest.mark.parametrize("kind, text, call", REFUSED, ids=[text for _, text, _ in REFUSED])
def test_wrong_arguments_name_what_is_accepted(axpy, kind, text, call):
    with pytest.raises(kind, match=text):
        call(axpy)


def test_required_attribute_is_asked_for(scale_bias):
    with pytest.raises(TypeError, match=r"attribute scale \(float\) has no default"):
        scale_bias(X32)


def test_host_code_refusal_is_a_kernel_error(scale_bias):
    with pytest.raises(custom_ops.KernelError) as caught:
        scale_bias(torch.ones(1, 5000), scale=1.0)
    assert caught.value.op == "ScaleBias" and caught.value.rule == "host"
    assert "tiling on Ascend" in str(caught.value)
    assert str(caught.value).endswith("(the function returned GRAPH_FAILED and logged nothing)")


def test_package_layout(axpy):
    arch = "regbase" if "950" in axpy.options.soc else "membase"
    files = {str(p.relative_to(axpy.package)) for p in axpy.package.rglob("*") if p.is_file()}
    assert files == {"op_host/libcust_opmaster.so", "op_api/lib/libcust_opapi.so", "op_api/include/aclnn_axpy.h",
                     f"kernel/{arch}/axpy_0.so", f"kernel/{arch}/axpy_1.so", "op_info.json"}
    assert json.loads((axpy.package / "op_info.json").read_text())[0]["type"] == "Axpy"


def test_generated_header_is_c(axpy, tmp_path):
    from custom_ops.sim import compiler

    header = axpy.package / "op_api/include/aclnn_axpy.h"
    assert ("aclnnAxpyGetWorkspaceSize(\n    const aclTensor* x,\n    const aclTensor* y,\n    double alphaOptional,\n"
            "    const aclTensor* z,\n    uint64_t* workspaceSize") in header.read_text()
    includes = [f"-I{directory}" for directory in (header.parent, *compiler.API_INCLUDES)]
    program = '#include "aclnn_axpy.h"\nint main(void) { return aclnnAxpy(0, 0, 0, 0); }\n'
    subprocess.run([*compiler.find().command, "-x", "c", "-std=c11", "-fsyntax-only", "-Wall", "-Werror", *includes, "-"],
                   input=program, text=True, check=True)
    library = ctypes.CDLL(str(axpy.package / "op_api/lib/libcust_opapi.so"))
    assert library.aclnnAxpy and library.aclnnAxpyGetWorkspaceSize


# --- cache ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CUSTOM_OPS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def units():
    return {p.name for p in (cache.root() / "units").glob("*.so")}


def test_cache_is_by_content(fresh_cache, tmp_path):
    folder = tmp_path / "op"
    shutil.copytree(OPS / "axpy", folder)
    first = custom_ops.sim.build(folder)
    built = units()
    custom_ops.sim.build(folder)
    assert units() == built
    kernel = folder / "op_kernel" / "axpy.cpp"
    kernel.write_text(kernel.read_text().replace("Add(z, z, y", "Sub(z, z, y"))
    changed = custom_ops.sim.build(folder)
    assert len(units() - built) == 2, "both dtype columns of the kernel, and nothing else"
    x = torch.ones(8)
    assert changed(x, x, alpha=3.0)[0] == 2 and first(x, x, alpha=3.0)[0] == 4
    cache.clear()
    assert units() == set()


def test_concurrent_builds_share_the_work(fresh_cache):
    script = f"import custom_ops; print(custom_ops.sim.build({str(OPS / 'axpy')!r}).package)"
    runs = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=os.environ.copy())
            for _ in range(2)]
    paths = {run.communicate()[0] for run in runs}
    assert len(paths) == 1 and all(run.returncode == 0 for run in runs)
    assert not list(fresh_cache.rglob("tmp-*"))


# --- errors of a build ------------------------------------------------------------------------------------------------------


def edited(tmp_path, file, old, new):
    folder = tmp_path / "op"
    shutil.copytree(OPS / "axpy", folder)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    return folder


@pytest.mark.parametrize("name, said", [("Mulss", "; nearest: Muls, "), ("SoftmaxFlashV9", "\n"),
                                        ("InitConstValue", ": of the cube, LoadData, Mmad, Fixpipe and Matmul")], ids=["near", "far", "cube"])
def test_unmodelled_api_is_named(tmp_path, name, said):
    folder = edited(tmp_path, "op_kernel/axpy.cpp", "Muls(z,", f"{name}(z,")
    with pytest.raises(custom_ops.BuildError) as caught:
        custom_ops.sim.build(folder)
    text = str(caught.value)
    assert f"{name} is not modelled by the simulator{said}" in text
    assert text.count("APIs modelled for membase: ") == 1 and "DataCopyPad" in text.split("APIs modelled for")[1]
    assert caught.value.unmodelled == [name]
    assert caught.value.errors[0].file == "op_kernel/axpy.cpp"
    line = [i for i, row in enumerate((folder / "op_kernel/axpy.cpp").read_text().splitlines(), 1) if name in row]
    assert caught.value.errors[0].line == line[0]


def test_unmodelled_header_is_named(tmp_path):
    folder = edited(tmp_path, "op_kernel/axpy.cpp", '#include "kernel_operator.h"', '#include "lib/fft_intf.h"')
    with pytest.raises(custom_ops.BuildError) as caught:
        custom_ops.sim.build(folder)
    assert 'header "lib/fft_intf.h" is not modelled by the simulator; modelled are: ' in str(caught.value)
    assert "kernel_operator.h" in str(caught.value)


def test_host_error_is_shown(tmp_path):
    folder = edited(tmp_path, "op_host/axpy.cpp", "ge::DT_FLOAT ?", "ge::DT_FLOATY ?")
    with pytest.raises(custom_ops.BuildError, match=r"op_host/axpy.cpp:\d+: .*DT_FLOATY"):
        custom_ops.sim.build(folder)


def test_missing_soc_config(tmp_path):
    with pytest.raises(custom_ops.BuildError, match="no AddConfig for ascend910_93 in the OpDef, configured are Axpy: ascend910b, ascend950"):
        custom_ops.sim.build(OPS / "axpy", soc="ascend910_93")


def test_refused_api_is_located_in_the_kernel(tmp_path):
    """APIs that the headers know only to refuse: the error stands where the kernel calls them."""
    folder = edited(tmp_path, "op_kernel/axpy.cpp", "Muls(z, x, T(tiling_.alpha), int32_t(count));", "SoftMax(z, x, count);")
    with pytest.raises(custom_ops.BuildError, match=r"op_kernel/axpy.cpp:\d+: SoftMax is not modelled") as caught:
        custom_ops.sim.build(folder)
    assert caught.value.unmodelled == ["SoftMax"] and "SetAtomicMax" in str(caught.value)


@pytest.mark.parametrize("name, sku", [("ascend910b", "Ascend910B3"), ("ASCEND950", "Ascend950"), ("ascend910_95", "Ascend950"),
                                       ("Ascend910B4-1", "Ascend910B4-1")])
def test_soc_names(name, sku):
    op = custom_ops.sim.build(OPS / "axpy", soc=name)
    op(torch.ones(8), torch.ones(8))
    assert op.report.soc == sku


def test_unknown_soc():
    with pytest.raises(ValueError, match="families are ascend910b, ascend910_93, ascend950; `custom-ops sim socs` lists all"):
        custom_ops.sim.build(OPS / "axpy", soc="ascend910c")


def test_folder_without_an_op(tmp_path):
    with pytest.raises(custom_ops.BuildError, match=r"is not an op folder .*: it has no op_host/ and op_kernel/$"):
        custom_ops.sim.build(tmp_path)


def test_missing_kernel_and_entry(tmp_path):
    folder = edited(tmp_path, "op_kernel/axpy.cpp", "void axpy(", "void axpi(")
    with pytest.raises(custom_ops.BuildError, match="no entry axpy"):
        custom_ops.sim.build(folder)
    (folder / "op_kernel/axpy.cpp").rename(folder / "op_kernel/other.cpp")
    with pytest.raises(custom_ops.BuildError, match="no kernel axpy.cpp under .*; found 'other.cpp'"):
        custom_ops.sim.build(folder)


def test_missing_compiler(monkeypatch, fresh_cache):
    from custom_ops.sim import compiler

    compiler.find.cache_clear()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(custom_ops.BuildError, match=r"no usable C\+\+ compiler \(no-such-compiler: not found\): install g\+\+"):
        custom_ops.sim.build(OPS / "axpy")
    compiler.find.cache_clear()


def test_import_is_light():
    script = ("import sys, custom_ops; heavy = {'click', 'rich', 'custom_ops.sim'} & set(sys.modules); "
              "assert not heavy, heavy; assert 'custom_ops_sim' not in open('/proc/self/maps').read()")
    subprocess.run([sys.executable, "-c", script], check=True)
