"""What surrounds a Python process with an NPU in it: CANN's libraries, or the simulator's stand-ins, and the variables that name them.

The stand-ins are loaded by full path before torch is: the dynamic loader then takes them for what libtorch_npu.so is linked to, and
for what it opens by name later. Child processes find the same through LD_LIBRARY_PATH.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from .. import _backend, _paths

#: Holds the stand-ins.
STAND_INS = _paths.LIBRARY_DIR / "cann"
RUNTIME = "libascendcl.so"

_CANN_HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
_CANN_FOLDERS = ("lib64", "runtime/lib64", "x86_64-linux/lib64", "aarch64-linux/lib64")


@dataclass(frozen=True)
class Settings:
    """The simulated NPU. `None` leaves what the environment says, or the default."""

    soc: str | None = None        # family or SKU; default ascend910b
    devices: int | None = None    # default 1
    memory: str | None = None     # of each device, "8GB"; default: the chip's
    checks: bool | None = None    # operand and ordering checks; default on
    trace: bool | None = None     # keep the timelines of launches; default off

    def variables(self) -> dict[str, str]:
        values = {"SOC": self.soc, "DEVICES": self.devices, "MEMORY": self.memory, "CHECKS": self.checks, "TRACE": self.trace}
        return {f"CUSTOM_OPS_NPU_{name}": str(int(value) if isinstance(value, bool) else value)
                for name, value in values.items() if value is not None}


def soc_name() -> str:
    return os.environ.get("CUSTOM_OPS_NPU_SOC") or "ascend910b"


def memory_bytes(text: str) -> int:
    """8GB, 512MB, 2GiB or a number of bytes; the units are powers of 1024, as in device memory sizes."""
    from ..sim import runtime

    size = runtime.library().SimMemorySize(text.encode())
    if not size:
        raise ValueError(f"memory must be a size like 8GB, 512MB or a number of bytes, got {text!r}")
    return size


@dataclass(frozen=True)
class Cann:
    """A CANN that is not the simulator."""

    folder: Path   # of its libascendcl.so
    source: str    # the variable that led there
    loads: bool    # the dynamic loader finds it: in LD_LIBRARY_PATH

    def set_env(self) -> str:
        """The command that lets programs find it: its own script where it has one."""
        home = next((Path(os.environ[name]) for name in _CANN_HOMES if os.environ.get(name)), self.folder.parent)
        script = next((p / "set_env.sh" for p in (home, *home.parents[:1]) if (p / "set_env.sh").is_file()), None)
        return f"source {script}" if script else f"export LD_LIBRARY_PATH={self.folder}:$LD_LIBRARY_PATH"


def find_cann() -> Cann | None:
    """The CANN that torch_npu would be loaded with. The first runtime in LD_LIBRARY_PATH decides, as it does for the loader."""
    for folder in _library_path():
        if (folder / RUNTIME).exists():
            return None if is_stand_in(folder) else Cann(folder, "LD_LIBRARY_PATH", True)
    for name in _CANN_HOMES:
        for folder in _CANN_FOLDERS if os.environ.get(name) else ():
            found = Path(os.environ[name]) / folder
            if (found / RUNTIME).exists() and not is_stand_in(found):
                return Cann(found, name, False)
    folder = loaded_from(RUNTIME)
    return Cann(folder, "the loader's own folders", True) if folder and not is_stand_in(folder) else None


def loaded_from(library: str) -> Path | None:
    """Folder from which the dynamic loader takes, or took, a library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return None
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("/" + library):
            return Path(line[line.index("/"):]).parent
    return None


def is_stand_in(folder: Path) -> bool:
    """Stand-ins lie beside the simulator they belong to, also those of another installation of this package."""
    return (folder.resolve().parent / "libcustom_ops_sim.so").exists()


def simulated() -> bool:
    """This process, or the one that started it, was given the simulated NPU."""
    return any(is_stand_in(folder) and (folder / RUNTIME).exists() for folder in _library_path())


def export(settings: Settings, package: Path) -> None:
    """Sets the variables that torch_npu, the stand-ins and child processes read. `package` goes behind the user's own ones."""
    from . import toolkit

    os.environ.update(settings.variables())
    _prepend("LD_LIBRARY_PATH", STAND_INS)
    home = toolkit.folder()
    os.environ["ASCEND_HOME_PATH"] = os.environ["ASCEND_TOOLKIT_HOME"] = str(home)
    os.environ["ASCEND_OPP_PATH"] = str(home / "opp")
    before = os.environ.get("CUSTOM_OPS_NPU_PACKAGE")  # of the process that started this one, perhaps for another chip
    paths = [p for p in os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(":") if p and p not in (before, str(package))]
    os.environ["ASCEND_CUSTOM_OPP_PATH"] = ":".join([*paths, str(package)])
    os.environ["CUSTOM_OPS_NPU_PACKAGE"] = str(package)


def preload() -> None:
    """Loads the stand-ins, those that need torch's libraries as soon as torch_npu is there."""
    waiting = sorted(STAND_INS.glob("*.so"))
    if not (STAND_INS / RUNTIME).is_file():
        raise FileNotFoundError(f"{STAND_INS / RUNTIME} is missing: {_paths.REBUILD}")
    waiting = _load(waiting)
    lacking = [path.name for path in waiting if path.name in _backend.LINKED]
    if lacking:
        ctypes.CDLL(str(STAND_INS / lacking[0]), mode=ctypes.RTLD_GLOBAL)  # raises with the loader's reason
    if waiting:
        _backend.after_import("torch_npu", lambda: [ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL) for path in waiting])


def _load(paths: list[Path]) -> list[Path]:
    """Loads in an order in which each finds what it is linked to; returns those that cannot be loaded yet."""
    while True:
        left = [path for path in paths if not _loads(path)]
        if not left or len(left) == len(paths):
            return left
        paths = left


def _loads(path: Path) -> bool:
    try:
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True


def _library_path() -> list[Path]:
    return [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]


def _prepend(name: str, value: Path) -> None:
    others = [v for v in os.environ.get(name, "").split(":") if v and v != str(value)]
    os.environ[name] = ":".join([str(value), *others])
