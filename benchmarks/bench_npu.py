"""The NPU path on the simulated device, measured: what the launcher adds to importing, what a call adds to its kernel, and the soak test.

Targets: importing torch, torch_npu and custom_ops under the launcher at most twice the time without; at T = 1 at most 100 us per call above
the simulated kernel itself; 10,000 launches from 4 threads without a wrong result, a hang or a growing process.
"""

import argparse
import ctypes
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
OPS = ("hc_pre_inv_rms", "hc_pre_sinkhorn", "hc_pre", "hc_post")
CALLS, ROUNDS, IMPORTS = 20, 100, 5
IMPORT = "import torch, torch_npu, custom_ops; custom_ops.hc_pre_inv_rms"


def call_of(op: str):
    """T = 1, d = 16: the kernel is as short as it gets. With the arguments of the torch operator and of the OpDef."""
    import torch

    from custom_ops.ops import BY_NAME

    x = torch.randn(1, 4, 16).bfloat16()
    mixing = {"hc_scale": torch.ones(3), "hc_base": torch.zeros(24)}
    arguments = {
        "hc_pre_inv_rms": {"x": x},
        "hc_pre_sinkhorn": {"mixes": torch.randn(1, 24), "rsqrt": torch.ones(1, 1), **mixing, "x": x},
        "hc_pre": {"x": x, "hc_fn": torch.randn(24, 64), **mixing},
        "hc_post": {"x": x[:, 0], "residual": x, "post": torch.ones(1, 4), "comb": torch.full((1, 4, 4), 0.25)},
    }[op]
    return arguments, BY_NAME[f"npu_{op}"].to_opdef(**arguments)


def microseconds(function, prepare=lambda: None) -> float:
    """Of one call: the best round's mean, which other work on the machine has disturbed least."""
    best = float("inf")
    for _ in range(ROUNDS):
        prepare()
        start = time.perf_counter()
        for _ in range(CALLS):
            function()
        best = min(best, (time.perf_counter() - start) / CALLS)
    return best * 1e6


def measure_npu() -> dict:
    """Under the launcher. `latency` waits after each call; `host` is the caller's share, with the device left behind."""
    import torch

    import custom_ops

    figures = {}
    for op in OPS:
        arguments = {name: tensor.npu() for name, tensor in call_of(op)[0].items()}
        function = getattr(custom_ops, op)

        def waiting():
            function(**arguments)
            torch.npu.synchronize()

        figures[op] = {"latency": microseconds(waiting), "host": microseconds(lambda: function(**arguments), torch.npu.synchronize),
                       "synchronize": microseconds(torch.npu.synchronize)}
    return figures


def measure_kernels() -> dict:
    """Without a runtime: the two aclnn functions of the same package, called on the CPU's memory by the same thread."""
    from custom_ops import _paths
    from custom_ops.sim import arrays, builder, runtime

    runtime.apply(runtime.Options())
    figures = {}
    for op in OPS:
        call = call_of(op)[1]
        package = builder.build_package(_paths.SOURCE_ROOT, "ascend910b")
        library = ctypes.CDLL(str(package.opapi))
        prepare = getattr(library, f"aclnn{call.op_type}GetWorkspaceSize")
        run = getattr(library, f"aclnn{call.op_type}")
        bytes_, executor, taken = ctypes.c_uint64(), ctypes.c_void_p(), {"prepare": [], "run": []}
        with runtime.Handles() as handles:
            tensors = {name: handles.tensor(arrays.view(t, name)) for name, t in {**call.inputs, **call.outputs}.items()}
            attributes = [ctypes.c_double(v) if isinstance(v, float) else ctypes.c_int64(v) for v in call.attributes.values()]
            pointers = {name: ctypes.c_void_p(tensor) for name, tensor in tensors.items()}
            ordered = [*map(pointers.get, call.inputs), *attributes, *map(pointers.get, call.outputs)]
            for _ in range(CALLS * ROUNDS):
                start = time.perf_counter()
                assert prepare(*ordered, ctypes.byref(bytes_), ctypes.byref(executor)) == 0
                taken["prepare"].append(time.perf_counter() - start)
                workspace = ctypes.create_string_buffer(max(bytes_.value, 1))
                start = time.perf_counter()
                assert run(workspace if bytes_.value else None, bytes_, executor, None) == 0
                taken["run"].append(time.perf_counter() - start)
        rounds = {phase: zip(*[iter(times)] * CALLS) for phase, times in taken.items()}
        figures[op] = {phase: min(map(statistics.mean, means)) * 1e6 for phase, means in rounds.items()}
    return figures


def python(*arguments, launcher: bool, **environment) -> subprocess.CompletedProcess:
    command = [sys.executable, *(["-m", "custom_ops.npu", "--simulate"] if launcher else []), *map(str, arguments)]
    done = subprocess.run(command, text=True, capture_output=True, env={**os.environ, **environment}, timeout=3600)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def seconds(*arguments, launcher: bool, **environment) -> float:
    start = time.perf_counter()
    python(*arguments, launcher=launcher, **environment)
    return time.perf_counter() - start


def import_times() -> Table:
    given = json.loads(python("-c", "import json, os; print(json.dumps(dict(os.environ)))", launcher=True).stdout)
    ready = {name: value for name, value in given.items() if os.environ.get(name) != value}  # what the launcher sets
    rounds = [(seconds("-c", IMPORT, launcher=True), seconds("-c", IMPORT, launcher=False, **ready),
               seconds("-c", "import torch, custom_ops", launcher=False, TORCH_DEVICE_BACKEND_AUTOLOAD="0")) for _ in range(IMPORTS)]
    table = Table("process", "measured s", "launcher / this", title="measured: whole processes that only import")
    for index, name in enumerate(("torch, torch_npu, custom_ops under the launcher", "the same, with the environment set beforehand",
                                  "torch, custom_ops")):
        ratio = statistics.median(row[0] / row[index] for row in rounds)
        table.add_row(name, f"{statistics.median(row[index] for row in rounds):.2f}", f"{ratio:.2f}" if index else "")
    return table


def call_times() -> Table:
    npu = json.loads(python(__file__, "--measure", "npu", launcher=True).stdout)
    kernels = json.loads(python(__file__, "--measure", "kernels", launcher=False, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout)
    table = Table("operator", "call and wait", "its kernel", "above the kernel", "of that: first phase", "synchronize alone",
                  "caller's share", title="measured us per call at T = 1, d = 16, checks on")
    for op in OPS:
        figures, kernel = npu[op], kernels[op]
        row = (figures["latency"], kernel["run"], figures["latency"] - kernel["run"], kernel["prepare"], figures["synchronize"],
               figures["host"])
        table.add_row(op, *(f"{value:.0f}" for value in row))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", choices=["npu", "kernels"], help=argparse.SUPPRESS)
    parser.add_argument("--launches", type=int, default=10_000, help="of the soak test; 0 leaves it out")
    # runpy (run.py) hands on its own arguments; only this file's are meant.
    options = parser.parse_args(sys.argv[1:] if Path(sys.argv[0]).name == Path(__file__).name else [])
    if options.measure:
        print(json.dumps(measure_npu() if options.measure == "npu" else measure_kernels()))
        return
    console = Console(width=150)
    if importlib.util.find_spec("torch_npu") is None:
        console.print("torch-npu is not installed: pip install 'custom_ops[npu]'")
        return
    console.print(import_times())
    console.print(call_times())
    if options.launches:
        console.print(python(ROOT / "tests" / "npu" / "soak.py", "--launches", str(options.launches), launcher=True).stdout, end="")


if __name__ == "__main__":
    main()
