"""python -m custom_ops.npu [options] script.py args... | -m module args... | -c code args...

Runs Python code with an NPU: the machine's own when CANN is there, else the simulated one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

_USAGE = """\
%(prog)s [options] script.py [args ...]
       %(prog)s [options] -m module [args ...]
       %(prog)s [options] -c code [args ...]"""

_EPILOG = """\
Everything behind the script belongs to it. The options are ignored where CANN is found: there the script runs on that machine's NPU.

  %(prog)s train.py --steps 3
  %(prog)s --soc ascend950 --devices 2 --memory 16GB --report -m my_package.bench"""


def main(argv: Sequence[str] | None = None, prog: str = "python -m custom_ops.npu") -> None:
    options, kind, target, arguments = parse(list(sys.argv[1:] if argv is None else argv), prog)
    from . import session
    from .runner import CannotRun, run

    try:
        session.start(options)
    except (RuntimeError, ValueError, OSError) as error:
        raise SystemExit(_error(f"{prog}: {error}", 2)) from None
    session.forget_imports()
    try:
        run(kind, target, arguments)
    except CannotRun as error:
        raise SystemExit(_error(f"{prog}: {error}", error.code)) from None


def parse(argv: list[str], prog: str) -> tuple[argparse.Namespace, str, str, list[str]]:
    """Options, what to run ("script", "module" or "code"), its name, its arguments."""
    parser = argparse.ArgumentParser(prog=prog, usage=_USAGE, epilog=_EPILOG % {"prog": prog}, allow_abbrev=False,
                                     description="Run Python code with an NPU: the machine's own when CANN is there, else the "
                                                 "simulated one.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser.add_argument)
    end, with_value = 0, {a.option_strings[0] for a in parser._actions if a.nargs is None and a.option_strings}
    while end < len(argv) and argv[end].startswith("-") and argv[end] != "-" and argv[end][:2] not in ("-m", "-c"):
        end += 2 if argv[end] in with_value else 1
    options = parser.parse_args(argv[:end])
    rest = argv[end:]
    if not rest:
        parser.error("nothing to run: give a script, -m module or -c code")
    if rest[0][:2] not in ("-m", "-c"):
        return options, "script", rest[0], rest[1:]
    kind = "module" if rest[0][1] == "m" else "code"
    joined = [rest[0][2:], *rest[1:]] if len(rest[0]) > 2 else rest[1:]
    if not joined:
        parser.error(f"argument expected for the {rest[0]} option")
    return options, kind, joined[0], joined[1:]


def add_options(add, prefix: str = "--", **common) -> None:
    """The options of the simulated NPU, to argparse or to pytest (prefix "--npu-")."""
    add(f"{prefix}soc", metavar="NAME", help="chip, by family or SKU; `custom-ops sim socs` lists them (ascend910b, an Ascend910B3)")
    add(f"{prefix}devices", metavar="N", type=int, help="how many of it (1)")
    add(f"{prefix}memory", metavar="SIZE", help="device memory of each, as 8GB (the chip's)")
    add(f"{prefix}no-checks", action="store_true", help="compute only: no operand and ordering checks, many times faster")
    add(f"{prefix}report", action="store_true", help="print the launches per operator at the end, with modelled times")
    add(f"{prefix}trace", metavar="FILE", help="write a Chrome trace of all launches; open it at ui.perfetto.dev")
    add(f"{prefix}simulate", action="store_true", help="use the simulated NPU although CANN is there")


def _error(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


if __name__ == "__main__":
    main(prog=os.environ.pop("CUSTOM_OPS_PROG", None) or "python -m custom_ops.npu")
