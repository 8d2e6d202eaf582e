"""Files that appear under their names complete or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from .errors import OnboardingError


@contextlib.contextmanager
def atomic(output: str | Path, overwrite: bool = False) -> Iterator[Callable[[str], Path]]:
    """A function from a suffix ("" for `output` itself) to a file beside `output` to write to.

    When the block ends, the files take the names output + suffix, all or none; when it raises, they are removed. A file that exists is
    an OnboardingError without `overwrite`, and so is one that cannot be written.
    """
    require_free(output, overwrite)
    output, parts = Path(output), {}

    def part(suffix: str = "") -> Path:
        target = output.with_name(output.name + suffix)
        require_free(target, overwrite)
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".partial", dir=target.parent)
        os.close(handle)
        parts[target] = Path(name)
        return parts[target]

    try:
        yield part
        for path in parts.values():
            path.chmod(0o666 & ~_umask())  # mkstemp's files are the owner's alone
            _sync(path)
        _take_names(parts, overwrite)
    except OSError as error:
        of = f"{error.filename}: " if error.filename and Path(error.filename) not in parts.values() else ""
        raise OnboardingError(f"{output}: cannot be written: {of}{error.strerror or error}") from error
    finally:
        for path in parts.values():
            path.unlink(missing_ok=True)


def require_free(output: str | Path, overwrite: bool = False) -> None:
    """Raises OnboardingError where `output` is no name that a file can take; before long work, too."""
    if not os.fspath(output):
        raise OnboardingError("the name of the file to write is empty")
    output = Path(output)
    if output.is_dir():
        raise OnboardingError(f"{output}: is a directory, give the name of a file")
    if not output.parent.is_dir():
        raise OnboardingError(f"{output}: no such folder {output.parent}")
    if not os.access(output.parent, os.W_OK | os.X_OK):
        raise OnboardingError(f"{output}: cannot be written: no permission in {output.parent}")
    if os.path.lexists(output) and not overwrite:
        raise OnboardingError(f"{output}: exists already; choose another name or overwrite it (--force)")


def _take_names(parts: dict[Path, Path], overwrite: bool) -> None:
    taken = []
    try:
        for target, path in reversed(parts.items()):  # the first file last: it refers to the others
            if overwrite:
                os.replace(path, target)
                continue
            try:
                os.link(path, target)  # unlike a rename it fails where somebody wrote the same name meanwhile
            except FileExistsError:
                require_free(target)
                raise
            taken.append(target)
    except BaseException:
        for target in taken:
            target.unlink()
        raise


def _sync(path: Path) -> None:
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
