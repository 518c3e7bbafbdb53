"""`whatif report`: an answer with all that it rests on as one HTML page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import named_platform, open_question, scenario_options
from whatif.errors import ImpossiblePointError, UsageError, did_you_mean
from whatif.limits import DEFAULT_MAXIMUM_POINTS

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.reporting.contents import Findings


@click.command("report", short_help="Write an answer and all it rests on as one HTML page.")
@scenario_options
@click.option("--sweep", "sweeps", multiple=True, metavar="PATH=SPEC", help="Instead of the scenario's own sweep.")
@click.option("--against", metavar="NAME", help="Say why this platform, or this scenario, differs: a name or a file.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html", required=True)
def command(
    scenario: str,
    platform: str | None,
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    sweeps: tuple[str, ...],
    against: str | None,
    output: Path,
) -> None:
    """Write a page on SCENARIO: answer, pictures, sensitivities, equations, values with sources and grades, files.

    The page holds no script and needs nothing else. --platform and --set hold for a scenario to compare with too.
    """
    from whatif.cli.run import asked_grid
    from whatif.core.scenario import EvaluationRequest
    from whatif.reporting.page import write_report

    question = open_question(scenario, platform, platform_dirs, overrides)
    grid = asked_grid(question, sweeps, False, DEFAULT_MAXIMUM_POINTS)
    other = None if against is None else _other(against, scenario, platform, platform_dirs, overrides)
    command = _command(scenario, platform, platform_dirs, overrides, sweeps, against, output)
    _tell(write_report(EvaluationRequest(question, grid), output, command, other))


def _other(
    against: str, scenario: str, platform: str | None, platform_dirs: tuple[Path, ...], overrides: tuple[str, ...]
) -> Scenario:
    """The question to compare with: this one on another platform, or another scenario."""
    from whatif.schema.load import open_document
    from whatif.schema.shipped import kind_of, names_in

    is_file = Path(against).is_file()
    kind = kind_of(open_document(against, "scenarios").data) if is_file else None
    name, searched = named_platform(against, platform_dirs)
    machines, scenarios = (names_in(searched, of) for of in ("platforms", "scenarios"))
    if kind == "platform" or (kind is None and name in machines):
        return open_question(scenario, name, searched, overrides)
    if not is_file and against not in scenarios:
        hint = did_you_mean(against, [*machines, *scenarios])
        raise UsageError(f"--against {against}: there is no such platform, scenario or file{hint}")
    return open_question(against, platform, platform_dirs, overrides)


def _command(
    scenario: str,
    platform: str | None,
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    sweeps: tuple[str, ...],
    against: str | None,
    output: Path,
) -> str:
    """The line that makes the report again."""
    words = ["whatif", "report", scenario, *(["--platform", platform] if platform is not None else [])]
    repeated = (("--platform-dir", map(str, platform_dirs)), ("--set", overrides), ("--sweep", sweeps))
    words += [word for option, values in repeated for value in values for word in (option, value)]
    words += ["--against", against] if against is not None else []
    return shlex.join([*words, "-o", str(output)])


def _tell(found: Findings) -> None:
    """Narrate what is left out; a report without a single answer is an error."""
    for text in found.left_out:
        click.echo(f"left out: {text}", err=True)
    for text in found.point.extrapolated:
        click.echo(f"warning: {text}", err=True)
    if found.point.reasons:
        reasons = f"impossible: {'; '.join(found.point.reasons)}"
        if found.sweep is None or found.sweep.impossible == found.sweep.grid.size:
            raise ImpossiblePointError(reasons)
        click.echo(reasons, err=True)
