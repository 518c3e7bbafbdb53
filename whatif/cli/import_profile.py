"""`whatif import profile`: the tables of a GPU profile, or the profile as a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import platforms_option
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.api.profiles import CharacterisedProfile, TableName

_TABLES = ("totals", "classes", "sizes", "symbols", "streams", "kernels")


@click.command("profile", short_help="GPU profiles: nvprof, Nsight Systems, rocprof, Kineto.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="SCENARIO.toml",
    help="Write a scenario; `--format toml` prints it.",
)
@click.option("--platform", metavar="NAME", help="Platform of the scenario: where the profile was taken.")
@click.option("--name", metavar="TEXT", help="Name of the application in the scenario; default: that of the file.")
@click.option("--table", type=click.Choice(_TABLES), help="Print this table only.")
@platforms_option
@click.option(
    "--format", "file_format", type=click.Choice(["toml", *TABLE_FORMATS]), default="table", show_default=True
)
def command(
    file: Path, output: Path | None, platform: str | None, name: str | None, table: TableName | None,
    platform_dirs: tuple[Path, ...], file_format: str,
) -> None:  # fmt: skip
    """Print the characterisation of a profile: kernels and copies, distribution of sizes, streams; or a scenario."""
    from whatif.api.profiles import import_profile

    has_scenario = output is not None or file_format == "toml"
    _refuse_unused({"--table": table} if has_scenario else {"--platform": platform, "--name": name}, has_scenario)
    profile = import_profile(file, table=table, name=name, platform=platform, platform_dirs=platform_dirs)
    for note in profile.notes:
        click.echo(note, err=True)
    if not has_scenario:
        _show(profile, table, file_format)
    elif output is None:
        click.echo(profile.to_toml(), nl=False)
    else:
        profile.write(output)
        click.echo(f"written: {output}", err=True)


def _refuse_unused(options: dict[str, str | None], has_scenario: bool) -> None:
    """Raise `UsageError` for an option without effect on this kind of output."""
    unused = next((option for option, value in options.items() if value is not None), None)
    if unused is not None:
        raise UsageError(f"{unused}: no effect {'on' if has_scenario else 'without'} a scenario (-o, --format toml)")


def _show(profile: CharacterisedProfile, table: TableName | None, file_format: str) -> None:
    """Print all tables, or the chosen one; CSV and JSON hold one table."""
    from whatif.table_writers import TABLE_WRITERS, worth_showing

    alone = table is not None or file_format in {"csv", "json"}
    if alone and table is None:
        click.echo(f"one table of {', '.join(profile.tables)}: choose by --table", err=True)
    for title, found in ({table or "": profile.table()} if alone else profile.tables).items():
        if not alone:
            click.echo(f"\n{title}" if file_format == "table" else f"\n**{title}**\n")
        TABLE_WRITERS[file_format](worth_showing(found) if file_format == "table" else found, sys.stdout)
