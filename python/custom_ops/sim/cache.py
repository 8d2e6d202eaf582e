"""Content-addressed store of compiled units and op packages.

A key is a hash of everything that decides the bytes of the entry. Entries appear by atomic rename and never change, so
readers need no lock; a file lock per key keeps two builders from doing the same work twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

_KINDS = ("packages", "units", "sources", "npu", "toolkits")


def root() -> Path:
    """$CUSTOM_OPS_CACHE_DIR, else the user's cache directory of the platform."""
    if given := os.environ.get("CUSTOM_OPS_CACHE_DIR"):
        return Path(given).expanduser().resolve()
    if sys.platform == "darwin":
        base = _home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache")
    return base / "custom_ops"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # no HOME, and the user is in no list
        raise OSError("the home directory is not known: set HOME, or CUSTOM_OPS_CACHE_DIR to a folder for compiled kernels") from None


def key_of(parts: Iterable[str | bytes]) -> str:
    """Hash of a sequence; the lengths go in, so that ("ab", "c") and ("a", "bc") differ."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:32]


@contextlib.contextmanager
def _locked(path: Path):
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # released when the file closes, also if the process dies
        yield


def require_writable() -> None:
    """OSError that says which folder has to be, or what to do."""
    try:
        root().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root()):
            pass
    except OSError as error:
        raise OSError(f"the cache {root()} cannot be written ({error.strerror}): set CUSTOM_OPS_CACHE_DIR to a folder that can") from None


def obtain(kind: str, name: str, make: Callable[[Path], None]) -> tuple[Path, bool]:
    """Path of entry `name` ("<key>.so" or "<key>") of `kind`, and whether it was there already.

    make(path) writes the entry, a file or a directory, to a temporary path of the same file system. If it raises,
    nothing is stored. OSError says what to do about a cache that cannot be written.
    """
    home = root() / kind
    entry = home / name
    if entry.exists():
        return entry, True
    require_writable()
    with _locked(root() / "locks" / name):
        if entry.exists():
            return entry, True
        home.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix="tmp-", dir=home))
        try:
            make(scratch / name)
            os.replace(scratch / name, entry)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return entry, False


def contents() -> list[tuple[str, int, int]]:
    """(kind, entries, bytes) of what is stored."""
    found = []
    for kind in _KINDS:
        entries = [e for e in (root() / kind).glob("*") if not e.name.startswith("tmp-")]
        files = (f for e in entries for f in ([e] if e.is_file() else e.rglob("*")))
        found.append((kind, len(entries), sum(f.stat().st_size for f in files if f.is_file())))
    return found


def clear() -> None:
    """Removes every entry. Packages already loaded by running processes stay usable there."""
    for kind in (*_KINDS, "locks"):
        shutil.rmtree(root() / kind, ignore_errors=True)
