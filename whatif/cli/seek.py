"""`whatif seek`: which value of a leaf meets a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import open_question, print_table, scenario_options
from whatif.errors import ImpossiblePointError, UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.engine.seek import Sought
    from whatif.engine.term import Program
    from whatif.schema.fields import QuantityField
    from whatif.table import Table


@click.command("seek", short_help="Find the value of a leaf that meets a target.")
@scenario_options
@click.option("--vary", required=True, metavar="PATH[=LOW .. HIGH]",
              help="The leaf to move; by default from a thousandth of its value to a thousand times it.")  # fmt: skip
@click.option("--target", required=True, metavar="'RESULT <= TIME'",
              help="`iteration_time <= 5 ms`, `terms.halo <= 80 %` (of what it is now), or >=.")  # fmt: skip
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
def command(
    scenario: str, platform: str | None, folders: tuple[Path, ...], sets: tuple[str, ...], vary: str, target: str,
    file_format: str,
) -> None:  # fmt: skip
    """Find the value of a leaf of SCENARIO, nearest to the present one, that meets a target.

    Exit with 4 where no value does, and say how close it comes and which phase stands in the way.
    """
    from whatif.engine.seek import parse_target, seek

    program = open_question(scenario, platform, folders, sets).program
    path, low, high = _range(vary, program)
    found = seek(program, path, parse_target(target, program), low, high)
    if not found.is_met:
        raise ImpossiblePointError(_in_the_way(found))
    if found.value == float(found.leaf.value):
        click.echo(f"{found.target} is met as it stands", err=True)
    print_table(_table(found), file_format, [["factor"]])


def _range(text: str, program: Program) -> tuple[str, float | None, float | None]:
    """The leaf, and the ends of its range where they are said, in base units."""
    path, equals, ends = (part.strip() for part in text.partition("="))
    if not equals:
        return path, None, None
    low, dots, high = (part.strip() for part in ends.partition(".."))
    leaf = program.leaves.get(path)
    if not dots or leaf is None or leaf.field is None:
        raise UsageError(f"--vary {text}: expected PATH, or PATH=LOW .. HIGH with a leaf that is a number")
    return path, _end(low, leaf.field, text), _end(high, leaf.field, text)


def _end(text: str, field: QuantityField, whole: str) -> float:
    """One end of a range in base units."""
    from whatif.units import Quantity

    try:
        end = field.parse(text)
    except ValueError as error:
        raise UsageError(f"--vary {whole}: {error}") from None
    if isinstance(end, Quantity):
        return end.value
    if not isinstance(end, float):
        raise UsageError(f"--vary {whole}: `{text}` is no number")
    return end


def _in_the_way(found: Sought) -> str:
    from whatif.units import SECOND, format_quantity

    then = format_quantity(found.then, found.target.dimension, 4)
    longest = ", ".join(f"{name} {format_quantity(time, SECOND, 3)}" for name, time in list(found.phases.items())[:2])
    value = format_quantity(found.value, found.leaf.dimension, 4)
    return (
        f"no value of {found.leaf.path} in this range meets {found.target}: "
        f"at best it is {then}, at {value}; what stands in the way: {longest}"
    )


def _table(found: Sought) -> Table:
    from whatif.table import Table
    from whatif.units import ONE

    present = float(found.leaf.value)
    factor = found.value / present if present else float("nan")
    result = found.target.result
    columns = {"leaf": None, "now": found.leaf.dimension, "sought": found.leaf.dimension, "factor": ONE}
    columns |= dict.fromkeys((f"{result} now", f"{result} then"), found.target.dimension)
    return Table.of_rows(columns, [[found.leaf.path, present, found.value, factor, found.now, found.then]])
