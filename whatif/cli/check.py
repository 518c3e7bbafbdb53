"""`whatif check`: validate files and say everything that is wrong with them at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import platforms_option
from whatif.errors import ImpossiblePointError, InvalidFileError, MovedError, Problem, UsageError
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.units import parse_share

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.files.baseline import Move


@click.command("check", short_help="Validate scenario and platform files.")
@click.argument("files", nargs=-1, required=True, metavar="FILE..")
@platforms_option
@click.option("--against", type=click.Path(path_type=Path, dir_okay=False), metavar="JSON",
              help="Exit with 5 where a result of a scenario is not as in this file.")  # fmt: skip
@click.option("--tolerance", default="0.1 %", show_default=True, metavar="SHARE",
              help="How far a result may move: `1 %` or 0.01.")  # fmt: skip
@click.option("--update", is_flag=True, help="Write the results of today into the file of --against.")
def command(
    files: tuple[str, ...], platform_dirs: tuple[Path, ...], against: Path | None, tolerance: str, update: bool
) -> None:
    """Validate FILE.., each a scenario or a platform, by path or name; exit with 3 if any is invalid."""
    if update and against is None:
        raise UsageError("--update needs --against JSON, the file to write")
    share = parse_share(tolerance)
    if share is None:
        raise UsageError(f"--tolerance {tolerance}: expected a share such as `1 %` or 0.01")
    problems: list[Problem] = []
    questions: dict[str, Scenario] = {}
    for name in files:
        try:
            kind, question = _check(name, platform_dirs)
        except InvalidFileError as error:
            problems.extend(error.problems)
        else:
            click.echo(f"{name}: ok ({kind})")
            questions |= {} if question is None else {name: question}
    if problems:
        raise InvalidFileError(problems)
    if against is not None and not questions:
        raise UsageError(f"--against {against}: there is no scenario among {', '.join(files)}")
    if against is not None:
        _hold(questions, against, share, update)


def _hold(questions: Mapping[str, Scenario], path: Path, tolerance: float, update: bool) -> None:
    """Compare the results of scenarios with those of a file, or write them there."""
    from whatif.files.baseline import moves, read_results, write_results

    results = {name: _results(name, question) for name, question in questions.items()}
    if update:
        write_results(path, results)
        click.echo(f"{path}: results of {', '.join(results)}", err=True)
        return
    known = read_results(path)
    lines = [f"{name}: not in {path}" for name in results if name not in known]
    lines += [_line(move, questions[move.scenario]) for move in moves(known, results, tolerance)]
    for line in lines:
        click.echo(line)
    if lines:
        raise MovedError(f"not as in {path}; `whatif diff` says why, --update takes the results as they are")


def _results(name: str, question: Scenario) -> dict[str, float]:
    from whatif.axes import Grid
    from whatif.core.result import run_whole

    result = run_whole(question, Grid())
    if result.reasons:
        raise ImpossiblePointError(f"{name}: impossible: {'; '.join(result.reasons)}")
    columns = result.table().columns.items()
    numbers = {name: float(column.values[0]) for name, column in columns if column.dimension is not None}
    # A run without time has no mean power.
    return {name: number for name, number in numbers.items() if math.isfinite(number)}


def _line(move: Move, question: Scenario) -> str:
    """What a result was and is; one that is not there any more was a time."""
    from whatif.units import SECOND, format_quantity

    dimension = SECOND if move.after is None else question.program.dimension_of(move.result)
    before, after = (
        "not there" if value is None else format_quantity(value, dimension, 6) for value in (move.before, move.after)
    )
    return f"{move.scenario}: {move.result}: {before} -> {after}{_moved(move)}"


def _moved(move: Move) -> str:
    if not move.before or move.after is None:
        return ""
    return f" ({move.after / move.before - 1:+.2%})"


def _check(name: str, platform_dirs: tuple[Path, ...]) -> tuple[str, Scenario | None]:
    from whatif.core.scenario import Scenario
    from whatif.core.sweep import file_axes, grid_of
    from whatif.schema.load import load_part, load_platform, open_document
    from whatif.schema.shipped import is_file, shipped_names

    if not is_file(Path(name)) and name in shipped_names("platforms"):
        load_platform(name, platform_dirs)
        return "platform", None
    document = open_document(name, "scenarios", platform_dirs)
    if "part" in document.data:
        load_part(name, platform_dirs)
        return "part", None
    if looks_like_platform(document.data):
        load_platform(name, platform_dirs)
        return "platform", None
    question = Scenario(document, folders=platform_dirs)
    grid_of(file_axes(question.program, DEFAULT_MAXIMUM_POINTS), DEFAULT_MAXIMUM_POINTS)
    return "scenario", question


def looks_like_platform(data: dict[str, object]) -> bool:
    """Whether a document describes a machine: it has parts of one, and none of a question."""
    machine = {"node", "network", "node_count", "name", "description", "fits", "price", "site"}
    return bool(data.keys() & machine) and not data.keys() & {"application", "platform"}
