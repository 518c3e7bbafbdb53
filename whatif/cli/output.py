"""Output of results: notes to stderr, then a table or a picture to stdout or to a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

import click

from whatif.atomic import atomic_file, require_writable
from whatif.cli.echo import echo
from whatif.cli.options import Command, show_notes, show_written, with_options
from whatif.cli.values import FilePath, OneOf
from whatif.errors import InfeasiblePointError, UsageError
from whatif.limits import PICTURES, TABLE_FORMATS
from whatif.plain_text import is_plain

if TYPE_CHECKING:
    from whatif.plotting.boxes import Box
    from whatif.plotting.description import Description
    from whatif.plotting.lanes import LaneChart
    from whatif.plotting.presentable import Presentable
    from whatif.plotting.tiles import TileMap
    from whatif.table import Table


class TomlResult(Protocol):
    """Result that can be written as a part or scenario file."""

    def to_toml(self) -> str:
        """Text of the file."""

    def write(self, path: Path) -> object:
        """Write the file, whole or not at all."""


_PLOT_ALONE = "--plot draws on the terminal; it goes with neither -o (-o FILE.svg alone draws) nor --format"


@dataclass(frozen=True)
class Output:
    """A table in some format, or a picture, on stdout or in a file."""

    file_format: str = "table"
    """Format of a table."""
    path: Path | None = None
    is_picture: bool = False

    @classmethod
    def of(
        cls,
        file_format: str | None,
        path: Path | None,
        plot: bool = False,
        formats: Sequence[str] = TABLE_FORMATS,
        pictures: Collection[str] = PICTURES,
    ) -> Output:
        """Output that `--format`, `-o` and `--plot` describe.

        Raise `UsageError` for options without effect, and for a file that cannot be written.
        """
        from whatif.table_writers import format_of

        if plot and (path is not None or file_format is not None):
            raise UsageError(_PLOT_ALONE)
        if path is not None and path.suffix:
            require_writable(path)
        if path is None or path.suffix.lower() not in PICTURES:
            return cls(format_of(path, file_format, formats, pictures), path, plot)
        from whatif.plotting.picture import check_picture

        if file_format is not None:
            raise UsageError(f"--format {file_format}: no effect on the picture {path}")
        check_picture(path)
        return cls("table", path, is_picture=True)

    def write(self, result: Presentable) -> None:
        """Print the notes of a result and write the result; raise `InfeasiblePointError` if it has no answer."""
        if self.path is not None:
            result.check_output(self.path)
        drawn = result.caption() if self._on_terminal else ()
        show_notes(note for note in result.notes if note not in drawn)
        obstacle = result.obstacle()
        if result.shows_failures or not obstacle:
            self._write(result)
        self._raise(result)

    def finish(self, result: Presentable, page: Path) -> None:
        """Print the notes of a result whose page is written; raise `InfeasiblePointError` if it has no answer."""
        show_notes(result.notes)
        show_written(page)
        self._raise(result)

    def _raise(self, result: Presentable) -> None:
        obstacle = result.obstacle()
        if result.interruption():
            sys.stdout.flush()
            raise KeyboardInterrupt(result.interruption())
        if obstacle:
            raise InfeasiblePointError(obstacle)

    def _write(self, result: Presentable) -> None:
        if self.is_picture:
            self.draw(result)
            return
        if self.file_format == "toml":
            self.write_toml(cast("TomlResult", result))
            return
        table = result.readable_table() if self.file_format == "table" else result.table()
        if len(table) or self.file_format != "table":
            self.print_table(table, result.optional_columns)

    def write_toml(self, result: TomlResult) -> None:
        """Write the part, scenario or platform of a result."""
        if self.path is None:
            echo(result.to_toml(), nl=False)
        else:
            result.write(self.path)
            show_written(self.path)

    def draw(self, result: Presentable) -> None:
        """Draw the picture of a result into the file, or on the terminal; in plain text its table instead."""
        from whatif.plotting.picture import write_picture

        if self.path is not None:
            write_picture(result.picture(), self.path)
            show_written(self.path)
        elif self._on_terminal:
            # Bar charts are drawn into files only: their verbs have no --plot.
            show_picture(cast("Description | Box | TileMap | LaneChart", result.picture()))
        else:
            self.print_table(result.readable_table())

    @property
    def _on_terminal(self) -> bool:
        """Whether a picture is drawn in characters."""
        return self.is_picture and self.path is None and not is_plain()

    def print_table(self, table: Table, optional: Sequence[Collection[str]] = ()) -> None:
        """Write a table; a narrow terminal omits the first groups of optional columns."""
        from whatif.table_writers import narrowed, omission

        width = terminal_width() if self.path is None and self.file_format == "table" else None
        shown = table if width is None else narrowed(table, width, optional)
        with self.opened() as out:
            self.write_table(shown, out)
        if width is not None:
            show_notes(filter(None, [omission(table, shown, width)]))

    def write_table(self, table: Table, out: TextIO) -> None:
        """Write a whole table into the opened file, or to stdout."""
        from whatif.table_writers import FILE_WRITERS, TABLE_WRITERS

        writers = TABLE_WRITERS if self.path is None else FILE_WRITERS
        writers[self.file_format](table, out)

    @contextmanager
    def opened(self) -> Iterator[TextIO]:
        """Text stream of the file, which appears when it is complete, or stdout."""
        if self.path is None:
            yield sys.stdout
            return
        with atomic_file(self.path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            yield file
        show_written(self.path)


def output_options(
    *, picture: bool = True, plot: str = "", formats: Sequence[str] = TABLE_FORMATS
) -> Callable[[Command], Command]:
    """`-o` and `--format`, and `--plot` with a help text; handed to the command as `output`.

    The first of the formats is the default; `toml` is written by the result itself.
    """
    file = FilePath(path_type=Path, dir_okay=False)
    drawn = " or a picture (.svg, .png, .pdf)" if picture else " or a TOML file (.toml)" if "toml" in formats else ""
    options = [
        click.option("-o", "--output", type=file, metavar="FILE",
                     help=f"Write a table (.csv, .json, .md, .html, .txt){drawn} to this file."),
        click.option("--format", "file_format", type=OneOf(formats),
                     help=f"Output format; by default that of the file name, else {formats[0]}."),
    ]  # fmt: skip
    if plot:
        options.insert(0, click.option("--plot", is_flag=True, help=plot))

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_output(*, output: Path | None, file_format: str | None, plot: bool = False, **given: Any) -> Any:
            if output is not None and not picture and output.suffix.lower() in PICTURES:
                raise UsageError(f"{output}: this result has no picture")
            stated = file_format if output is not None or plot else file_format or formats[0]
            return command(output=Output.of(stated, output, plot, formats, PICTURES if picture else ()), **given)

        return with_options(with_output, options)

    return decorate


def terminal_width() -> int | None:
    """Characters of a line of the terminal that stdout is; None for a file, a pipe, and plain text."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() and not is_plain() else None


def show_picture(picture: Description | Box | TileMap | LaneChart) -> None:
    """Draw a plot in the size of the terminal, in colours unless stdout is a file."""
    from whatif.plotting.terminal import terminal_picture

    click.echo(terminal_picture(picture), color=None if sys.stdout.isatty() else False)
