"""The op package of this project's operators for the simulated SoC, built as any other and found again by a look at the sources' times."""

from __future__ import annotations

import os
from pathlib import Path

from .. import _paths
from ..sim import cache, host, runtime

_SOURCES = ("op_host", "op_kernel", "sim/ascendc", "sim/host/include", "sim/opapi", "sim/core")


def find(soc: str) -> Path | None:
    """The package's folder if it was built before."""
    place = cache.root() / "npu" / _state(runtime.find_soc(soc)["family"])
    package = Path(place.read_text()) if place.is_file() else None
    return package if package and package.is_dir() else None


def own(soc: str) -> Path:
    """The package's folder. Building it the first time takes half a minute or more and is shown on stderr."""
    if found := find(soc):
        return found
    family = runtime.find_soc(soc)["family"]
    from ..sim import builder

    title = f"building its operators for the simulated {family} (kept in {cache.root()})"
    package = builder.build_package(_paths.SOURCE_ROOT, family, title=title).path
    place = cache.root() / "npu" / _state(family)
    place.parent.mkdir(parents=True, exist_ok=True)
    written = place.with_name(f"tmp-{place.name}-{os.getpid()}")
    written.write_text(str(package))
    os.replace(written, place)  # other processes may be reading it, or that of a package that was cleared
    return package


def _state(family: str) -> str:
    """Name for what the package is made of: sizes and times of the files stand for their contents."""
    root = _paths.SOURCE_ROOT
    files = [_paths.library("custom_ops_sim"), *Path(runtime.__file__).parent.glob("*.py")]
    files += [path for folder in _SOURCES for path in (root / folder).rglob("*") if path.suffix in (".h", ".cpp")]
    parts = [family, host.host_cpu(), os.environ.get("CXX", "")]
    for path in sorted(files):
        stat = path.stat()
        parts += [str(path), str(stat.st_size), str(stat.st_mtime_ns)]
    return f"package-{family}-{cache.key_of(parts)}"
