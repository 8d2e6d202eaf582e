"""The launcher with the real torch_npu: what surrounds a user's script. How it runs scripts is in tests/test_npu_launcher.py."""

import json
import os
import subprocess
import sys

import pytest
from custom_ops import _paths, sim
from custom_ops.npu import library

USE = "import torch, custom_ops\nx = torch.ones(3, 4, 64)\nprint(custom_ops.hc_pre_inv_rms(x.npu()).cpu().sum().item())\n"


def python(*arguments, cwd=None, **variables) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=900, cwd=cwd,
                          env={**os.environ, **variables})


def said(done: subprocess.CompletedProcess) -> str:
    """What stands on stderr besides torch_npu's own remarks: on every chip before the 950, and where its queue waits long on a busy host."""
    remarks = "require processing for 32 padding size", "Dequeue: taskqueue is empty"
    return "".join(line for line in done.stderr.splitlines(keepends=True) if not any(remark in line for remark in remarks))


def test_nothing_is_printed_and_no_file_is_left(simulated, tmp_path):
    (tmp_path / "work").mkdir()
    cache = str(sim.cache_dir())
    done = python("-m", "custom_ops.npu", "-c", USE, cwd=tmp_path / "work", HOME=str(tmp_path), CUSTOM_OPS_CACHE_DIR=cache)
    assert (done.returncode, done.stdout, said(done)) == (0, "3.0\n", "")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_child_of_plain_python_has_the_npu():
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {USE!r}], check=True)"
    done = python("-m", "custom_ops.npu", "-c", code)
    assert done.stdout == "3.0\n", done.stderr


@pytest.mark.parametrize("imports", ["import torch, custom_ops, torch_npu", "import custom_ops, torch, torch_npu",
                                     "import torch_npu, torch, custom_ops", "import custom_ops, torch"])
@pytest.mark.parametrize("autoload", ["0", "1"])
def test_any_order_of_imports(imports, autoload):
    if autoload == "0" and "torch_npu" not in imports:
        imports += "\nimport torch_npu"
    done = python("-m", "custom_ops.npu", "-c", USE.replace("import torch, custom_ops", imports), TORCH_DEVICE_BACKEND_AUTOLOAD=autoload)
    assert done.stdout == "3.0\n", done.stderr


def test_start_in_a_notebook(simulated):
    """In a process that no launcher started: nothing leads it to the stand-ins but what start() loads."""
    code = "import custom_ops.npu\ncustom_ops.npu.start()\nimport torch\nprint((torch.ones(2).npu() + 1).cpu().sum().item())\n" + USE
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH" and "ASCEND" not in name}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900, env=environment)
    assert (done.returncode, done.stdout) == (0, "4.0\n3.0\n"), done.stderr


def test_another_chip_needs_another_process(simulated):
    code = "import torch, torch_npu, custom_ops.npu\nprint(torch.npu.is_available(), flush=True)\ncustom_ops.npu.start('ascend950')"
    done = python("-m", "custom_ops.npu", "--soc", "ascend910b", "-c", code)
    assert done.returncode == 1 and done.stdout.startswith("True\n")
    assert "this process has its NPU already, an ascend910b: ascend950 needs a new process" in done.stderr


