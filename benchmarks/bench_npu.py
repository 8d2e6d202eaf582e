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
PHASES = ("call", "kernel", "caller", "synchronize")
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


def microseconds(*phases) -> tuple[float, ...]:
    """Of each function, called one after the other: the median of a round. A stall of one call is none of the others'."""
    taken = [[] for _ in phases]
    for _ in range(CALLS):
        for phase, times in zip(phases, taken, strict=True):
            start = time.perf_counter()
            phase()
            times.append(time.perf_counter() - start)
    return tuple(statistics.median(times) * 1e6 for times in taken)


class Kernel:
    """The two aclnn functions of an operator's package on the CPU's memory: there is no stream, the calling thread runs the kernel."""

    def __init__(self, op: str, handles):
        from custom_ops import _paths
        from custom_ops.sim import arrays, builder

        call = call_of(op)[1]
        self.library = ctypes.CDLL(str(builder.build_package(_paths.SOURCE_ROOT, "ascend910b").opapi))
        self.first_phase = getattr(self.library, f"aclnn{call.op_type}GetWorkspaceSize")
        self.second_phase = getattr(self.library, f"aclnn{call.op_type}")
        self.memory = {name: arrays.view(tensor, name) for name, tensor in {**call.inputs, **call.outputs}.items()}
        pointers = {name: ctypes.c_void_p(handles.tensor(view)) for name, view in self.memory.items()}
        attributes = [ctypes.c_double(v) if isinstance(v, float) else ctypes.c_int64(v) for v in call.attributes.values()]
        self.bytes, self.executor, self.workspace = ctypes.c_uint64(), ctypes.c_void_p(), None
        self.arguments = [*map(pointers.get, call.inputs), *attributes, *map(pointers.get, call.outputs), ctypes.byref(self.bytes),
                          ctypes.byref(self.executor)]

    def prepare(self) -> None:
        assert self.first_phase(*self.arguments) == 0
        if self.bytes.value and self.workspace is None:
            self.workspace = ctypes.create_string_buffer(self.bytes.value)

    def run(self) -> None:
        assert self.second_phase(self.workspace, self.bytes, self.executor, None) == 0


def shut_others_out(priority: int) -> None:
    """Real-time priority for this process, but not for torch_npu's release thread: its pauses are too short to happen there, and it would
    keep a processor for itself."""
    for thread in Path("/proc/self/task").iterdir():
        if (thread / "comm").read_text() != "release_thread\n":
            os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(priority))


def measure_calls(priority: int = 0) -> dict:
    """Under the launcher: rounds of the torch operator and of its kernel by turns, so that whatever slows the machine slows both."""
    import torch

    import custom_ops
    from custom_ops.sim import runtime

    runtime.apply(runtime.Options())  # checks are on, as on the streams
    figures = {}
    with runtime.Handles() as handles:
        for op in OPS:
            kernel = Kernel(op, handles)
            arguments = {name: tensor.npu() for name, tensor in call_of(op)[0].items()}
            function = getattr(custom_ops, op)

            def waiting():
                function(**arguments)
                torch.npu.synchronize()

            phases = ((waiting,), (kernel.prepare, kernel.run), (lambda: function(**arguments), torch.npu.synchronize), (torch.npu.synchronize,))
            figures[op] = {name: [] for name in PHASES}
            for step in (step for functions in phases for step in functions):  # starts the threads, touches the pages
                step()
            if priority:
                shut_others_out(priority)
            for index in range(ROUNDS):  # forwards and backwards: each has each other one before it
                for name, functions in list(zip(PHASES, phases, strict=True))[:: 1 if index % 2 else -1]:
                    figures[op][name].append(microseconds(*functions))
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


def call_times(priority: int = 0) -> Table:
    table = Table("operator", "call and wait", "its kernel", "above the kernel", "its 10 % to 90 %", "of that: first phase",
                  "synchronize alone", "caller's share", title="measured us per call at T = 1, d = 16, checks on; medians of rounds")
    measured = json.loads(python(__file__, "--calls", "--priority", priority, launcher=True).stdout.splitlines()[-1])
    for op, rounds in measured.items():
        call, (first, kernel), caller, synchronize = (list(zip(*rounds[name], strict=True)) for name in PHASES)
        above = [one - other for one, other in zip(call[0], kernel, strict=True)]
        tenths = statistics.quantiles(above, n=10)
        shown = [f"{statistics.median(times):.0f}" for times in (call[0], kernel, above, first, synchronize[0], caller[0])]
        table.add_row(op, *shown[:3], f"{tenths[0]:.0f} to {tenths[-1]:.0f}", *shown[3:])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--priority", type=int, default=0, help="real-time priority of the calls, 1 to 99: other programs stand still")
    parser.add_argument("--launches", type=int, default=10_000, help="of the soak test; 0 leaves it out")
    # runpy (run.py) hands on its own arguments; only this file's are meant.
    options = parser.parse_args(sys.argv[1:] if Path(sys.argv[0]).name == Path(__file__).name else [])
    if options.calls:
        print(json.dumps(measure_calls(options.priority)))
        return
    console = Console(width=150)
    if importlib.util.find_spec("torch_npu") is None:
        console.print("torch-npu is not installed: pip install 'custom_ops[npu]'")
        return
    console.print(import_times())
    console.print(call_times(options.priority))
    if options.launches:
        console.print(python(ROOT / "tests" / "npu" / "soak.py", "--launches", str(options.launches), launcher=True).stdout, end="")


if __name__ == "__main__":
    main()
