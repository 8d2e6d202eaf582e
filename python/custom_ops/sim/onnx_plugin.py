"""ONNX parser plugins of an op folder (framework/onnx/*.cpp), built against the stand-in of the toolkit.

    <package>/framework/onnx/libcust_onnx_parsers.so
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from .. import _paths
from ..errors import BuildError
from . import compiler
from .compiler import Unit

PLACE = Path("framework") / "onnx"
LIBRARY = "libcust_onnx_parsers.so"
_SYSTEM = (Path("/usr/include"), Path("/usr/local/include"))


def sources(root: Path) -> list[Path]:
    return sorted((Path(root) / PLACE).glob("*.cpp"))


def json_headers() -> Path | None:
    """Folder of nlohmann/json.hpp: of the package nlohmann-json, else of the system; None when there is none."""
    spec = importlib.util.find_spec("nlohmann_json")
    packaged = [Path(place) / "include" for place in spec.submodule_search_locations] if spec else []
    return next((folder for folder in (*packaged, *_SYSTEM) if (folder / "nlohmann" / "json.hpp").is_file()), None)


def build(root: Path, jobs: int | None = None) -> Path:
    """The library, from the cache if it was built before. Raises BuildError."""
    root = Path(root).resolve()
    headers = json_headers()
    if headers is None:
        raise BuildError("parser plugins need nlohmann/json.hpp: pip install 'custom_ops[onnx-parser]', or Debian's nlohmann-json3-dev")
    includes = (compiler.ROOT / "sim" / "ge" / "include", *compiler.HOST_INCLUDES, root / "op_host", headers)
    units = [Unit(str(path.relative_to(root)), root, source=path, includes=includes, shared=False) for path in sources(root)]
    stand_ins = _paths.LIBRARY_DIR / "cann"
    link = (f"-L{stand_ins}", f"-Wl,-rpath,{stand_ins}", "-lregister", "-lgraph")
    return compiler.compile_unit(Unit(LIBRARY, root, objects=tuple(compiler.compile_all(units, jobs)), link=link))[0]


def export(root: Path, package: Path, jobs: int | None = None) -> Path:
    """Builds the plugins into a package; the library in it."""
    target = Path(package) / PLACE / LIBRARY
    built = build(root, jobs)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(built, target)
    return target
