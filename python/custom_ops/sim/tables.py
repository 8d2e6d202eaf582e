"""run.summary(): the same rows through rich when it is installed, else as plain columns."""

from __future__ import annotations

import io

from .report import OpCall


def summary(calls: list[OpCall]) -> str:
    if not calls:
        return "no simulated calls"
    sections = [table(*columns) for columns in (_calls(calls), _pipes(calls), _plans(calls), _buffers(calls)) if columns[2]]
    return "\n".join(sections + [f"{call.text()}\n" for call in calls if call.findings])


def _calls(calls: list[OpCall]):
    rows = [[str(i), call.op, call.soc, str(call.cores), str(call.tiling_key), f"{call.ub_peak:,}",
             f"{call.hbm_bytes:,}", f"{call.l2_bytes:,}", f"{call.modelled_cycles:,.0f}", f"{call.modelled_us:,.2f}", str(len(call.findings))] for i, call in enumerate(calls)]
    return ("calls (modelled)", ["call", "op", "soc", "cores", "key", "UB peak B", "HBM B", "L2 B", "modelled cycles",
                                 "modelled us", "findings"], rows)


def _pipes(calls: list[OpCall]):
    rows = [[str(i), name, f"{use.instructions:,}", f"{use.bytes:,}", f"{use.busy_cycles:,.0f}",
             f"{use.busy_us:,.2f}", f"{100 * use.busiest_cycles / call.modelled_cycles:.0f} %" if call.modelled_cycles else ""]
            for i, call in enumerate(calls) for name, use in call.pipes.items() if use.instructions]
    return ("pipes, all cores (modelled)", ["call", "pipe", "instructions", "bytes", "modelled busy cycles",
                                            "busiest core us", "of the time"], rows)


def _plans(calls: list[OpCall]):
    rows = [[str(i), call.op, "  ".join(f"{k}={v}" for k, v in call.plan.items())]
            for i, call in enumerate(calls) if call.plan]
    return "tiling plans", ["call", "op", "plan"], rows


def _buffers(calls: list[OpCall]):
    rows = [[str(i), buffer["name"], buffer["position"],
             f"{buffer['memory']} [0x{buffer['address']:04x}, 0x{buffer['address'] + buffer['bytes']:04x})",
             f"{buffer['bytes'] // buffer['count']:,} x {buffer['count']}"]
            for i, call in enumerate(calls) for buffer in call.ub_map]
    return "UB map of core 0", ["call", "buffer", "position", "address", "bytes x count"], rows


def table(title: str, columns: list[str], rows: list[list[str]]) -> str:
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        return _plain(title, columns, rows)
    grid = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        numeric = all(row[i][:1].isdigit() or not row[i] for row in rows)
        grid.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(grid)
    return console.file.getvalue().rstrip() + "\n"


def _plain(title: str, columns: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(r[i]) for r in [columns, *rows]) for i in range(len(columns))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
             for row in [columns, *rows]]
    return "\n".join([title, *lines]) + "\n"
