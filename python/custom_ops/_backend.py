"""Can torch be imported here? Where torch-npu is installed, `import torch` loads it, and it links to CANN's libraries: without these
or the simulator's stand-ins importing torch fails, and cannot be tried again in that process.

What this package answers without torch (its command line, the launcher, `import custom_ops`) must keep working there, so the part
that needs torch then waits for its first use.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec

#: What libtorch_npu.so is linked to.
LINKED = ("libascendcl.so", "libacl_op_compiler.so", "libgraph.so", "libge_runner.so", "libhccl.so")

WHAT_TO_DO = """\
  on the simulated NPU     custom-ops run SCRIPT, python -m custom_ops.npu SCRIPT or pytest -p custom_ops.npu
  on an NPU                source <CANN>/set_env.sh first
  on the CPU, without NPU  TORCH_DEVICE_BACKEND_AUTOLOAD=0 python SCRIPT
`custom-ops doctor` shows what was found."""


def torch_waits() -> bool:
    """Whether the part of the package that needs torch is left for later."""
    return "torch" not in sys.modules and (_own_command() or obstacle() is not None)


def obstacle() -> str | None:
    """Why torch cannot be imported here, and what to do."""
    if "torch" in sys.modules:
        return None
    if "torch._C" in sys.modules and importlib.util.find_spec("torch_npu"):
        return f"importing torch has failed in this process, and cannot be tried again there: it takes a new one.\n{WHAT_TO_DO}"
    missing = missing_library()
    return missing and (f"torch cannot be imported here: torch-npu is installed, so `import torch` loads it, and its {missing} is not found "
                        f"(no CANN, no simulated NPU).\n{WHAT_TO_DO}")


def missing_library() -> str | None:
    """The first library that keeps torch_npu, and with it torch, from being imported."""
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1" or importlib.util.find_spec("torch_npu") is None:
        return None
    return next((name for name in LINKED if not _loads(name)), None)


def after_import(name: str, action: Callable[[], None]) -> None:
    """Calls `action` once module `name`, not imported yet, has been."""
    sys.meta_path.insert(0, _AfterImport(name, action))


class _AfterImport:
    """A finder that answers for one module, with the spec that the finders behind it give. Looking alone (importlib.util.find_spec,
    as missing_library does) is no import: it stays until the module is executed."""

    def __init__(self, name: str, action: Callable[[], None]):
        self.name, self.action = name, action

    def find_spec(self, name, path=None, target=None):
        finders = list(sys.meta_path)
        if name != self.name or self not in finders:
            return None
        behind = finders[finders.index(self) + 1:]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in behind)), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                waiting = self in sys.meta_path
                if waiting:
                    sys.meta_path.remove(self)
                execute(module)
                if waiting:
                    self.action()

            spec.loader.exec_module = exec_module
        return spec


def wait(names: Sequence[str], action: Callable[[], None]) -> None:
    """Calls `action` before any of the modules `names` is imported; when that raises, so does the import."""
    sys.meta_path.insert(0, _Waiting(names, action))


def wait_no_longer() -> None:
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Waiting)]


class _Waiting:
    """Finder and loader. `action` may import the module itself, so this import's own module object makes way."""

    def __init__(self, names: Sequence[str], action: Callable[[], None]):
        self.names, self.action = names, action

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name in self.names else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        del sys.modules[module.__name__]
        self.action()
        importlib.import_module(module.__name__)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _own_command() -> bool:
    """This process is `custom-ops` or `python -m custom_ops...`: the user's code, if any, comes later."""
    main = os.path.basename(sys.argv[0]) if sys.argv else ""
    if main == "-m":  # what sys.argv[0] says while the module is looked for
        return any(option[:1] == "-" and option[-1:] == "m" and module.startswith("custom_ops.")
                   for option, module in zip(sys.orig_argv[1:], sys.orig_argv[2:]))
    return main in ("custom-ops", "custom-ops.exe")
