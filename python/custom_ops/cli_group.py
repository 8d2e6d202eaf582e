"""What the `custom-ops` command groups share."""

from __future__ import annotations

import os
import sys

import click


class Group(click.Group):
    """Lists commands in the order they are written."""

    def list_commands(self, ctx):
        return list(self.commands)


def use_cpu_alone() -> None:
    """CPU tensors only: whether torch_npu can be loaded does not matter."""
    if "torch" not in sys.modules:
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"


def os_error_text(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)
