"""A folder for ASCEND_HOME_PATH: torch_npu and torchair look there for the parts of a CANN installation and complain, or stop, when
they are missing. It holds no version file, so that they say "not known" instead of a CANN version that is not there.
"""

from __future__ import annotations

from pathlib import Path

from ..sim import cache
from . import environment

#: Looked for by name in torch_npu's start-up check.
_PARTS = ("runtime", "compiler", "opp")

_README = """This is no CANN: it is the toolkit folder of the simulated NPU of custom_ops, made by `custom-ops run` or
`python -m custom_ops.npu`. lib64 are the simulator's libraries.
"""


def folder() -> Path:
    def make(home: Path) -> None:
        for part in _PARTS:
            (home / part).mkdir(parents=True)
        for place in ("lib64", "runtime/lib64"):
            (home / place).symlink_to(environment.STAND_INS)
        (home / "README").write_text(_README)

    return cache.obtain("toolkits", cache.key_of([str(environment.STAND_INS)]), make)[0]
