"""`whatif sensitivity`: elasticities, bottlenecks and Sobol' indices of a result."""

from __future__ import annotations

from typing import Any

import click

from whatif.cli.options import log_option, scenario_options, uncertainty_options
from whatif.cli.output import Output, output_options
from whatif.cli.progress import progress_line
from whatif.cli.values import OneOf
from whatif.vocabulary import SENSITIVITY_KINDS


@click.command("sensitivity")
@scenario_options
@click.option("--result", default="iteration_time", show_default=True, help="A result, or the name of a phase.")
@click.option("--show", type=OneOf(SENSITIVITY_KINDS), default="tornado", show_default=True,
              help="Elasticities of all parameters; bottlenecks in order; or Sobol' indices of the uncertain "
                   "values.")  # fmt: skip
@uncertainty_options
@click.option("--all", "everything", is_flag=True, help="Include parameters without effect.")
@log_option
@output_options()
def command(output: Output, **options: Any) -> None:
    """Rank the parameters of SCENARIO by elasticity: the change of the result in percent for 1 % of the parameter.

    The ladder makes rates infinite and fixed times 0, part by part, starting with the part that saves most: the
    bottlenecks. Sobol' indices show which uncertain value (`V +- E`, or --spread) is worth measuring.
    """
    from whatif.api.causes import sensitivity

    with progress_line() as line:
        found = sensitivity(progress=line, **options)
    output.write(found)
