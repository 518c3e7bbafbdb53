"""`whatif import profile`: the tables of a GPU profile, or the profile as a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.echo import echo
from whatif.cli.options import platforms_option, show_notes
from whatif.cli.output import Output, output_options
from whatif.cli.values import FilePath, OneOf
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.api.profiles import CharacterisedProfile, TableName

_TABLES = ("totals", "classes", "sizes", "symbols", "streams", "kernels")


@click.command("profile")
@click.argument("file", metavar="FILE", type=FilePath(path_type=Path, exists=True))
@click.option("--platform", metavar="NAME", help="Platform of the scenario: where the profile was taken.")
@click.option("--name", metavar="TEXT", help="Name of the application in the scenario; default: that of the file.")
@click.option("--table", type=OneOf(_TABLES), help="Print this table only.")
@platforms_option
@output_options(picture=False, formats=(*TABLE_FORMATS, "toml"))
def command(
    file: Path, output: Output, platform: str | None, name: str | None, table: TableName | None,
    platform_dirs: tuple[Path, ...],
) -> None:  # fmt: skip
    """Print the characterisation of a profile: kernels and copies, distribution of sizes, streams; or a scenario."""
    from whatif.api.profiles import import_profile

    has_scenario = output.file_format == "toml"
    _refuse_unused({"--table": table} if has_scenario else {"--platform": platform, "--name": name}, has_scenario)
    profile = import_profile(file, table=table, name=name, platform=platform, platform_dirs=platform_dirs)
    alone = table is not None or output.path is not None or output.file_format in {"csv", "json", "toml"}
    if not alone:
        _show(profile, output)
        return
    if table is None and not has_scenario:
        echo(f"one table of {', '.join(profile.tables)}: choose by --table", err=True)
    output.write(profile)


def _refuse_unused(options: dict[str, str | None], has_scenario: bool) -> None:
    """Raise `UsageError` for an option without effect on this kind of output."""
    unused = next((option for option, value in options.items() if value is not None), None)
    if unused is not None:
        raise UsageError(f"{unused}: no effect {'on' if has_scenario else 'without'} a scenario (-o, --format toml)")


def _show(profile: CharacterisedProfile, output: Output) -> None:
    """Print the notes and all tables."""
    from whatif.table_writers import worth_showing

    show_notes(profile.notes)
    readable = output.file_format == "table"
    for title, table in profile.tables.items():
        echo(f"\n{title}" if readable else f"\n**{title}**\n")
        output.print_table(worth_showing(table) if readable else table)
