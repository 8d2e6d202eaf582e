"""The group class of every `custom-ops` command group."""

from __future__ import annotations

import click


class Group(click.Group):
    """Keeps commands in the order they are written and shows examples as they are typed."""

    def list_commands(self, ctx):
        return list(self.commands)
