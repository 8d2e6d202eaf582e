"""Entry point of `custom-ops`: says what to install where the command line's own packages are missing."""

from __future__ import annotations


def main() -> None:
    try:
        import click  # noqa: F401  (the commands are click functions)
    except ImportError:
        raise SystemExit("custom-ops needs click (and draws tables with rich): pip install click rich") from None
    from . import cli_commands

    cli_commands.main(prog_name="custom-ops")


if __name__ == "__main__":
    main()
