"""`whatif scale`: how far an application scales, what that costs, and which problem would scale further."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from whatif.cli.options import (
    Draw,
    drawing,
    open_question,
    picture_option,
    print_table,
    scenario_options,
    share_of,
    tell_worth,
)
from whatif.errors import ImpossiblePointError, UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.plotting.description import PlotDescription
    from whatif.studies.isoefficiency import Isoefficiency
    from whatif.studies.scaling import Mode, Planner, Scaling

_MOST_POINTS: Final = 10_000


@click.command("scale", short_help="Plan strong and weak scaling, isoefficiency, memory and node-hours.")
@scenario_options
@click.option("--nodes", metavar="SPEC", help="`1 .. 4096` (doubling), `1, 2, 3`, or a range as --sweep has; "
              "default: to the largest power of 2 that the platform has.")  # fmt: skip
@click.option("--efficiency", default="50%", show_default=True, help="The parallel efficiency that is still worth it.")
@click.option("--show", type=click.Choice(["scaling", "answers", "isoefficiency"]), default="scaling",
              show_default=True, help="All points, the places worth knowing, or how problems must grow.")  # fmt: skip
@click.option("--plot", is_flag=True, help="Draw the efficiencies, or how the problem must grow.")
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
@picture_option
def command(
    scenario: str, platform: str | None, platform_dirs: tuple[Path, ...], overrides: tuple[str, ...], nodes: str | None,
    efficiency: str, show: str, plot: bool, file_format: str, output: Path | None,
) -> None:  # fmt: skip
    """Plan the scale of SCENARIO on full nodes: strong scaling of its whole grid, weak scaling of a rank's cells.

    With T the time of an iteration on P ranks and P_b the fewest ranks that have an answer: strong scaling has the
    speedup T(P_b) / T(P) and the efficiency T(P_b) P_b / (T(P) P), weak scaling the efficiency T(P_b) / T(P). The
    isoefficiency (Grama, Gupta and Kumar 1993) is how the cells W of the whole grid must grow with P to hold
    --efficiency. Memory is that of a device: what a rank needs grows with its cells. Node-hours are nodes times the
    total time of the job. Exit with 4 where no number of nodes has an answer.
    """
    from whatif.studies.scaling import Planner
    from whatif.studies.scaling_tables import places_in_words, places_table, scaling_picture, scaling_table

    draw = drawing(plot, output)
    question = open_question(scenario, platform, platform_dirs, overrides)
    tell_worth(question)
    planner = Planner(question)
    share = share_of("--efficiency", efficiency)
    counts = _counts(nodes, planner)
    for remark in planner.remarks:
        click.echo(remark, err=True)
    if show == "isoefficiency":
        _show_growth(planner, share, counts, draw, file_format)
        return
    plans = {mode: planner.scaling(mode, counts) for mode in planner.modes()}
    _tell_impossible(plans, planner)
    places = places_table(planner, plans, share)
    if draw is not None:
        draw(scaling_picture(plans))
    elif show == "scaling":
        print_table(scaling_table(plans), file_format, [["impossible"], ["ranks"], ["speedup"]])
    if draw is not None or show == "scaling":
        for line in places_in_words(places):
            click.echo(line, err=True)
    else:
        print_table(places, file_format, [["ranks"]])


def _tell_impossible(plans: Mapping[Mode, Scaling], planner: Planner) -> None:
    """Why points have no answer; raise `ImpossiblePointError` where none has."""
    said = [reason for plan in plans.values() for reason in plan.reasons]
    missing = [reason for reason in said if reason]
    reasons = "; ".join(dict.fromkeys(missing))
    if len(missing) == len(said):
        least = planner.least_nodes()
        reasons += f"; the whole grid has room on {least:,.0f} nodes or more" if least is not None else ""
        raise ImpossiblePointError(f"impossible: {reasons}")
    if missing:
        click.echo(f"{len(missing)} of {len(said)} points are impossible: {reasons}", err=True)


def _counts(text: str | None, planner: Planner) -> list[float]:
    """Numbers of nodes, in increasing order; ends with two dots between are doubled from the first to the last."""
    from whatif.core.sweep import parameter_points

    if text is None:
        return planner.doublings()
    ends = re.fullmatch(r"\s*([0-9_]+)\s*\.\.\s*([0-9_]+)\s*", text)
    if ends is not None:
        low, high = int(ends[1]), int(ends[2])
        if not 1 <= low <= high <= 2**53:
            raise UsageError(f"--nodes {text}: from at least 1 upwards")
        return [*(float(low << power) for power in range(54) if low << power < high), float(high)]
    try:
        return sorted(
            set(parameter_points("platform.node_count", text, planner.question.program, _MOST_POINTS).tolist())
        )
    except UsageError as error:
        raise UsageError(str(error).replace("sweep `platform.node_count`", f"--nodes {text}")) from None


def _show_growth(planner: Planner, efficiency: float, counts: list[float], draw: Draw | None, file_format: str) -> None:
    from whatif.studies.isoefficiency import isoefficiency
    from whatif.studies.scaling import in_percent
    from whatif.table import Table
    from whatif.units import BYTE, ONE, SECOND

    found = isoefficiency(planner, efficiency, counts)
    law = found.law()
    if law is not None:
        exponent, first, last = law
        where = f"from {first:,.0f} to {last:,.0f} nodes"
        click.echo(f"to hold {in_percent(efficiency)}, the cells grow like P^{exponent:.2f} {where}", err=True)
    if not any(math.isfinite(cells) for cells in found.cells.tolist()):
        never = f"no grid up to 2^30 times as large has an efficiency of {in_percent(efficiency)}"
        raise ImpossiblePointError(f"impossible: {next(iter(found.reasons), never)}")
    too_large = int((found.memory > planner.device_memory).sum())
    if too_large:
        click.echo(f"{too_large} of {len(found.memory)} need more memory than a device has", err=True)
    if draw is not None:
        draw(_growth_picture(found))
        return
    columns = {"nodes": ONE, "ranks": ONE, "cells": ONE, "growth": ONE, "iteration_time": SECOND, "memory": BYTE}
    arrays = (found.nodes, found.ranks, found.cells, found.growth, found.time, found.memory)
    rows = list(zip(*(array.tolist() for array in arrays), strict=True))
    kept = rows if planner.memory_size else [row[:-1] for row in rows]
    names = columns if planner.memory_size else dict(list(columns.items())[:-1])
    print_table(Table.of_rows(names, kept, {"efficiency": f"{efficiency:g}"}), file_format, [["memory"], ["ranks"]])


def _growth_picture(found: Isoefficiency) -> PlotDescription:
    from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, Scale
    from whatif.studies.scaling import in_percent

    axes = AxisDescription("nodes", scale=Scale.LOG), AxisDescription("cells", scale=Scale.LOG)
    title = f"cells that hold {in_percent(found.efficiency)} efficiency"
    return PlotDescription(title, *axes, (PlotLine("cells", found.nodes, found.cells),))
