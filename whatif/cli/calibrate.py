"""`whatif calibrate`: corrections of a scenario that measured runs support."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.options import log_option, scenario_options
from whatif.cli.output import Output, output_options
from whatif.cli.values import FilePath, OneOf
from whatif.limits import CORRECTIONS, TABLE_FORMATS


@click.command("calibrate")
@scenario_options
@click.option("--runs", type=FilePath(path_type=Path), metavar="FILE",
              help="CSV file of measured runs.  [default: that of the scenario]")  # fmt: skip
@click.option("--correct", "corrections", multiple=True, type=OneOf(CORRECTIONS),
              help="Use these corrections instead of those that lower the error at held-out runs.")  # fmt: skip
@log_option
@output_options(picture=False, formats=(*TABLE_FORMATS, "toml"))
def command(scenario: str, output: Output, **options: Any) -> None:
    """Determine corrections of SCENARIO from measured runs: factors of kernels, of messages, of sharing and congestion,
    and added times.

    -o FILE.toml writes the scenario with them as `[calibration]`; its comments and other values stay. Corrections of
    the application apply on every platform, those of a platform only there.
    """
    from whatif.api.scenarios import calibrate

    output.write(calibrate(scenario, **options))
