"""Presentable results: one table, and optionally one picture, for all ways to show them."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from whatif.errors import UsageError
from whatif.table import Table, text_column
from whatif.table_writers import column_lines, html_rows, shown_rows, worth_showing
from whatif.units import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from whatif.plotting.picture import Drawable

SHOWN_ROWS: Final = 5
SHOWN_WIDTH: Final = 120
SHOWN_IN_NOTEBOOK: Final = 30


class Presentable:
    """Base class of results: a subclass provides `table`, and optionally `picture` and `notes`."""

    def table(self) -> Table:
        """The result as a table with units."""
        raise NotImplementedError

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the result, such as assumed inputs; the command line prints them to stderr."""
        return ()

    @property
    def inputs(self) -> tuple[Path, ...]:
        """Files of measurements that the result rests on; it is not written onto them."""
        return ()

    def check_output(self, path: Path) -> None:
        """Raise `UsageError` for the path of an input."""
        if path.resolve() in {file.resolve() for file in self.inputs}:
            raise UsageError(f"{path}: holds the measurements; write the result to another file")

    shows_failures: ClassVar[bool] = False
    """Whether the table is worth printing although there is no answer: its rows then state why."""

    @property
    def optional_columns(self) -> Sequence[Collection[str]]:
        """Groups of columns omitted on a narrow terminal, the first group first."""
        return ()

    def readable_table(self) -> Table:
        """Table for a terminal: as `table`, without empty columns."""
        return worth_showing(self.table())

    def obstacle(self) -> str:
        """Reason why there is no answer, empty if there is one; the command line prints it and exits with 4."""
        return ""

    def interruption(self) -> str:
        """Remark on a result that is incomplete because Ctrl-C was pressed; empty for a complete one."""
        return ""

    def caption(self) -> tuple[str, ...]:
        """Lines below the picture on a terminal; a note among them is not printed again."""
        return ()

    def picture(self) -> Drawable:
        """The result as a plot description. Raise `UsageError` if it has no picture."""
        raise UsageError("this result has no picture")

    def to_pandas(self) -> pd.DataFrame:
        """Data frame of the table, in base units; the units are in `attrs["units"]`."""
        return self.table().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Plain data of the table: `{"notes": {..}, "units": {column: unit}, "rows": [{column: value}]}`."""
        return self.table().to_dict()

    def plot(self, path: str | Path | None = None) -> Figure:
        """Matplotlib figure of the picture (extra `report`); with a path, also a file `.svg`, `.png` or `.pdf`.

        Raise `UsageError` if there is no picture, or the file name has another ending.
        """
        return plotted(self.picture(), path)

    def _repr_html_(self) -> str:
        """The first rows with their units, for a notebook."""
        table, out = worth_showing(self.table()), io.StringIO()
        html_rows(_first_rows(table, SHOWN_IN_NOTEBOOK), out)
        return out.getvalue() + (f"<p>{counted(len(table), 'row')}</p>" if len(table) > SHOWN_IN_NOTEBOOK else "")

    def __repr__(self) -> str:
        """The type, the number of rows, and the first rows, cut at the right."""
        table = worth_showing(self.table())
        lines = column_lines(_first_rows(table, SHOWN_ROWS))
        cut = [line[: SHOWN_WIDTH - 1] + "…" if len(line) > SHOWN_WIDTH else line for line in lines]
        more = ["…"] if len(table) > SHOWN_ROWS else []
        return "\n".join([f"<{type(self).__name__}: {counted(len(table), 'row')}>", *cut, *more])


@dataclass(frozen=True, eq=False, repr=False)
class PresentableTable(Presentable):
    """Table as a result."""

    values: Table

    def table(self) -> Table:
        """The table itself."""
        return self.values


def plotted(description: Drawable, path: str | Path | None) -> Figure:
    """Matplotlib figure of a plot description, also written to `path` if given."""
    from whatif.plotting.picture import draw, write_picture

    if path is not None:
        write_picture(description, Path(path))
    return draw(description)


def _first_rows(table: Table, count: int) -> Table:
    """First rows; for a single row that is too wide, a row for each of its columns."""
    first = table.head(count)
    if len(table) != 1 or max(map(len, column_lines(first))) <= SHOWN_WIDTH:
        return first
    return Table({"result": text_column(first.columns), "value": text_column(next(shown_rows(first)))})
