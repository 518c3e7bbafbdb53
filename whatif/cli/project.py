"""`whatif project`: the copies of a profile on another machine, operation by operation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import platforms_option
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.profiles.profile_data import Profile
    from whatif.profiles.projection import Projection
    from whatif.schema.platform_spec import PlatformSpec
    from whatif.table import Table

profile_path = click.Path(path_type=Path, exists=True)


@click.command("project")
@click.argument("profile", type=profile_path, metavar="PROFILE")
@click.option("--from", "source", required=True, metavar="NAME", help="The machine whose latencies were measured.")
@click.option("--to", "target", required=True, metavar="NAME", help="The machine whose data sheet is known.")
@click.option(
    "--target-profile",
    "actual",
    type=profile_path,
    metavar="FILE",
    help="The same application on the target, for the errors; may be PROFILE itself.",
)
@click.option("--operations", is_flag=True, help="Print every copy and fill, not their sums.")
@click.option("--sizes", is_flag=True, help="Print the sums by direction, memory and decade of the size.")
@platforms_option
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
def command(
    profile: Path, source: str, target: str, actual: Path | None, operations: bool, sizes: bool,
    platform_dirs: tuple[Path, ...], file_format: str,
) -> None:  # fmt: skip
    """Project the copies and fills of a PROFILE to another machine, three ways.

    projected: latency measured on the one machine, all else from the data sheet of the other; peak: that latency and
    the peak bandwidth; envelope: the peak bandwidth alone. Errors are sums of absolute errors over the sum of times.
    """
    from whatif.profiles.formats import read_profile
    from whatif.profiles.projection import project
    from whatif.schema.load import load_platform
    from whatif.table_writers import TABLE_WRITERS, worth_showing

    one, other = (load_platform(name, platform_dirs)[0] for name in (source, target))
    read = read_profile(profile)
    there = _target_profile(actual, profile, read)
    projection = project(read, one, other, there)
    _tell(read, projection, one, other)
    table = _table(projection, operations=operations, sizes=sizes)
    TABLE_WRITERS[file_format](worth_showing(table) if file_format == "table" else table, sys.stdout)


def _target_profile(actual: Path | None, path: Path, profile: Profile) -> Profile | None:
    from whatif.profiles.formats import read_profile

    if actual is None:
        return None
    return profile if actual.samefile(path) else read_profile(actual)


def _table(projection: Projection, *, operations: bool, sizes: bool) -> Table:
    if operations:
        return projection.single_operations()
    return projection.by_size() if sizes else projection.summary()


def _tell(profile: Profile, projection: Projection, source: PlatformSpec, target: PlatformSpec) -> None:
    """What the table rests on, the time line, and what is odd."""
    from whatif.table_writers import column_rows

    for line in [*profile.operations.notes.get("warnings", "").splitlines(), *projection.warnings]:
        click.echo(f"warning: {line}", err=True)
    click.echo(f"latencies of {source.name}, data sheet of {target.name}", err=True)
    low, high = projection.kernel_range
    if (low, high) != (1.0, 1.0) and "kernel" in profile.operations.columns["operation"].values:
        click.echo(f"kernels take {low:.3g} to {high:.3g} times as long: a range of both rooflines", err=True)
    column_rows(projection.totals(), sys.stderr)
    error = projection.error()
    if error.total >= 0:
        click.echo(f"weighted mean error of all copies and fills: {error.total:.2%}", err=True)
