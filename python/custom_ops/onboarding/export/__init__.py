"""Model directories into the files of other runtimes: `custom-ops onboard export MODEL_DIR --format gguf -o FILE`.

A format is one entry of FORMATS: the module with `write(source, path, *, report, **options)`. It is imported when it is asked for.
Whatever a format writes appears under its name only when it is complete.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import OnboardingError, nearest, some
from ..output import atomic
from ..progress import Progress, untold
from ..source import Source, open_source

#: format -> module of this package
FORMATS = {"gguf": ".gguf.write", "mnn": ".mnn.write", "onnx": ".onnx.write"}


@dataclass
class Report:
    """What an export did. tensors, nbytes: of what was written. notes: one sentence for each thing the reader of the file should know.
    progress: called with the tensors written so far and their number. beside: for formats of several files, a suffix of the output's name
    to the path to write to. output: the name that the file will have."""

    output: Path
    beside: Callable[[str], Path]
    tensors: int = 0
    nbytes: int = 0
    notes: list[str] = field(default_factory=list)
    progress: Progress = untold

    def left_out(self, tensors: list[str]) -> None:
        """Notes the tensors of the checkpoint that the text model does not use, if there are any."""
        if tensors:
            self.notes.append(f"{len(tensors)} tensors that the text model does not use are left out: {some(tensors)}")


def export(model_dir: str | Path, format: str, output: str | Path, *, map_dirs: Iterable[str | Path] = (), overwrite: bool = False,
           progress: Progress = untold, **options) -> Report:
    """Writes the model of a directory in another format.

    progress: called with the tensors written so far and their number.
    options:  of the format; see its module's `write`.
    Raises OnboardingError where the format is not known, the output exists (without `overwrite`) or cannot be written, the model is
    damaged, or it does something that the format cannot say. Nothing is then left at `output`.
    """
    if format not in FORMATS:
        raise OnboardingError(f"format {format!r} is not known; {nearest(format, FORMATS)}")
    writer = importlib.import_module(FORMATS[format], __name__)
    with atomic(output, overwrite) as beside:
        report = Report(Path(output), beside, progress=progress)
        path, source = beside(""), open_source(model_dir, map_dirs)
        _require_other(report.output, source)
        writer.write(source, path, report=report, **options)
        report.nbytes += path.stat().st_size
    return report


def _require_other(output: Path, source: Source) -> None:
    """With `overwrite` too, the model itself is never written over."""
    for file in (source.checkpoint.folder / "config.json", *source.checkpoint.files):
        if output.exists() and output.samefile(file):
            raise OnboardingError(f"{output}: is a file of the model that is read; choose another name")
