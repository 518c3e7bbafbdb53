"""`whatif sensitivity`: which values a result follows, and what would be left of it if parts were ideal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import open_question, picture_option, print_table, scenario_options
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.engine.ladder import Ladder
    from whatif.engine.sensitivity import Elasticity
    from whatif.engine.term import Program
    from whatif.table import Table

_BAR_WIDTH = 24


@click.command("sensitivity", short_help="Rank the values that a result follows, or climb the ladder of ideals.")
@scenario_options
@click.option("--result", default="iteration_time", show_default=True, help="A result, or a phase: terms.NAME.")
@click.option("--show", type=click.Choice(["tornado", "ladder"]), default="tornado", show_default=True,
              help="Elasticities of all values, or what is left if the worst part were ideal, then more.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Elasticities of 0 too, and of values that cannot move.")
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
@picture_option
def command(
    scenario: str, platform: str | None, folders: tuple[Path, ...], sets: tuple[str, ...], result: str, show: str,
    everything: bool, file_format: str, output: Path | None,
) -> None:  # fmt: skip
    """Say what the result of SCENARIO depends on: by how many percent it moves with one percent of each value.

    The ladder makes rates infinite and fixed times 0, part by part, the part first that saves most: the bottlenecks.
    """
    program = open_question(scenario, platform, folders, sets).program
    if output is not None:
        _draw(program, result, show, output)
        return
    bars = file_format == "table"
    table = _ladder(program, result, bars) if show == "ladder" else _tornado(program, result, everything, bars)
    print_table(table, file_format, [["tornado", "what_is_left"], ["change"], ["now"]])


def _draw(program: Program, result: str, show: str, output: Path) -> None:
    from whatif.engine.ladder import ladder
    from whatif.engine.sensitivity import elasticities
    from whatif.export.bars import ladder_bars, tornado_bars
    from whatif.export.picture import check_picture, write_picture

    check_picture(output)
    if show == "ladder":
        write_picture(ladder_bars(program, ladder(program, result)), output)
    else:
        write_picture(tornado_bars(program, result, elasticities(program, result)), output)


def _tornado(program: Program, result: str, everything: bool, bars: bool) -> Table:
    from whatif.engine.sensitivity import elasticities
    from whatif.table import Table
    from whatif.units import ONE

    found = elasticities(program, result)
    shown = [item for item in found if everything or item.elasticity]
    shown = [item for item in shown if everything or not item.reason]
    most = max((abs(item.elasticity) for item in shown if not item.reason), default=1.0)
    columns = {"value": None, "now": None, "change": None, "elasticity": ONE} | ({"tornado": None} if bars else {})
    rows = [
        [item.path, item.value, item.change or item.reason, item.elasticity, *([_arm(item, most)] if bars else [])]
        for item in shown
    ]
    click.echo(f"{result}: follows {len(shown)} of {len(found)} values", err=True)
    return Table.of_rows(columns, rows, {"result": result})


def _arm(item: Elasticity, most: float) -> str:
    """A bar to the left of the middle where more of a value is less of the result, else to the right."""
    half = _BAR_WIDTH // 2
    length = 0 if item.reason or not most else max(round(abs(item.elasticity) / most * half), 1)
    left, right = (length, 0) if item.elasticity < 0 else (0, length)
    return f"{'#' * left:>{half}}|{'#' * right:<{half}}"


def _ladder(program: Program, result: str, bars: bool) -> Table:
    from whatif.engine.ladder import ladder
    from whatif.table import Table
    from whatif.units import ONE, SECOND, format_quantity

    found: Ladder = ladder(program, result)
    columns = {"ideal": None, "saved": SECOND, "left": SECOND, "share_left": ONE} | (
        {"what_is_left": None} if bars else {}
    )
    rows = []
    for rung in found.rungs:
        share = rung.left / found.time
        rows.append([rung.part, rung.saved, rung.left, share, *([_bar(share)] if bars else [])])
    click.echo(
        f"{result}: {format_quantity(found.time, SECOND, 4)} as it stands; each rung is ideal with all above", err=True
    )
    return Table.of_rows(columns, rows, {"result": result, "time": f"{found.time!r}"})


def _bar(share: float) -> str:
    return ("#" * round(share * _BAR_WIDTH)).ljust(_BAR_WIDTH)