def test_report_and_trace(simulated, tmp_path):
    done = python("-m", "custom_ops.npu", "--report", "--trace", "trace.json", "-c", USE + USE, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == "3.0\n3.0\n", done.stderr
    row = next(line.split() for line in done.stderr.splitlines() if "HcPreInvRms" in line)
    assert row[:3] == ["HcPreInvRms", "2", "3"] and row[-1] == "0"
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any(event["ph"] == "X" for event in events)


def traced(code, tmp_path):
    """Slices of the rows of npu:0, by the row's name, and of all launches' instructions, by number of the launch."""
    done = python("-m", "custom_ops.npu", "--trace", "trace.json", "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {(e["pid"], e["name"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    rows, launches = {}, {}
    for event in (e for e in events if e["ph"] == "X"):
        if event["pid"] >= 1000:
            launches.setdefault(event["pid"] // 1000, []).append(event)
        else:
            assert names[event["pid"], "process_name", event["tid"]] == "npu:0 (modelled)"
            rows.setdefault(names[event["pid"], "thread_name", event["tid"]], []).append(event)
    return rows, launches


def end(event) -> float:
    return event["ts"] + event["dur"]


def test_trace_has_a_row_for_each_stream(simulated, tmp_path):
    """Slices follow each other on a row; what waits for another stream begins when that is done; instructions lie in their launch."""
    rows, launches = traced("""
import torch, torch_npu, custom_ops
x = torch.ones(64, 4, 64).npu()
side, here = torch.npu.Stream(), torch.npu.current_stream()
custom_ops.hc_pre_inv_rms(x)
side.wait_stream(here)
with torch.npu.stream(side):
    y = custom_ops.hc_pre_inv_rms(x)
here.wait_stream(side)
z = x.clone()
torch.npu.synchronize()
z.cpu()
""", tmp_path)
    streams = {name: row for name, row in rows.items() if name.startswith("stream ")}
    kernels = [(name, slice) for name, row in streams.items() for slice in row if slice["name"] == "aclnnHcPreInvRms"]
    assert len(kernels) == 2 and len({name for name, _ in kernels}) == 2
    for row in streams.values():
        assert all(end(a) <= b["ts"] + 1e-6 for a, b in zip(row, row[1:]))
    first, second = sorted((slice for _, slice in kernels), key=lambda slice: slice["ts"])
    assert second["ts"] >= end(first) - 1e-6
    assert {"event record", "event wait"} <= {slice["name"] for row in streams.values() for slice in row}
    assert any("memcpy" in slice["name"] and slice["dur"] > 0 for row in rows.values() for slice in row)
    for kernel in (first, second):
        instructions = launches[kernel["args"]["launch"]]
        assert min(e["ts"] for e in instructions) >= kernel["ts"] and max(map(end, instructions)) <= end(kernel) + 1e-3


def test_trace_of_a_graph(simulated, tmp_path):
    """A replay is a slice with the captured tasks below it, those of another stream on a row beside it."""
    rows, _ = traced("""
import torch, torch_npu, custom_ops
x = torch.ones(64, 4, 64).npu()
torch.npu.synchronize()
side = torch.npu.Stream()
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    here = torch.npu.current_stream()
    side.wait_stream(here)
    with torch.npu.stream(side):
        custom_ops.hc_pre_inv_rms(x)
    custom_ops.hc_pre_inv_rms(x)
    here.wait_stream(side)
graph.replay()
torch.npu.synchronize()
""", tmp_path)
    name, replay = next((name, slice) for name, row in rows.items() for slice in row if slice["name"].startswith("model "))
    for row in (name, f"{name}, branch 1 of graphs"):
        kernel = next(slice for slice in rows[row] if slice["name"] == "aclnnHcPreInvRms")
        assert replay["ts"] <= kernel["ts"] and end(kernel) <= end(replay) + 1e-6


def test_report_says_what_is_not_in_it(simulated, tmp_path):
    """More launches than are kept between two looks."""
    done = python("-m", "custom_ops.npu", "--no-checks", "-c", """
import torch, torch_npu, custom_ops
from custom_ops.npu import launches
x = torch.ones(1, 1, 16).npu()
for _ in range(5000):
    custom_ops.hc_pre_inv_rms(x)
torch.npu.synchronize()
collector = launches.Collector(True, None)
collector.take()
print(collector.table())
""", cwd=tmp_path)
    assert "4,096" in done.stdout and "904 more launches are not in the table" in done.stdout, done.stdout + done.stderr


def test_report_of_a_script_that_fails(simulated, tmp_path):
    done = python("-m", "custom_ops.npu", "--report", "-c", USE + "raise SystemExit(5)", cwd=tmp_path)
    assert done.returncode == 5 and "HcPreInvRms" in done.stderr


def test_pytest_workers_report_together(simulated, tmp_path):
    (tmp_path / "test_use.py").write_text(f"import pytest\n@pytest.mark.parametrize('i', range(4))\ndef test(i):\n    exec({USE!r})\n")
    done = python("-m", "pytest", "-p", "custom_ops.npu", "--npu-report", "-n", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    row = next(line.split() for line in done.stdout.splitlines() if "HcPreInvRms" in line)
    assert row[1] == "4"


@pytest.fixture
def without_library(tmp_path_factory):
    """A folder of libraries as a wheel has it that was built without torch_npu."""
    folder = tmp_path_factory.mktemp("lib")
    for path in _paths.LIBRARY_DIR.iterdir():
        if "torch_npu" not in path.name:
            (folder / path.name).symlink_to(path)
    return folder


def test_operators_are_compiled_for_this_torch_npu(without_library, tmp_path):
    use = f"import os\nos.environ |= dict(CUSTOM_OPS_LIB_DIR={str(without_library)!r}, CUSTOM_OPS_CACHE_DIR={str(tmp_path)!r})\n{USE}"
    done = python("-m", "custom_ops.npu", "-c", use)
    assert done.stdout == "3.0\n" and f"for torch_npu {library.versions()[1]}" in done.stderr, done.stderr
    done = python("-m", "custom_ops.npu", "-c", use)
    assert (done.stdout, said(done)) == ("3.0\n", "")


def test_operators_that_cannot_be_compiled_fail_when_they_are_used(without_library, tmp_path):
    done = python("-m", "custom_ops.npu", "-c", f"""
import os
os.environ |= dict(CUSTOM_OPS_LIB_DIR={str(without_library)!r}, CUSTOM_OPS_CACHE_DIR={str(tmp_path)!r}, CXX="no-such-compiler")
import torch, custom_ops
print(custom_ops.hc_pre_inv_rms(torch.ones(2, 4, 8)).sum())
custom_ops.hc_pre_inv_rms(torch.ones(2, 4, 8).npu())
""")
    assert done.stdout.startswith("tensor(2.)\n") and "UserWarning: custom_ops: no operators on NPU tensors" in done.stderr
    assert "RuntimeError: custom_ops has no operators on NPU tensors in this process" in done.stderr
    assert done.stderr.count("no usable C++ compiler (no-such-compiler: not found)") == 2


def test_doctor_finds_everything(simulated):
    done = python("-m", "custom_ops.cli", "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0 and checks["run"]["state"] == "ok" and checks["run"]["details"]["op"], done.stdout
