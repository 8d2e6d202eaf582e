"""Command line: `custom-ops onboard ...`. Exit codes: 0 fine, 1 findings, 2 usage, or a file that cannot be read, 130 interrupted."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import threading

import click

from .cli_group import Group, os_error_text, use_cpu_alone

_FINDINGS, _USAGE, _INTERRUPTED = 1, 2, 130


# name: module and attribute of the command; imported when it is used, since these load torch
_LATER = {
    "verify": ("custom_ops.cli_onboard_run", "verify"),
    "generate": ("custom_ops.cli_onboard_run", "generate"),
    "perplexity": ("custom_ops.cli_onboard_run", "perplexity"),
    "export": ("custom_ops.onboarding.export.command", "command"),
}


class _Onboard(Group):
    """Reports errors of all its commands alike; see `reported`."""

    def list_commands(self, ctx):
        return [*self.commands, *_LATER]

    def get_command(self, ctx, name):
        if name in _LATER:
            module, attribute = _LATER[name]
            return getattr(importlib.import_module(module), attribute)
        return super().get_command(ctx, name)

    def invoke(self, ctx):
        with reported(), _stoppable():
            return super().invoke(ctx)


@click.group(cls=_Onboard)
def onboard():
    """Bring a model of Hugging Face to these operators: what it is, whether it is right, and in which format.

    \b
    Start here:
      custom-ops onboard analyze path/to/model                    what it is and what is missing
      custom-ops onboard analyze path/to/model --save-map my.toml what would make an unknown model known
      custom-ops onboard verify path/to/model                     whether it computes what transformers does
      custom-ops onboard generate path/to/model -p "The sea is"   text, and how fast
      custom-ops onboard perplexity path/to/model text.txt        how well it predicts a text
      custom-ops onboard export path/to/model --format gguf -o model.gguf

    A model is a folder with config.json and safetensors files. Nothing in it is run: no pickles, no remote code.

    \b
    Exit codes: 0 fine, 1 something is missing or differs (the report says what), 2 usage, or a file cannot be read, 130 interrupted.
    """
    use_cpu_alone()


@contextlib.contextmanager
def reported():
    """OnboardingError, files that cannot be opened and interruptions as text and exit code."""
    from .onboarding import OnboardingError

    try:
        yield
    except OnboardingError as error:
        click.echo(f"error: {printable(str(error))}", err=True)
        raise SystemExit(_USAGE) from None
    except BrokenPipeError:  # `... | head`: click ends quietly
        raise
    except OSError as error:
        click.echo(f"error: {os_error_text(error)}", err=True)
        raise SystemExit(_USAGE) from None
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        raise SystemExit(_INTERRUPTED) from None


@contextlib.contextmanager
def _stoppable():
    """SIGTERM and SIGHUP end a command as Ctrl-C does, so that files half written are removed."""
    def stop(number, frame):
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    kept = {one: signal.signal(one, stop) for one in (signal.SIGTERM, signal.SIGHUP) if main and signal.getsignal(one) == signal.SIG_DFL}
    try:
        yield
    finally:
        for one, handler in kept.items():
            signal.signal(one, handler)


def printable(text: str) -> str:
    """Without control characters: names come from somebody else's files, and a terminal obeys what it is sent."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def map_dirs(command):
    return click.option("--map-dir", "map_dirs", multiple=True, type=click.Path(file_okay=False), metavar="DIR",
                        help="Folder with maps of your own, *.toml; may be repeated. An id in it replaces the package's.")(command)


@onboard.command()
@click.argument("model_dir", type=click.Path(file_okay=False))
@map_dirs
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
@click.option("--save-map", type=click.Path(dir_okay=False), metavar="FILE", help="Write the proposed map to this file, which must not "
              "exist.")
def analyze(model_dir, map_dirs, as_json, save_map):
    """Say what a model is and what is missing to run it.

    Reads config.json and the headers of the safetensors files, no weights. Answers ten questions about the architecture, makes
    six checks, and where a map is missing or does not fit proposes the smallest one that would do.

    \b
    Examples:
      custom-ops onboard analyze models/lfm2-350m
      custom-ops onboard analyze models/new --save-map maps/new.toml     edit it, then
      custom-ops onboard analyze models/new --map-dir maps
      custom-ops onboard analyze models/new --json | jq .missing
    \b
    Exit codes: 0 ready, 1 something is missing, 2 a file cannot be read.
    """
    from .onboarding.analyze import analyze as examine

    analysis = examine(model_dir, map_dirs)
    if as_json:
        click.echo(json.dumps(analysis.to_dict(), indent=1))
    else:
        from .onboarding import show

        show.analysis(analysis)
    if save_map:
        _save(analysis, save_map)
    if not analysis.ready:
        raise SystemExit(_FINDINGS)


def _save(analysis, path: str) -> None:
    if analysis.proposal is None:
        reason = "the map fits" if analysis.ready else "no map would mend what is wrong"
        raise click.UsageError(f"--save-map: there is nothing to propose; {reason}")
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as file:  # never over a map that somebody wrote
            file.write(analysis.proposal.text)
    except FileExistsError:
        raise click.UsageError(f"--save-map: {path} exists already; choose another name") from None
    click.echo(f"written: {path}; use it with --map-dir {os.path.dirname(path) or '.'}", err=True)
