"""custom-ops on the command line: what it prints and its exit codes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import custom_ops as package
from custom_ops.cli_commands import main

OPS = Path(__file__).parent / "ops"
FILL = """
#include "kernel_operator.h"
using namespace AscendC;
struct Plan { uint32_t count; float value; };
extern "C" __global__ __aicore__ void fill(GM_ADDR y, GM_ADDR tiling) {
    GET_TILING_DATA_WITH_STRUCT(Plan, plan, tiling);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, plan.count * sizeof(float));
    LocalTensor<float> row = buffer.Get<float>();
    Duplicate(row, plan.value, int32_t(plan.count));
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    GlobalTensor<float> yGm;
    yGm.SetGlobalBuffer((__gm__ float*)y);
    DataCopy(yGm, row, plan.count);
}
"""


def custom_ops(*arguments, code=0):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("command", [[], ["sim"], *(["sim", c] for c in ["build", "run", "launch", "socs", "rules", "apis", "cache"])],
                         ids=" ".join)
def test_help_teaches(command):
    text = custom_ops(*command, "--help")
    assert "Usage:" in text
    if command[1:] and command[1] in ("build", "run", "launch", "apis"):
        assert "Examples:" in text


def test_build_prints_package_and_signature():
    text = custom_ops("sim", "build", OPS / "axpy")
    assert Path(text.splitlines()[0]).is_dir()
    assert "Axpy(x: float32|float16, y: float32|float16, *, alpha: float = 2.0) -> z" in text


def test_build_for_several_socs():
    lines = custom_ops("sim", "build", OPS / "axpy", "--soc", "ascend910b,ascend950").splitlines()
    assert [line.split(":")[0] for line in lines] == ["ascend910b"] * 2 + ["ascend950"] * 2
    text = custom_ops("sim", "build", OPS / "axpy", "--soc", "ascend910b,nosuch", code=2)
    assert "soc 'nosuch' is not known" in text and "Axpy(" not in text


def test_output_for_several_socs_has_what_any_of_them_has(tmp_path):
    folder, output = tmp_path / "ops", tmp_path / "package"
    for op in ("axpy", "meet"):
        shutil.copytree(OPS / op, folder, dirs_exist_ok=True)
    meet = folder / "op_host" / "meet.cpp"
    meet.write_text(meet.read_text().replace('{"ascend910b", "ascend910_93", "ascend950"}', '{"ascend950"}'))
    custom_ops("sim", "build", folder, "--soc", "ascend950,ascend910b", "--output", output)  # the last one lacks Meet
    assert {op["type"] for op in json.loads((output / "op_info.json").read_text())} == {"Axpy", "Meet"}
    api = (output / "op_api" / "lib" / "libcust_opapi.so").read_bytes()
    assert b"aclnnAxpyGetWorkspaceSize" in api and b"aclnnMeetGetWorkspaceSize" in api
    assert {p.name for p in (output / "op_api" / "include").iterdir()} == {"aclnn_axpy.h", "aclnn_meet.h"}
    assert list((output / "kernel" / "membase").glob("axpy_*.so")) and not list((output / "kernel" / "membase").glob("meet_*.so"))
    assert list((output / "kernel" / "regbase").glob("axpy_*.so")) and list((output / "kernel" / "regbase").glob("meet_*.so"))


def test_version():
    assert custom_ops("--version").split()[-1] == package.__version__


def test_without_click(tmp_path):
    script = ("import sys; sys.modules['click'] = None; sys.argv = ['custom-ops', 'sim', 'socs']; "
              "from custom_ops.cli import main; main()")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "pip install click" in done.stderr


def test_run_saves_output_and_trace(tmp_path):
    x = np.arange(96, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    text = custom_ops("sim", "run", OPS / "axpy", "--soc", "ascend950", "--input", f"x={tmp_path / 'x.npy'}", "--input",
                      "y=ones:96", "--attr", "alpha=0.5", "--out", f"z={tmp_path / 'z.npy'}", "--trace", tmp_path / "new" / "t.json")
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), 0.5 * x + 1)
    assert "modelled" in text and "z [96] float32" in text and "total=96" in text
    assert f"trace: {tmp_path / 'new' / 't.json'} (open at ui.perfetto.dev)" in text
    assert json.loads((tmp_path / "new" / "t.json").read_text())["traceEvents"]


def test_run_bfloat16(tmp_path):
    custom_ops("sim", "run", OPS / "scale_bias", "--input", "x=arange:4,16:bfloat16", "--attr", "scale=2", "--out",
               f"y={tmp_path / 'y.npy'}", "--adversarial", 3)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy").ravel(), 2 * np.arange(64, dtype=np.float32))


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "fill.cpp"
    path.write_text(FILL)
    return path


def test_launch(kernel, tmp_path):
    custom_ops("sim", "launch", kernel, "fill", "--arg", "y=empty:32", "--output", "y", "--tiling", "uint32_t:32,float:1.5",
               "--out", f"y={tmp_path / 'y.npy'}")
    assert (np.load(tmp_path / "y.npy") == 1.5).all()


def test_findings_exit_1_with_the_report(kernel):
    kernel.write_text("\n".join(line for line in FILL.splitlines() if "Flag" not in line))
    text = custom_ops("sim", "launch", kernel, "fill", "--arg", "y=empty:32", "--tiling", "uint32_t:32,float:1.5", code=1)
    assert "hazard" in text and "fill.cpp:" in text and "V" in text and "MTE3" in text
    custom_ops("sim", "launch", kernel, "fill", "--arg", "y=empty:32", "--tiling", "uint32_t:32,float:1.5", "--ignore", "hazard")


WRONG = [
    (["sim", "apis", "["], "'[' is no regular expression"),
    (["sim", "apis", "DataCopyPat"], "no API matches 'DataCopyPat'; nearest: DataCopyPad, "),
    (["sim", "apis", "zzz"], "no API matches 'zzz'; `custom-ops sim apis` lists all"),
    (["sim", "build", "/nowhere"], "does not exist"),
    (["sim", "build", OPS / "axpy", "--soc", "ascend1"], "soc 'ascend1' is not known; families are ascend910b, "),
    (["sim", "build", "/nowhere", "--soc", "ascend910b,ascend1"], "does not exist"),
    (["sim", "run", OPS / "axpy", "--input", "x=none.npy"], "--input x: cannot read none.npy: No such file or directory"),
    (["sim", "launch", __file__, "f", "--tiling", "@none.bin"], "--tiling: cannot read none.bin: No such file or directory"),
    (["sim", "run", OPS / "axpy", "--trace", f"{__file__}/t.json"], "t.json: cannot make the folder"),
    (["sim", "run", OPS / "axpy", "--input", "x=ones:4"], "y is missing"),
    (["sim", "run", OPS / "axpy", "--input", "x"], "must be NAME=VALUE"),
    (["sim", "run", OPS / "axpy", "--input", "x=ones:4,q", "--input", "y=ones:4"], "the shape must be sizes"),
    *((["sim", "run", OPS / "axpy", "--input", f"x=randn:{sizes}", "--input", "y=ones:4"],
       f"--input x: 'randn:{sizes}': the shape must be sizes like 16,4,4096, got '{sizes}'") for sizes in ("-1,4,64", "")),
    *((["sim", "run", OPS / "axpy", "--input", f"x=randn:{sizes}", "--input", "y=ones:4"],
       f"a tensor of {sizes} does not fit in the memory") for sizes in ("999999999,99999,9999", "4,99999999999999999999")),
    (["sim", "run", OPS / "axpy", "--input", "x=ones:4:floaty", "--input", "y=ones:4"], "dtype 'floaty' is not known"),
    (["sim", "run", OPS / "axpy", "--input", "x=x.txt"], "must be file.npy"),
    (["sim", "run", OPS / "axpy", "--input", "x=ones:4", "--input", "y=ones:4", "--out", "q=q.npy"], "no output 'q'; there are 'z'"),
]


@pytest.mark.parametrize("arguments, text", WRONG, ids=[text for _, text in WRONG])
def test_wrong_usage_exits_2(arguments, text):
    assert text in custom_ops(*arguments, code=2)


def test_build_error_exits_2(kernel):
    kernel.write_text(FILL.replace("Duplicate(", "Dupplicate("))
    text = custom_ops("sim", "launch", kernel, "fill", "--arg", "y=empty:32", "--tiling", "uint32_t:32,float:1.5", code=2)
    assert "Dupplicate is not modelled by the simulator; nearest: Duplicate\n" in text and "fill.cpp:11: " in text


def test_lists():
    assert "Ascend910B3" in custom_ops("sim", "socs")
    assert {"name", "ubBytes"} <= set(json.loads(custom_ops("sim", "socs", "--json"))[0])
    assert "uninitialized-read" in custom_ops("sim", "rules")
    apis = custom_ops("sim", "apis", "^DataCopy")
    assert "DataCopyPad" in apis and "Muls" not in apis
    everything = custom_ops("sim", "apis")
    listed = everything.split()
    assert "Matmul::SetTensorA" in listed and "Matmul::IterateAll" in listed and "TQue::EnQue" in listed   # inherited, own, inherited
    assert "Matmul::SetQuantVector" not in listed and "BiasType" not in listed                             # refused by name, no API
    assert not any(internal in everything for internal in ("regimpl", "detail", "::Bind", "::Slots", "AsOperand"))
    assert "MicroAPI::" in custom_ops("sim", "apis", "--arch", "regbase") and "MicroAPI::" not in custom_ops("sim", "apis", "--arch", "membase")


def test_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CUSTOM_OPS_CACHE_DIR", str(tmp_path))
    (tmp_path / "units").mkdir()
    (tmp_path / "units" / "a.so").write_bytes(b"1" * 2**20)
    text = custom_ops("sim", "cache")
    assert str(tmp_path) in text and "1 entries" in text and "1.0 MiB" in text
    assert "0 entries" in custom_ops("sim", "cache", "--clear")
