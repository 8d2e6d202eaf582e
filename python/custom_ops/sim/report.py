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
    """One pipe, summed over the cores."""

    instructions: int = 0
    bytes: int = 0
    busy_cycles: float = 0.0        # modelled, all cores
    max_busy_cycles: float = 0.0    # modelled, the busiest core


@dataclass
class OpCall:
    """One kernel launch. Cycles and times are modelled, never measured."""

    op: str                         # "HcPreSinkhorn"
    soc: str                        # SKU, "Ascend910B3"
    cores: int                      # cores used (block dim)
    launch: int                     # running number in this process
    tiling_key: int
    tiling: dict[str, Any]          # plan: field -> value; empty when the launch had no tiling data
    tiling_bytes: bytes
    workspace_bytes: int
    ub_map: list[dict]              # buffers of core 0: name, position, memory, address, bytes, count
    ub_peak: int                    # bytes
    pipes: dict[str, PipeUse]
    cycles: float                   # modelled, slowest core
    seconds: float                  # modelled, with the fixed cost of a launch
    findings: list[dict]            # rule, core, pipe, instruction, operand, message, repair, file, line, accesses, text
    per_core: list[dict]            # as the simulator reports it
    trace_events: list[dict] = field(default_factory=list, repr=False)

    @property
    def ok(self) -> bool:
        return not self.findings

    def text(self) -> str:
        """The findings as text; empty when there are none."""
        return "\n\n".join(describe(finding, self) for finding in self.findings)

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
    def seconds(self) -> float:
        """Modelled time of all launches, one after the other."""
        return sum(call.seconds for call in self.calls)

    def save_trace(self, path) -> Path:
        """Chrome trace (process = core, thread = pipe) for ui.perfetto.dev or chrome://tracing; needs trace=True."""
        return _save(self.calls, path)

    def summary(self) -> str:
        """Tables of the calls, pipes and tiling plans."""
        from . import tables

        return tables.summary(self.calls)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Run on {self.options.soc}: {len(self.calls)} calls, {len(self.findings)} findings>"


def _save(calls: list[OpCall], path) -> Path:
    from . import trace

    return trace.save(calls, path)


def from_json(raw: dict, decode: Callable[[int, bytes], dict] | None = None) -> OpCall:
    """An OpCall of one element of SimTakeReports. `decode(tiling key, bytes)` names the tiling fields."""
    data = bytes.fromhex(raw.get("tilingData", ""))
    key = int(raw.get("tilingKey", 0))
    pipes = {name: PipeUse() for name in PIPES}
    for core in raw["cores"]:
        for name, use in core["pipes"].items():
            total = pipes.setdefault(name, PipeUse())
            total.instructions += use["instructions"]
            total.bytes += use["bytes"]
            total.busy_cycles += use["busyCycles"]
            total.max_busy_cycles = max(total.max_busy_cycles, use["busyCycles"])
    return OpCall(
        op=raw["op"], soc=raw["soc"], cores=raw["blockDim"], launch=raw["launch"], tiling_key=key,
        tiling=decode(key, data) if decode and data else {}, tiling_bytes=data,
        workspace_bytes=int(raw.get("workspaceBytes", 0)), ub_map=raw["buffers"], ub_peak=raw["ubPeakBytes"],
        pipes={name: use for name, use in pipes.items() if use.instructions}, cycles=raw["modelledCycles"],
        seconds=raw["modelledSeconds"], findings=raw["findings"], per_core=raw["cores"])


def describe(finding: dict, call: OpCall) -> str:
    """One finding as text: what, both accesses, the missing order, the shortest repair."""
    if finding.get("text"):
        return finding["text"].rstrip()
    head = f"{finding['rule']}: {finding['message']}"
    lines = [f"{head:<57}{call.op}  {call.soc}  core {finding['core']}  launch {call.launch}"]
    for access in finding.get("accesses", ()):
        span = f"{access['memory']} [0x{access['begin']:04x}, 0x{access['end']:04x})"
        left = f"  {access['pipe']:<5}{access['verb']:<7}{access['what']}  {span}"
        lines.append(f"{left:<57}{access['file']}:{access['line']}  {access['instruction']}")
    if not finding.get("accesses") and finding.get("file"):
        where = f"{finding['file']}:{finding['line']}"
        operand = f"{finding['instruction']} {finding['operand']}".strip()
        lines.append(f"  {finding['pipe']:<5}{operand:<50}{where}")
    if finding.get("repair"):
        lines.append(f"  {finding['repair']}")
    return "\n".join(lines)
