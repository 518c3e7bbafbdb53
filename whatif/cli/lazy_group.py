"""Groups of commands in modules that are imported when a command is used, and walks over groups."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from whatif.errors import UsageError, did_you_mean
from whatif.paths import is_file
from whatif.plugins import Verb


class LazyGroup(click.Group):
    """Group with the commands of `verbs`, imported when they are used, besides those that are added to it.

    `hints` is the advice for words that are no commands.
    """

    def __init__(
        self,
        *arguments: Any,
        verbs: Mapping[str, Verb] = {},
        title: str = "Commands",
        hints: Mapping[str, str] = {},
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.verbs = verbs
        self.title = title
        self.hints = hints

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the verbs in their order, then those of added commands."""
        return [*self.verbs, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Command of a name, imported where it is one of the verbs."""
        if cmd_name not in self.verbs:
            return super().get_command(ctx, cmd_name)
        command: click.Command = importlib.import_module(self.verbs[cmd_name].module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Command that the first argument names; raise `UsageError` for another word, with what may be meant."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            raise UsageError(self.unknown(ctx, name))
        named, command, words = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group) and not ctx.resilient_parsing:
            _refuse_repeated(command, words)
        return named, command, words

    def unknown(self, ctx: click.Context, name: str) -> str:
        """Message for a word that is no command."""
        from whatif.api.scenarios import names_of_shipped

        known, words = self.list_commands(ctx), self.title.removesuffix("s").lower()
        if Path(name).suffix or is_file(Path(name)) or name in names_of_shipped("scenarios"):
            return f"a {words} comes first, then `{name}`: {', '.join(known)}"
        hint = self.hints.get(name) or did_you_mean(name, known) or f"; known: {', '.join(known)}"
        return f"no {words} `{name}`{hint}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names with their help by section, without importing the verbs."""
        widest = max(map(len, self.list_commands(ctx)), default=0)
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, verb in self.verbs.items():
            sections.setdefault(verb.section or self.title, []).append((name.ljust(widest), verb.help))
        for name, command in sorted(self.commands.items()):
            text = command.get_short_help_str(formatter.width - 6 - widest)
            sections.setdefault(self.title, []).append((name.ljust(widest), text))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def _refuse_repeated(command: click.Command, words: list[str]) -> None:
    """Raise `UsageError` for an option that is given several times, of which only the last would have an effect."""
    parser = command.make_parser(click.Context(command, resilient_parsing=True))
    _, _, order = parser.parse_args(list(words))
    single = [item for item in order if isinstance(item, click.Option) and not (item.multiple or item.is_flag)]
    twice = next((item for item in single if single.count(item) > 1), None)
    if twice is not None:
        raise UsageError(f"{max(twice.opts, key=len)}: given {single.count(twice)} times, it has one value here")


def contexts_below(context: click.Context) -> Iterator[click.Context]:
    """Contexts of all commands below a group, each before those below it."""
    group = context.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        if command := group.get_command(context, name):
            below = click.Context(command, info_name=name, parent=context)
            yield below
            yield from contexts_below(below)


def option_records(context: click.Context) -> list[tuple[str, str]]:
    """Names and help of the options of a command, without those that have no help."""
    records = (option.get_help_record(context) for option in context.command.params)
    return [record for record in records if record and record[1]]
