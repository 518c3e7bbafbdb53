"""Groups of commands in modules that are imported when a command is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from whatif.plugins import Verb


class LazyGroup(click.Group):
    """Group with the commands of `verbs`, imported when they are used, besides those that are added to it."""

    def __init__(self, *arguments: Any, verbs: Mapping[str, Verb], title: str = "Commands", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.verbs = verbs
        self.title = title

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the verbs in their order, then those of added commands."""
        return [*self.verbs, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Command of a name, imported where it is one of the verbs."""
        if cmd_name not in self.verbs:
            return super().get_command(ctx, cmd_name)
        command: click.Command = importlib.import_module(self.verbs[cmd_name].module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names with their help, without importing the verbs."""
        limit = formatter.width - 6 - max(map(len, self.list_commands(ctx)), default=0)
        added = {name: command.get_short_help_str(limit) for name, command in sorted(self.commands.items())}
        with formatter.section(self.title):
            formatter.write_dl(list(({name: verb.help for name, verb in self.verbs.items()} | added).items()))
