"""`whatif project`: the copies of a profile on another machine, operation by operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.options import platforms_option
from whatif.cli.output import Output, output_options
from whatif.cli.values import FilePath
from whatif.errors import UsageError

_PROFILE = FilePath(path_type=Path, exists=True)


def _refuse_platform(_: click.Context, __: click.Parameter, name: str | None) -> None:
    """Raise `UsageError` for the option by which other verbs name their one machine."""
    if name is not None:
        raise UsageError(
            f"--platform {name}: two machines are named here: `--to {name}`, and `--from` the measured one"
        )


@click.command("project")
@click.argument("profile", type=_PROFILE, metavar="PROFILE")
@click.option("--from", "source", required=True, metavar="NAME", help="Platform whose latencies were measured.")
@click.option("--to", "target", required=True, metavar="NAME", help="Platform whose data sheet is known.")
@click.option(
    "--target-profile",
    type=_PROFILE,
    metavar="FILE",
    help="The same application on the target, for the errors; may be PROFILE itself.",
)
@click.option("--operations", is_flag=True, help="Print every copy and fill.")
@click.option("--sizes", is_flag=True, help="Print sums by direction, memory and decade of the size.")
@click.option("--platform", hidden=True, is_eager=True, expose_value=False, callback=_refuse_platform)
@platforms_option
@output_options(picture=False)
def command(output: Output, **options: Any) -> None:
    """Project the copies and fills of a PROFILE to another machine by three approaches.

    projected: latency measured on the one machine, all else from the data sheet of the other; peak: that latency and
    the peak bandwidth; envelope: the peak bandwidth alone. Errors are sums of absolute errors over the sum of times.
    """
    from whatif.api.profiles import project

    output.write(project(**options))
