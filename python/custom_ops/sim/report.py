"""What a simulated launch did: OpCall (one launch) and Run (all launches of a simulate() block)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import KernelError

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")


@dataclass
class PipeUse:
    """One pipe of a launch. Cycles and times are modelled."""

    instructions: int = 0           # all cores
    bytes: int = 0                  # all cores
    busy_cycles: float = 0.0        # all cores
    busiest_cycles: float = 0.0     # of the core whose pipe was busy longest
    busy_us: float = 0.0            # the same in microseconds


@dataclass
class OpCall:
    """One kernel launch. Cycles and times are modelled, never measured."""

    op: str                         # "HcPreSinkhorn"
    soc: str                        # SKU, "Ascend910B3"
    cores: int                      # cores used (block dim)
    launch: int                     # running number in this process
    tiling_key: int
    plan: dict[str, Any]            # tiling data: field -> value; empty when the launch had none
    tiling_bytes: bytes
    workspace_bytes: int
    ub_map: list[dict]              # buffers of core 0: name, position, memory, address, bytes, count
    ub_peak: int                    # bytes
    pipes: dict[str, PipeUse]       # every pipe by name
    modelled_cycles: float          # slowest core
    modelled_seconds: float         # with the fixed cost of a launch
    hbm_bytes: int                  # modelled: that HBM delivered or took
    l2_bytes: int                   # modelled: moved between cores and L2 without HBM
    findings: list[dict]            # rule, core, pipe, instruction, operand, message, repair, file, line, accesses, text
    per_core: list[dict]            # as the simulator reports it
    trace_events: list[dict] = field(default_factory=list)

    def __repr__(self) -> str:
        return (f"<OpCall {self.op} on {self.soc}: {self.cores} cores, modelled {self.modelled_us:.2f} us, "
                f"{len(self.findings)} findings>")

    @property
    def modelled_us(self) -> float:
        return self.modelled_seconds * 1e6

    @property
    def ok(self) -> bool:
        return not self.findings

    def text(self) -> str:
        """The findings as text; empty when there are none."""
        return "\n\n".join(finding["text"].rstrip() for finding in self.findings)

    def error(self) -> KernelError | None:
        if not self.findings:
            return None
        first = self.findings[0]
        return KernelError(self.text(), op=self.op, soc=self.soc, core=first.get("core"), pipe=first.get("pipe", ""),
                           instruction=first.get("instruction", ""), operand=first.get("operand", ""),
                           file=first.get("file", ""), line=first.get("line", 0), rule=first.get("rule", ""),
                           message=first.get("message", ""), findings=self.findings, report=self)

    def save_trace(self, path) -> Path:
        return _save([self], path)

    def summary(self) -> str:
        from . import tables

        return tables.summary([self])


class Run:
    """Report of a simulate() block: grows while the block runs, also from several threads."""

    def __init__(self, options):
        self.options = options
        self.calls: list[OpCall] = []
        self._lock = threading.Lock()

    def add(self, call: OpCall) -> None:
        with self._lock:
            self.calls.append(call)

    @property
    def findings(self) -> list[dict]:
        return [finding for call in self.calls for finding in call.findings]

    @property
    def modelled_us(self) -> float:
        """All launches one after the other."""
        return sum(call.modelled_us for call in self.calls)

    def save_trace(self, path) -> Path:
        """Chrome trace (process = core, thread = pipe) for ui.perfetto.dev or chrome://tracing; needs trace=True."""
        return _save(self.calls, path)

    def summary(self) -> str:
        """Tables of the calls, pipes, tiling plans and UB maps, then the findings."""
        from . import tables

        return tables.summary(self.calls)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Run on {self.options.soc}: {len(self.calls)} calls, {len(self.findings)} findings>"


def _save(calls: list[OpCall], path) -> Path:
    from . import trace

    return trace.save(calls, path)


def from_json(raw: dict, clock_hz: float, decode: Callable[[int, bytes], dict] | None = None) -> OpCall:
    """An OpCall of one element of SimTakeReports. `decode(tiling key, bytes)` names the tiling fields."""
    data = bytes.fromhex(raw.get("tilingData", ""))
    key = int(raw.get("tilingKey", 0))
    pipes = {name: PipeUse() for name in PIPES}
    for core in raw["cores"]:
        for name, use in core["pipes"].items():
            total = pipes[name]
            total.instructions += use["instructions"]
            total.bytes += use["bytes"]
            total.busy_cycles += use["busyCycles"]
            total.busiest_cycles = max(total.busiest_cycles, use["busyCycles"])
    for use in pipes.values():
        use.busy_us = use.busiest_cycles / clock_hz * 1e6
    return OpCall(
        op=raw["op"], soc=raw["soc"], cores=raw["blockDim"], launch=raw["launch"], tiling_key=key,
        plan=decode(key, data) if decode and data else {}, tiling_bytes=data,
        workspace_bytes=int(raw.get("workspaceBytes", 0)), ub_map=raw["buffers"], ub_peak=raw["ubPeakBytes"], pipes=pipes,
        modelled_cycles=raw["modelledCycles"], modelled_seconds=raw["modelledSeconds"],
        hbm_bytes=raw["hbmBytes"], l2_bytes=raw["l2Bytes"], findings=raw["findings"],
        per_core=raw["cores"])
