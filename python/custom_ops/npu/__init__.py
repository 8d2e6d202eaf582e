"""An NPU for plain PyTorch code: the machine's own where CANN is, else the simulated one, for the unmodified torch_npu and torchair.

    python -m custom_ops.npu script.py args...        custom-ops run script.py args...
    pytest -p custom_ops.npu tests

In a notebook, before anything imports torch:

    import custom_ops.npu
    custom_ops.npu.start("ascend910b")
"""

from __future__ import annotations

import sys

if "pytest" in sys.modules:  # which takes the hooks of its plugins from the module it was given
    from .pytest_plugin import (  # noqa: F401
        pytest_addoption,
        pytest_configure,
        pytest_load_initial_conftests,
        pytest_report_header,
        pytest_sessionfinish,
        pytest_terminal_summary,
        pytest_testnodedown,
    )


def start(soc: str | None = None, *, devices: int | None = None, memory: str | None = None, checks: bool | None = None,
          simulate: bool = False) -> None:
    """Gives this process an NPU and imports torch with it.

    Args:
        soc:      family or SKU of the simulated chip, default ascend910b.
        devices:  how many of it, default 1.
        memory:   device memory of each, as "8GB"; default: the chip's.
        checks:   False: compute only, no operand and ordering checks.
        simulate: use the simulated NPU although CANN is there. With CANN the other arguments are ignored.
    Raises: RuntimeError or ValueError with what to do.
    """
    from types import SimpleNamespace

    import custom_ops

    from . import session

    session.start(SimpleNamespace(soc=soc, devices=devices, memory=memory, no_checks=checks is False, report=False, trace=None,
                                  simulate=simulate))
    custom_ops.hc_pre_inv_rms  # noqa: B018  (the operators waited for torch)
