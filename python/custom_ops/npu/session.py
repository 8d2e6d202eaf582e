"""Starts the NPU of this process: before torch is imported, from the options of the launcher or of pytest."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

from .. import _backend
from . import environment, packages
from .environment import Settings

if TYPE_CHECKING:
    from . import launches

INSTALL = "pip install 'custom_ops[npu]' (torch-npu 2.13.0 for torch 2.13.0)"


def start(options, report_at_exit: bool = True) -> launches.Collector | None:
    """`options` as __main__.add_options names them. Returns what collects the launches, if they are asked for.

    Raises RuntimeError or ValueError with what to do.
    """
    if importlib.util.find_spec("torch_npu") is None:
        raise RuntimeError(f"torch-npu is not installed: {INSTALL}")
    if not options.simulate and (cann := environment.find_cann()):
        _use(cann, options)
        return None
    if "torch_npu" in sys.modules and not environment.simulated():
        raise RuntimeError("torch_npu is imported already, the simulated NPU must be there before")
    wanted = settings(options)
    if "torch_npu" in sys.modules and wanted.soc not in (None, environment.soc_name()):
        raise RuntimeError(f"this process has its NPU already, an {environment.soc_name()}: {wanted.soc} needs a new process")
    simulate(wanted)
    if not (options.report or options.trace):
        return None
    from . import launches

    collector = launches.Collector(options.report, options.trace)
    if report_at_exit:
        collector.finish_at_exit()
    return collector


def settings(options) -> Settings:
    if options.devices is not None and not 1 <= options.devices <= 64:
        raise ValueError(f"devices must be 1 to 64, got {options.devices}")
    memory = None if options.memory is None else str(environment.memory_bytes(options.memory))
    return Settings(options.soc, options.devices, memory, False if options.no_checks else None,
                    True if options.trace else None)


def simulate(wanted: Settings) -> None:
    """Puts the simulated NPU into this process and its children."""
    package = packages.own(wanted.soc or environment.soc_name())  # refuses unknown chips
    environment.export(wanted, package)
    environment.preload()


def _use(cann: environment.Cann, options) -> None:
    if not cann.loads:
        raise RuntimeError(f"CANN is in {cann.folder} (by {cann.source}), which the dynamic loader does not search: {cann.set_env()}")
    ignored = [name for name in ("soc", "devices", "memory", "no_checks", "report", "trace") if getattr(options, name)]
    if ignored:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in ignored)
        print(f"custom_ops.npu: CANN in {cann.folder} is used; {names}: of the simulated NPU only (--simulate)", file=sys.stderr)


def forget_imports() -> None:
    """Lets the user's own `import custom_ops` be the first one, if it waited for torch until now."""
    if "torch" not in sys.modules:
        _backend.wait_no_longer()
        for name in [n for n in sys.modules if n == "custom_ops" or n.startswith("custom_ops.")]:
            del sys.modules[name]
