"""Model directories into the files of other runtimes: `custom-ops onboard export MODEL_DIR --format gguf -o FILE`.

A format is one entry of FORMATS: the module with `write(source, path, *, report, **options)`. It is imported when it is asked for.
Whatever a format writes appears under its name only when it is complete.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import OnboardingError, nearest
from ..source import open_source

#: format -> module of this package
FORMATS = {"gguf": ".gguf.write", "mnn": ".mnn.write", "onnx": ".onnx.write"}


@dataclass
class Report:
    """What an export did. tensors, nbytes: of what was written. notes: one sentence for each thing the reader of the file should know.
    progress: called with the tensors written so far and their number. output, overwrite: of the call, for formats of several files."""

    output: Path
    overwrite: bool = False
    tensors: int = 0
    nbytes: int = 0
    notes: list[str] = field(default_factory=list)
    progress: Callable[[int, int], None] = lambda done, of: None


def export(model_dir: str | Path, format: str, output: str | Path, *, map_dirs: Iterable[str | Path] = (), overwrite: bool = False,
           progress: Callable[[int, int], None] | None = None, **options) -> Report:
    """Writes the model of a directory in another format.

    options:  of the format; see its module's `write`.
    Raises OnboardingError where the format is not known, the output exists (without `overwrite`) or cannot be written, the model is
    damaged, or it does something that the format cannot say. Nothing is then left at `output`.
    """
    if format not in FORMATS:
        raise OnboardingError(f"format {format!r} is not known; {nearest(format, FORMATS)}")
    writer = importlib.import_module(FORMATS[format], __name__)
    report = Report(Path(output), overwrite, **({} if progress is None else {"progress": progress}))
    with atomic(output, overwrite) as path:
        writer.write(open_source(model_dir, map_dirs), path, report=report, **options)
        report.nbytes += path.stat().st_size
    return report


@contextlib.contextmanager
def atomic(output: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """A file beside `output` to write to, which takes its name when the block ends and is removed when the block raises."""
    output = Path(output)
    _check(output, overwrite)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{output.name[:100]}.", suffix=".partial", dir=output.parent)
    except OSError as error:
        raise OnboardingError(f"{output}: cannot be written: {error.strerror}") from None
    os.close(handle)
    path = Path(name)
    try:
        yield path
        path.chmod(0o666 & ~_umask())  # mkstemp's files are the owner's alone
        _sync(path)
        _take_name(path, output, overwrite)
    except OSError as error:
        raise OnboardingError(f"{output}: cannot be written: {error.strerror or error}") from error
    finally:
        path.unlink(missing_ok=True)


def _take_name(path: Path, output: Path, overwrite: bool) -> None:
    if overwrite:
        os.replace(path, output)
        return
    try:
        os.link(path, output)  # unlike a rename it fails where somebody wrote the same name meanwhile
    except FileExistsError:
        _check(output, overwrite)
        raise


def _check(output: Path, overwrite: bool) -> None:
    if output.is_dir():
        raise OnboardingError(f"{output}: is a directory, give the name of a file")
    if not output.parent.is_dir():
        raise OnboardingError(f"{output}: no such folder {output.parent}")
    if os.path.lexists(output) and not overwrite:
        raise OnboardingError(f"{output}: exists already; choose another name or overwrite it (--force)")


def _sync(path: Path) -> None:
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
