"""`whatif import profile`: what a profile says of its application, or the profile as a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import named_platform, platforms_option
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.profiles.profile_data import Profile

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
@click.option("--platform", metavar="NAME", help="The platform that the scenario names: where the profile was taken.")
@click.option("--name", metavar="TEXT", help="The application's name in the scenario; without: that of the file.")
@click.option("--table", "only", type=click.Choice(_TABLES), help="Print this table alone.")
@platforms_option
@click.option(
    "--format", "file_format", type=click.Choice(["toml", *TABLE_FORMATS]), default="table", show_default=True
)
def command(
    file: Path, output: Path | None, platform: str | None, name: str | None, only: str | None,
    platform_dirs: tuple[Path, ...], file_format: str,
) -> None:  # fmt: skip
    """Print the characterisation of a profile: kernels and copies, distribution of sizes, streams; or a scenario."""
    from whatif.profiles.formats import read_profile

    profile = read_profile(file)
    for line in profile.operations.notes.get("warnings", "").splitlines():
        click.echo(f"warning: {line}", err=True)
    if output is None and file_format != "toml":
        _show(profile, only, file_format)
        return
    text = _scenario(profile, platform, name or file.name.split(".")[0], platform_dirs)
    if output is None:
        click.echo(text, nl=False)
        return
    _write(output, text)
    click.echo(f"written: {output}", err=True)


def _show(profile: Profile, only: str | None, file_format: str) -> None:
    """All tables, or one; several as CSV or JSON would be no file that a program can read."""
    from whatif.profiles.characterisation import characterise
    from whatif.table_writers import TABLE_WRITERS, worth_showing

    tables = characterise(profile)
    if only is None and file_format in {"csv", "json"}:
        only = "classes"
        click.echo(f"one table of {', '.join(tables)}: choose by --table", err=True)
    if only is not None and only not in tables:
        raise UsageError(f"--table {only}: the profile has nothing to say there; it has {', '.join(tables)}")
    for title, table in tables.items():
        if only in {None, title}:
            if only is None:
                click.echo(f"\n{title}" if file_format == "table" else f"\n**{title}**\n")
            TABLE_WRITERS[file_format](worth_showing(table) if file_format == "table" else table, sys.stdout)


def _scenario(profile: Profile, platform: str | None, name: str, platform_dirs: tuple[Path, ...]) -> str:
    from whatif.profiles.scenario_text import scenario_toml
    from whatif.schema.load import load_platform

    if platform is None:
        raise UsageError("a scenario needs its machine: name the platform by --platform NAME")
    platform, platform_dirs = named_platform(platform, platform_dirs)
    return scenario_toml(profile, platform, name, load_platform(platform, platform_dirs)[0])


def _write(output: Path, text: str) -> None:
    from whatif.atomic import atomic_file

    with atomic_file(output) as temporary:
        temporary.write_text(text, encoding="utf-8")
