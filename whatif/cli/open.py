"""`whatif open`: the explorer."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

import click

from whatif.cli.echo import echo
from whatif.cli.options import question_options
from whatif.cli.values import FilePath
from whatif.errors import UsageError

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.studies.scenario_sources import ScenarioSource

_LARGEST_JOURNAL = 10_000_000


@click.command("open")
@click.argument("scenario", metavar="[SCENARIO|STUDY|TRACE|PROFILE]", default="jacobi2d")
@question_options
@click.option(
    "--measured",
    multiple=True,
    type=FilePath(path_type=Path, exists=True),
    metavar="FILE",
    help="Measured message times to fit, a file or a folder.",
)
@click.option(
    "--runs",
    multiple=True,
    type=FilePath(path_type=Path, exists=True),
    metavar="FILE",
    help="Measured runs to fit a model to, a file or a folder.",
)
@click.option("--formula", metavar="'TIME ~ TERMS'", help="Formula of the model, as for `whatif fit regression`.")
@click.option("--columns", metavar="NAME=HEADING,..", help="Columns of measured CSV files.")
@click.option("--where", metavar="NAME=TEXT", help="Keep only rows of measured CSV files where NAME equals TEXT.")
@click.option("--replay", type=FilePath(path_type=Path, dir_okay=False), metavar="FILE", help="Replay a journal.")
@click.option(
    "--journal", type=FilePath(path_type=Path, dir_okay=False), metavar="FILE", help="Append every command to FILE."
)
def command(
    scenario: str,
    platform: str | None,
    platform_dirs: tuple[Path, ...],
    overrides: Mapping[str, str],
    measured: tuple[Path, ...],
    runs: tuple[Path, ...],
    formula: str | None,
    columns: str | None,
    where: str | None,
    replay: Path | None,
    journal: Path | None,
) -> None:
    """Open the explorer on SCENARIO (default jacobi2d), a procurement study, an MPI trace or a GPU profile."""
    # In a browser the terminal is a driver of Textual's at the other end of pipes.
    if "TEXTUAL_DRIVER" not in os.environ and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the explorer needs a terminal; for data in a pipe or file use `whatif run`")
    from whatif.tui.terminal.fast_start import fast_start

    fast_start()
    opened, shown = opened_source(scenario, platform, platform_dirs, overrides)
    # Errors in the files are reported before the terminal is taken over.
    _ = opened.program
    opening = [*shown, *measured_lines(measured, columns, where, runs, formula)]
    lines = read_journal(replay) if replay is not None else []
    from whatif.tui.app import Explorer
    from whatif.tui.config import read_config

    patience = Timer(1.0, lambda: echo("loading... (Ctrl+C cancels)", err=True))
    patience.start()
    try:
        explorer = Explorer(opened, read_config(), opening=opening, replay=lines, journal=journal)
    finally:
        patience.cancel()
    explorer.run()
    code = explorer.return_code or 0
    if code > 128:
        echo("ended by a signal; what was not saved is offered when the scenario is opened again", err=True)
    sys.exit(code)


def opened_source(
    source: str, platform: str | None = None, folders: tuple[Path, ...] = (), overrides: Mapping[str, str] = {}
) -> tuple[Scenario, list[str]]:
    """Scenario of a source, and the commands that show its page; for a study the one that its first application is."""
    from whatif.api.common import is_study, open_source

    if is_study(source):
        return opened_study(source, platform, folders, overrides)
    found = open_source(source, platform=platform, platform_dirs=folders, overrides=overrides)
    return found.scenario, list(source_lines(found))


def opened_study(
    source: str, platform: str | None, folders: tuple[Path, ...], overrides: Mapping[str, str]
) -> tuple[Scenario, list[str]]:
    """Scenario behind a study, and the commands that show its page; raise `UsageError` for options without effect."""
    from whatif.api.procurement import study_scenario
    from whatif.tui.commands.study_values import text_of

    if platform is not None or folders:
        raise UsageError("--platform and --platform-dir: no effect on a study, which names its machines")
    lines = [f"show study.file = {source}", *([f"show study.values = {text_of(overrides)}"] if overrides else [])]
    return study_scenario(source, overrides), [*lines, "show screen = study"]


def source_lines(source: ScenarioSource) -> Iterator[str]:
    """Commands that show the page of a trace or a profile."""
    if source.kind == "trace":
        yield "show screen = ranks"
    if source.kind == "profile" and source.path is not None:
        yield f"show profile.file = {source.path.resolve()}"
        yield "show screen = profile"


def measured_lines(
    measured: tuple[Path, ...],
    columns: str | None,
    where: str | None,
    runs: tuple[Path, ...] = (),
    formula: str | None = None,
) -> Iterator[str]:
    """Commands that show measurements on the page that fits them; raise `UsageError`."""
    if measured and runs:
        raise UsageError("--measured and --runs are shown on different pages: open one of them, `n` reads the other")
    if (columns or where) and not measured and not runs:
        raise UsageError("--columns and --where: no effect without --measured or --runs FILE")
    if formula and not runs:
        raise UsageError("--formula is the model of runs: name them with --runs FILE")
    option, page, files = ("measured", "fit", measured) if measured else ("runs", "runs", runs)
    if any("," in str(path) or not str(path).isprintable() for path in files):
        raise UsageError(f"--{option}: a name with a comma or a line end cannot be kept; rename the file")
    if columns:
        yield f"show {page}.columns = {columns}"
    if where:
        yield f"show {page}.rows = {where}"
    if formula:
        yield f"show runs.formula = {' '.join(formula.split())}"
    if files:
        yield f"show {page}.files = {', '.join(map(str, files))}"
        yield f"show screen = {page}"


def read_journal(path: Path) -> list[str]:
    """Lines of a journal; raise `UsageError` if the file is not one."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LARGEST_JOURNAL + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a journal: it is not UTF-8") from None
    if len(text) > _LARGEST_JOURNAL:
        raise UsageError(f"{path}: larger than {_LARGEST_JOURNAL // 1_000_000} MB: not a journal of commands")
    return text.splitlines()
