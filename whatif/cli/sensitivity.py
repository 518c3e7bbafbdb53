"""`whatif sensitivity`: elasticities, bottlenecks and Sobol' indices of a result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whatif.cli.options import log_option, parse_sets, scenario_options, uncertainty_options
from whatif.cli.output import Output, output_options
from whatif.cli.values import OneOf
from whatif.vocabulary import SENSITIVITY_KINDS

if TYPE_CHECKING:
    from whatif.vocabulary import SensitivityKind


@click.command("sensitivity")
@scenario_options
@click.option("--result", default="iteration_time", show_default=True, help="A result, or a phase: terms.NAME.")
@click.option("--show", type=OneOf(SENSITIVITY_KINDS), default="tornado", show_default=True,
              help="Elasticities of all parameters; bottlenecks in order; or Sobol' indices of the uncertain "
                   "values.")  # fmt: skip
@uncertainty_options
@click.option("--all", "everything", is_flag=True, help="Include parameters without effect.")
@log_option
@output_options()
def command(
    scenario: str, platform: str | None, platform_dirs: tuple[Path, ...], overrides: tuple[str, ...], result: str,
    show: SensitivityKind, everything: bool, output: Output, **sampling: Any,
) -> None:  # fmt: skip
    """Rank the parameters of SCENARIO by elasticity: the change of the result in percent for 1 % of the parameter.

    The ladder makes rates infinite and fixed times 0, part by part, starting with the part that saves most: the
    bottlenecks. Sobol' indices show which uncertain value (`V +- E`, or --spread) is worth measuring.
    """
    from whatif.api.causes import sensitivity

    found = sensitivity(
        scenario, show=show, result=result, platform=platform, platform_dirs=platform_dirs,
        overrides=parse_sets(overrides), everything=everything, **sampling,
    )  # fmt: skip
    output.write(found)
