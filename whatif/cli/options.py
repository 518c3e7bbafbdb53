"""Options that several verbs share, and the output of tables, pictures and notes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.plotting.description import Description
    from whatif.table import Table

Command = TypeVar("Command", bound=Callable[..., Any])


platform_option = click.option(
    "--platform", metavar="NAME", help="Platform to use instead of the scenario's: a name or a file."
)
platforms_option = click.option(
    "--platform-dir",
    "platform_dirs",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Folder to search for platforms, before the shipped ones.",
)
set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="Override a parameter, e.g. --set platform.node.gpu_count=8.",
)
picture_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a picture to this file: .svg, .png or .pdf.",
)


def question_options(command: Command) -> Command:
    """`--platform`, `--platform-dir` and `--set`."""
    return platform_option(platforms_option(set_option(command)))


def scenario_options(command: Command) -> Command:
    """SCENARIO with `--platform`, `--platform-dir` and `--set`."""
    return click.argument("scenario")(question_options(command))


def format_option(
    formats: Sequence[str] = TABLE_FORMATS, default: str | None = "table"
) -> Callable[[Command], Command]:
    """`--format` with a choice of formats; without a default it follows from the name of the output file."""
    text = "Output format." if default else "Output format; by default that of the file name, else table."
    return click.option(
        "--format",
        "file_format",
        type=click.Choice(formats),
        default=default,
        show_default=default is not None,
        help=text,
    )


def uncertainty_options(command: Command) -> Command:
    """`--samples`, `--seed`, `--level` and `--spread`, handed to the command as the library takes them."""

    @wraps(command)
    def with_spreads(*arguments: Any, spreads: tuple[str, ...], **others: Any) -> Any:
        return command(*arguments, spreads=dict(map(_spread, spreads)), **others)

    options: Any = with_spreads
    for option in reversed(_SAMPLING):
        options = option(options)
    return cast("Command", options)


def _spread(text: str) -> tuple[str, str]:
    grade, _, share = (part.strip() for part in text.partition("="))
    return grade, share


_SAMPLING: Final = (
    click.option(
        "--samples",
        type=click.IntRange(2),
        metavar="N",
        help="Sample the uncertain values N times (best a power of 2): results get a band.",
    ),
    click.option("--seed", type=click.IntRange(0), metavar="N", help="Random seed.  [default: 0]"),
    click.option("--level", metavar="SHARE", help="Confidence level of the band.  [default: 90%]"),
    click.option(
        "--spread",
        "spreads",
        multiple=True,
        metavar="GRADE=SHARE",
        help="Spread of values of a grade that have no distribution, e.g. assumed=20%, as a log-normal.",
    ),
)


def share_of(option: str, text: str) -> float:
    """A share above 0 and at most 1, as `10%` or `0.1`; raise `UsageError` that names the option."""
    from whatif.units import parse_share

    share = parse_share(text)
    if share is None or not 0 < share <= 1:
        raise UsageError(f"{option} {text}: expected a share above 0 and at most 100 %, such as 95%")
    return share


def print_table(table: Table, file_format: str, optional: Sequence[Collection[str]] = ()) -> None:
    """Write a table to stdout; for a terminal that is too narrow without the first groups of optional columns."""
    from whatif.table_writers import TABLE_WRITERS, narrowed

    if file_format == "table" and sys.stdout.isatty():
        table = narrowed(table, shutil.get_terminal_size().columns, optional)
    TABLE_WRITERS[file_format](table, sys.stdout)


Draw = Callable[["Description"], None]
"""Use of a picture."""


def drawing(plot: bool, output: Path | None) -> Draw | None:
    """Target of --plot and -o: the terminal, or a picture file; None without them."""
    from whatif.plotting.picture import check_picture, write_picture

    if output is not None:
        check_picture(output)
        return lambda picture: write_picture(picture, output)
    return show_picture if plot else None


def show_picture(picture: Description) -> None:
    """Draw a plot in the size of the terminal, in colours unless stdout is a file."""
    from whatif.plotting.terminal import terminal_picture

    click.echo(terminal_picture(picture), color=None if sys.stdout.isatty() else False)


def named_platform(platform: str, platform_dirs: tuple[Path, ...]) -> tuple[str, tuple[Path, ...]]:
    """Name of a platform, and the folders to search for it."""
    from whatif.api.common import named_platform as named

    return named(platform, platform_dirs)


def open_question(
    scenario: str, platform: str | None, platform_dirs: tuple[Path, ...], overrides: tuple[str, ...]
) -> Scenario:
    """Scenario of the options."""
    from whatif.api.common import load

    return load(scenario, platform=platform, overrides=overrides_of(overrides), platform_dirs=platform_dirs)


def overrides_of(texts: Sequence[str]) -> dict[str, str]:
    """Overrides by path, of `PATH=VALUE` texts."""
    pairs: dict[str, str] = {}
    for text in texts:
        path, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not path:
            raise UsageError(f"--set {text}: expected PATH=VALUE")
        pairs[path] = value
    return pairs


def show_notes(notes: Iterable[str]) -> None:
    """Print notes to stderr, a line each."""
    for note in notes:
        click.echo(note, err=True)


def parse_sets(overrides: tuple[str, ...]) -> dict[str, str]:
    """Checked overrides by path, of `PATH=VALUE` texts."""
    from whatif.api.common import checked_overrides

    return checked_overrides(overrides_of(overrides))
