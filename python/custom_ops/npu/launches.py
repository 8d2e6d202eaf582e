"""What the kernels launched on the simulated NPU's streams reported: a table per operator and a Chrome trace."""

from __future__ import annotations

import atexit
import ctypes
import json
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..sim import runtime, tables
from . import environment

_INTERVAL = 0.2  # seconds between two looks: the runtime keeps 4096 reports
_SHOWN = 5       # findings printed in full


@dataclass
class OpLaunches:
    """All launches of one operator."""

    op: str
    count: int = 0
    cores: set[int] = field(default_factory=set)
    modelled_us: float = 0.0
    findings: int = 0
    texts: list[str] = field(default_factory=list)  # of the first findings

    def row(self) -> list[str]:
        cores = f"{min(self.cores)}-{max(self.cores)}" if len(self.cores) > 1 else str(*self.cores)
        return [self.op, f"{self.count:,}", cores, f"{self.modelled_us:,.2f}", f"{self.modelled_us / self.count:,.2f}", str(self.findings)]

    def to_dict(self) -> dict:
        return {**vars(self), "cores": sorted(self.cores)}


class Collector:
    """Takes the reports of this process's streams as long as it lives."""

    def __init__(self, report: bool, trace: str | None):
        self.report, self.trace = report, trace
        self.ops: dict[str, OpLaunches] = {}
        self.lost = 0  # reports that the runtime let go before they were taken
        self._events: list[dict] = []
        self._runtime = _runtime()
        self._lock = threading.Lock()
        threading.Thread(target=self._poll, name="custom_ops.npu reports", daemon=True).start()

    def finish_at_exit(self) -> None:
        """Registered before the user's code runs: handlers run in reverse order, so torch_npu has shut down by then."""
        def finish() -> None:
            self.take()
            if self.report:
                print(self.table(), file=sys.stderr, flush=True)
            if self.trace:
                self.save(self.trace)

        atexit.register(finish)

    def take(self) -> None:
        with self._lock:
            for raw in _json(self._runtime, "SimNpuTakeReports"):
                self._add(raw)
            self.lost += self._runtime.SimNpuTakeLost()
            if self.trace:
                self._events += _json(self._runtime, "SimNpuTakeTrace")

    def merge(self, rows: Iterable[dict]) -> None:
        """Adds what another process collected (to_dict)."""
        for row in rows:
            ours = self.ops.setdefault(row["op"], OpLaunches(row["op"]))
            ours.count += row["count"]
            ours.cores |= set(row["cores"])
            ours.modelled_us += row["modelled_us"]
            ours.findings += row["findings"]
            ours.texts += row["texts"]

    def table(self) -> str:
        if not self.ops:
            return "no kernel was launched on the simulated NPU"
        rows = [use.row() for use in sorted(self.ops.values(), key=lambda use: -use.modelled_us)]
        texts = [text for use in self.ops.values() for text in use.texts][:_SHOWN]
        if self.lost:
            texts.append(f"{self.lost:,} more launches are not in the table: reports of 4096 are kept until they are taken, "
                         f"every {_INTERVAL} s")
        return "\n\n".join([tables.table(f"launches on the simulated {environment.soc_name()} (modelled)", [
            "op", "launches", "cores", "modelled us", "us per launch", "findings"], rows), *texts])

    def save(self, path: str) -> None:
        try:
            with open(path, "w") as file:
                json.dump({"traceEvents": self._events, "displayTimeUnit": "ns", "otherData": {"times": "modelled"}}, file)
        except OSError as error:
            print(f"custom_ops.npu: cannot write {path}: {error.strerror}", file=sys.stderr)

    def _add(self, raw: dict) -> None:
        use = self.ops.setdefault(raw["op"], OpLaunches(raw["op"]))
        use.count += 1
        use.cores.add(raw["blockDim"])
        use.modelled_us += raw["modelledSeconds"] * 1e6
        use.findings += len(raw["findings"])
        use.texts += [finding["text"].rstrip() for finding in raw["findings"]][:_SHOWN - len(use.texts)] if len(use.texts) < _SHOWN else []

    def _poll(self) -> None:
        while True:
            time.sleep(_INTERVAL)
            self.take()


def _runtime() -> ctypes.CDLL:
    library = ctypes.CDLL(str(environment.STAND_INS / environment.RUNTIME))
    for name in ("SimNpuTakeReports", "SimNpuTakeTrace"):
        getattr(library, name).restype = ctypes.c_void_p
    library.SimNpuTakeLost.restype = ctypes.c_uint64
    return library


def _json(library: ctypes.CDLL, function: str) -> Sequence[dict]:
    return json.loads(runtime.text(getattr(library, function)()))
