"""Options that several verbs share, and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce, wraps
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from whatif.arguments import pairs
from whatif.cli.echo import echo
from whatif.cli.values import FilePath, Whole
from whatif.errors import UsageError
from whatif.paths import exists

Command = Callable[..., Any]


def with_options(command: Command, options: Sequence[Any]) -> Command:
    """Command with options, in their order."""
    return reduce(lambda decorated, option: option(decorated), reversed(options), command)


def _shipped(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Completion by the names of shipped files, and by files."""

    def complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        from whatif.api.scenarios import names_of_shipped

        names = [CompletionItem(name) for name in names_of_shipped(kind) if name.startswith(typed)]
        return [*names, CompletionItem(typed, type="file")]

    return complete


def values_by_name(expected: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    """Callback of a repeated option of texts `NAME=VALUE`, which hands values by name to the command."""
    return lambda _context, parameter, texts: pairs(parameter.opts[0], texts, expected)


platform_option = click.option(
    "--platform",
    metavar="NAME",
    shell_complete=_shipped("platforms"),
    help="Platform to use instead of the scenario's: a name or a file.",
)
platforms_option = click.option(
    "--platform-dir",
    "platform_dirs",
    multiple=True,
    type=FilePath(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Folder to search for platforms, before the shipped ones.",
)
set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    callback=values_by_name("PATH=VALUE"),
    metavar="PATH=VALUE",
    help="Override a parameter, e.g. --set platform.node.gpu_count=8 (or x2, +50%).",
)
on_option = click.option(
    "--on", metavar="WHERE",
    help="Evaluate in parallel: `threads`, `processes`, `local` (a dask.distributed cluster on this machine) or the "
         "address of a scheduler, `tcp://HOST:8786`.",
)  # fmt: skip
workers_option = click.option(
    "--workers",
    type=Whole(1, 4096),
    metavar="N",
    help="With --on: number of workers, by default one per core.",
)


def question_options(command: Command) -> Command:
    """`--platform`, `--platform-dir` and `--set`."""
    return platform_option(platforms_option(set_option(command)))


def scenario_options(command: Command) -> Command:
    """SCENARIO with `--platform`, `--platform-dir` and `--set`."""
    return click.argument("scenario", shell_complete=_shipped("scenarios"))(question_options(command))


def log_option(command: Command) -> Command:
    """`--log`: the command runs, and writes its output, while slow values are kept in a file."""

    @click.option(
        "--log",
        type=FilePath(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Keep slow values, such as simulated times, in this file; the same command continues from it.",
    )
    @wraps(command)
    def logged(*arguments: Any, log: Path | None, **others: Any) -> Any:
        from whatif.api.common import resumable

        with resumable(log):
            return command(*arguments, **others)

    return logged


def uncertainty_options(command: Command) -> Command:
    """`--samples`, `--seed`, `--level` and `--spread`."""
    return with_options(command, _SAMPLING)


_SAMPLING: Final = (
    click.option(
        "--samples",
        type=Whole(2),
        metavar="N",
        help="Sample the uncertain values N times (best a power of 2): results get a band.",
    ),
    click.option("--seed", type=Whole(0), metavar="N", help="Random seed.  [default: 0]"),
    click.option("--level", metavar="SHARE", help="Confidence level of the band.  [default: 90%]"),
    click.option(
        "--spread",
        "spreads",
        multiple=True,
        callback=values_by_name("GRADE=SHARE"),
        metavar="GRADE=SHARE",
        help="Spread of values of a grade that have no distribution, e.g. assumed=20%, as a log-normal.",
    ),
)


def one_each(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Callback of a `--platform` that is given once for each platform: refuses lists with commas."""
    for name in names:
        if "," in name and not exists(name):
            repeated = " ".join(f"--platform {part.strip()}" for part in name.split(","))
            raise UsageError(f"--platform {name}: one name each time: {repeated}")
    return names


def show_notes(notes: Iterable[str]) -> None:
    """Print notes to stderr, a line each."""
    for note in notes:
        echo(note, err=True)


def show_written(path: Path) -> None:
    """Name a file that was written on stderr."""
    show_notes([f"written: {path}"])
