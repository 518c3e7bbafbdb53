"""`python -m benchmarks`: run every benchmark and print one table."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.calibration import calibrating
from benchmarks.collectives import grouped_collectives
from benchmarks.explorer import first_frame, typing
from benchmarks.fitting import fitting
from benchmarks.flows import sharing
from benchmarks.growth import MARK, growth_page
from benchmarks.history import RESULTS, append, compared, last_results, record, this_run
from benchmarks.hpl import high_performance_linpack
from benchmarks.importers import reading
from benchmarks.long_session import large_library, long_session
from benchmarks.measure import Row
from benchmarks.model import (
    decisions,
    edit_of_a_parameter,
    loads_of_links,
    million_congested_points,
    million_points,
    million_ranks,
)
from benchmarks.normal_form import searching
from benchmarks.patterns import patterns
from benchmarks.procurement import studying
from benchmarks.regression import regressing
from benchmarks.scale_out import ten_million_points
from benchmarks.scaling import scaling
from benchmarks.screen import key_to_picture, start
from benchmarks.simulation import replaying
from benchmarks.transformers import training_steps

MODEL = (
    million_points, million_congested_points, grouped_collectives, edit_of_a_parameter, million_ranks, loads_of_links,
    decisions, ten_million_points, studying, training_steps,
)  # fmt: skip
EXPLORER = (key_to_picture, typing, start, first_frame, large_library, long_session)
MEASUREMENTS = (reading, calibrating, fitting, regressing, scaling, searching)
SIMULATION = (replaying, patterns, sharing, high_performance_linpack)


@click.group(invoke_without_command=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=RESULTS, help="File of results, JSON lines.")
@click.pass_context
def main(context: click.Context, output: Path) -> None:
    """Run all benchmarks, print a table, compare with the last results on this machine, and add these to them."""
    if context.invoked_subcommand:
        return
    run = this_run()
    last = last_results(output, run.machine)
    click.echo(f"{'benchmark':58} {'whatif':>14} {'alternative':>14} {'ratio':>10}  alternative is")
    for benchmark in (*MODEL, *EXPLORER, *MEASUREMENTS, *SIMULATION):
        for row in benchmark():
            click.echo(_line(row, compared(row, last)))
            append(output, [record(row, run)])


@main.command("growth")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Page whose tables are replaced.")
def growth(output: Path | None) -> None:
    """Measure how times grow with the size of a question, as tables in Markdown."""
    tables = growth_page()
    if output is None:
        click.echo(tables)
        return
    head, mark, _ = output.read_text(encoding="utf-8").partition(MARK)
    output.write_text(head + mark + "\n\n" + tables, encoding="utf-8")


def _line(row: Row, comparison: str) -> str:
    ratio = f"{row.ratio:,.1f} x" if row.alternative else ""
    line = f"{row.what:58} {row.this:>14} {row.other:>14} {ratio:>10}  {row.alternative}"
    return f"{line}  [{comparison}]" if comparison else line


if __name__ == "__main__":
    main()
