"""`whatif shell`: completion scripts of shells, and the man page."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Final, cast

import click
from click.shell_completion import ShellComplete, get_completion_class

from whatif import __version__
from whatif.cli.echo import echo
from whatif.cli.lazy_group import contexts_below, option_records
from whatif.cli.values import OneOf

MAN: Final = "man"
_VARIABLE: Final = "_WHATIF_COMPLETE"


@click.command("shell")
@click.argument("kind", metavar="bash|zsh|fish|man", type=OneOf(["bash", "zsh", "fish", MAN]))
@click.pass_context
def command(context: click.Context, kind: str) -> None:
    """Print the completion script of a shell, or the man page.

    bash: whatif shell bash > ~/.local/share/bash-completion/completions/whatif.
    zsh: whatif shell zsh > DIR/_whatif, with DIR in fpath.
    fish: whatif shell fish > ~/.config/fish/completions/whatif.fish.
    man: whatif shell man > ~/.local/share/man/man1/whatif.1.
    """
    root = context.find_root()
    if kind == MAN:
        echo("\n".join(man_page(root)))
        return
    shell = cast("type[ShellComplete]", get_completion_class(kind))
    echo(shell(root.command, {}, "whatif", _VARIABLE).source())


def man_page(root: click.Context) -> Iterator[str]:
    """Man page of the program in roff: every verb with its arguments and options."""
    yield f'.TH WHATIF 1 "" "whatif {__version__}" "User Commands"'
    yield ".SH NAME\nwhatif \\- what-if explorer for HPC machines and applications"
    yield f".SH SYNOPSIS\n.B whatif\n{_roff('VERB [OPTIONS] ..')}"
    yield f".SH DESCRIPTION\n{_roff(root.command.epilog or '')}\n.SH VERBS"
    for context in contexts_below(click.Context(root.command, info_name="whatif")):
        command = context.command
        yield f".SS {_roff(' '.join([context.command_path, *command.collect_usage_pieces(context)]))}"
        yield _roff(cleandoc(command.help or "")).replace("\n\n", "\n.PP\n")
        yield from (f".TP\n.B {_roff(names)}\n{_roff(text)}" for names, text in option_records(context))


def _roff(text: str) -> str:
    """Text without characters that roff takes for commands."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in escaped.splitlines())
