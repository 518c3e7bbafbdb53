"""`whatif report`: results and everything they rest on as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.options import scenario_options, show_notes, show_written
from whatif.cli.progress import progress_line
from whatif.cli.values import FilePath


@click.command("report")
@scenario_options
@click.option("--sweep", "axes", multiple=True, metavar="PATH=SPEC", help="Sweep instead of the scenario's own.")
@click.option("--against", metavar="NAME", help="Platform or scenario to explain the difference from: a name or file.")
@click.option("-o", "--output", type=FilePath(path_type=Path, dir_okay=False), metavar="FILE.html", required=True,
              help="Write the page to this file.")  # fmt: skip
def command(scenario: str, output: Path, axes: tuple[str, ...], **options: Any) -> None:
    """Write a page on SCENARIO: results, pictures, sensitivities, equations, values with sources and grades, files.

    The page contains no script and loads nothing. --platform and --set also apply to a scenario given by --against.
    """
    from whatif.api.evaluation import report

    with progress_line() as line:
        findings = report(scenario, output, *axes, progress=line, **options)
    show_notes(findings.notes)
    show_written(output)
    findings.raise_if_infeasible()
