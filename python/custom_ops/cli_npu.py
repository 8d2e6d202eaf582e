"""Command line: `custom-ops run` and `custom-ops doctor`."""

from __future__ import annotations

import os
import subprocess
import sys

import click


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(arguments):
    """Run Python code with an NPU: script.py args..., -m module or -c code.

    The machine's own NPU when CANN is there, else the simulated one, for the unmodified torch_npu. The same as
    `python -m custom_ops.npu`; `custom-ops run --help` lists the options.
    """
    environment = {**os.environ, "CUSTOM_OPS_PROG": "custom-ops run"}
    flags = subprocess._args_from_interpreter_flags()  # the user's script gets the interpreter as this one was started
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *flags, "-m", "custom_ops.npu", *arguments], environment)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="All findings, as JSON.")
@click.option("--no-run", is_flag=True, help="Only look; do not start an NPU in a process of its own.")
def doctor(as_json, no_run):
    """Show what code for an NPU finds here, and what to do about what is missing.

    \b
    Exit codes: 0 `custom-ops run` works here, 1 something is missing.
    """
    from .npu import doctor as examination

    checks = examination.examine(probe=not no_run)
    click.echo(examination.to_json(checks) if as_json else _drawn(checks), nl=as_json)
    if not examination.ready(checks):
        raise SystemExit(1)


def _drawn(checks) -> str:
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{check.state:<8}{check.name:<{width}}  {check.found}")
        lines += [f"{'':<8}{'':<{width}}  -> {check.advice}"] if check.advice else []
    return "\n".join(lines) + "\n"
