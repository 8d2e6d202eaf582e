"""What is being built, on stderr and only once it has taken a second: a bar where that is a terminal, else at most one line."""

from __future__ import annotations

import sys
import threading

_PATIENCE = 1.0  # seconds


class Progress:
    """A build of `expect`ed files that become done(); a context manager.

    Args:
        title:   what is being done: "building the operators for the simulated ascend950".
        enabled: True: show it. False: do not. None: on a terminal.
        line:    with None, say the title in a line where stderr is no terminal.
    """

    def __init__(self, title: str, enabled: bool | None = None, line: bool = False):
        self.title, self._terminal = title, sys.stderr.isatty()
        self._shown = (self._terminal or line) if enabled is None else enabled
        self._lock = threading.Lock()
        self._expected = self._done = 0
        self._label = ""
        self._bar = self._task = self._timer = None

    def __enter__(self) -> Progress:
        if self._shown:
            self._timer = threading.Timer(_PATIENCE, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer.join()
        if self._bar:
            self._bar.stop()

    def expect(self, files: int) -> None:
        with self._lock:
            self._expected += files
            self._draw()

    def done(self, label: str) -> None:
        with self._lock:
            self._done += 1
            self._label = label
            self._draw()

    def _show(self) -> None:
        with self._lock:
            if self._terminal and (bar := _bar()):
                self._bar, self._task = bar, bar.add_task(self.title, total=None, label="")
                self._draw()
                bar.start()
            else:
                print(f"custom_ops: {self.title}", file=sys.stderr, flush=True)

    def _draw(self) -> None:
        if self._bar:
            self._bar.update(self._task, total=self._expected or None, completed=self._done, label=self._label)


def _bar():
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    except ImportError:
        return None
    return Progress(SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), MofNCompleteColumn(),
                    TimeElapsedColumn(), TextColumn("{task.fields[label]}", markup=False), console=Console(stderr=True), transient=True)
