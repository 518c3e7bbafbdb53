"""Options that the verbs of `whatif fit` and `whatif import` share, and the output of their results."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from whatif.cli.options import Command, show_notes, with_options
from whatif.cli.output import Output
from whatif.cli.values import FilePath, OneOf
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS
from whatif.vocabulary import DISTANCES

if TYPE_CHECKING:
    from whatif.files.fitted_model import FittedModel
    from whatif.files.fitted_platform import FittedPlatform
    from whatif.schema.platform_spec import PlatformSpec

_FORMULA: Final = re.compile(r"[\w)]\s*~")


class _MeasuredFile(FilePath):
    """Path of an existing file; a formula in its place is an error that names its option."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Path of the file."""
        if _FORMULA.search(str(value)) and not Path(value).exists():
            raise UsageError(f"`{value}` is not a file; a formula is an option: --formula '{value}'")
        return super().convert(value, param, ctx)


files_argument = click.argument(
    "files", nargs=-1, required=True, metavar="FILE..", type=_MeasuredFile(path_type=Path, exists=True)
)
format_option = click.option("--format", "file_format", type=OneOf(TABLE_FORMATS), default="table", show_default=True)
columns_option = click.option(
    "--columns", metavar="NAME=HEADING,..", help="Columns of CSV files, e.g. 'time=Wall time [ms],ranks=Ranks'."
)
where_option = click.option(
    "--where", multiple=True, metavar="HEADING=VALUE", help="Keep only rows where column HEADING equals VALUE."
)
long_option = click.option(
    "--long",
    metavar="METRIC=VALUE",
    help="Headings of metric names and of their values, in CSV files with one row per metric.",
)
distance_option = click.option(
    "--distance",
    type=OneOf([distance.replace("_", "-") for distance in DISTANCES]),
    help="Distance of the measured messages.  [default: inter-node]",
)
datasheet_option = click.option(
    "--platform", metavar="NAME", help="Platform with the data sheet, a name or a file.  [default: PLATFORM.toml]"
)
source_option = click.option("--source", metavar="TEXT", help="Text of [sources], instead of files and tools.")


@dataclass(frozen=True)
class PlatformTarget:
    """The platform file to write, and the table to print."""

    output: Path | None
    extends: str | None
    source: str | None
    points: bool
    file_format: str

    def __post_init__(self) -> None:
        if self.source is not None and self.output is None:
            raise UsageError("--source needs -o PLATFORM.toml: that file states it")
        if self.extends is not None and self.output is None:
            raise UsageError("--extends needs -o PLATFORM.toml: that file extends it")

    def platform(self) -> PlatformSpec | None:
        """The platform that is written, or that a new file extends; a file that cannot be written is reported."""
        from whatif.api.fits import output_platform

        return output_platform(self.output, self.extends)

    @property
    def machine(self) -> str | None:
        """Name or file of the platform that is extended or written."""
        return self.extends or (None if self.output is None else str(self.output))

    def finish(self, result: FittedPlatform[Any]) -> None:
        """Write the platform, and print the parameters or the points."""
        show_notes(result.notes)
        in_words = self.file_format in ("table", "markdown")
        table = result.points() if self.points else result.table(in_words=in_words)
        if self.output is not None:
            show_notes(result.write(self.output, self.extends, self.source))
        Output(self.file_format).print_table(table)
        if self.output is None:
            show_notes(["nothing is written without -o PLATFORM.toml"])


def _with_target(command: Command, kind: type[PlatformTarget | ModelTarget]) -> Command:
    """Command that gets the options which are fields of a target as one, `target`."""

    @wraps(command)
    def with_target(**given: Any) -> None:
        command(target=kind(**{item.name: given.pop(item.name) for item in fields(kind)}), **given)

    return with_target


def platform_options(command: Command) -> Command:
    """FILE.. and the options of a `PlatformTarget`, handed to the command as `target`."""
    output = click.option(
        "-o", "--output", type=FilePath(path_type=Path, dir_okay=False), metavar="PLATFORM.toml",
        help="Write the parameters to this platform file; without it nothing is written.",
    )  # fmt: skip
    extends = click.option("--extends", metavar="NAME", help="Platform that a new PLATFORM.toml extends.")
    points = click.option("--points", is_flag=True, help="Print the points with their residuals, not the parameters.")
    options = (files_argument, output, extends, source_option, format_option, points)
    return with_options(_with_target(command, PlatformTarget), options)


@dataclass(frozen=True)
class ModelTarget:
    """The model file and the scenario to write."""

    output: Path | None
    scenario: Path | None
    source: str | None
    platform: str | None

    def __post_init__(self) -> None:
        if self.scenario is not None and self.output is None:
            raise UsageError("--scenario needs -o MODEL.toml: the scenario's phase extends that file")
        if self.source is not None and self.output is None:
            raise UsageError("--source needs -o MODEL.toml: that file states it")
        if self.platform is not None and self.scenario is None:
            raise UsageError("--platform needs --scenario: it is the platform of the scenario")

    def write(self, result: FittedModel, **options: Any) -> None:
        """Write the files that are named."""
        if self.output is not None:
            show_notes(result.write(self.output, self.scenario, platform=self.platform, source=self.source, **options))


def model_options(command: Command) -> Command:
    """FILE.. with the options of reading runs, and those of a `ModelTarget`, handed to the command as `target`."""
    file = FilePath(path_type=Path, dir_okay=False)
    output = click.option("-o", "--output", type=file, metavar="MODEL.toml", help="Write a part that a phase extends.")
    scenario = click.option(
        "--scenario", type=file, metavar="SCENARIO.toml", help="With -o: write a scenario that uses the model."
    )
    platform = click.option(
        "--platform", metavar="NAME", help="Platform of the generated scenario.  [default: an unknown machine]"
    )
    reading = (files_argument, columns_option, where_option, long_option)
    return with_options(_with_target(command, ModelTarget), (*reading, output, scenario, source_option, platform))
