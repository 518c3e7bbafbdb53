"""Presentable results: one table, and optionally one picture, for all ways to show them."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from whatif.errors import UsageError
from whatif.table import Table
from whatif.table_writers import TABLE_WRITERS, worth_showing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from whatif.plotting.picture import Drawable

SHOWN_ROWS: Final = 5
SHOWN_WIDTH: Final = 120


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

    def document_table(self) -> Table:
        """Table for Markdown and HTML: as `table`, with errors and shares in per cent."""
        return self.table()

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
        """The table, for a notebook."""
        return self.table()._repr_html_()

    def __repr__(self) -> str:
        """The type, the number of rows, and the first rows."""
        table = worth_showing(self.table())
        return f"<{type(self).__name__}: {len(table)} rows>\n{_head(table)}"


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


def _head(table: Table) -> str:
    out = io.StringIO()
    TABLE_WRITERS["table"](table.head(SHOWN_ROWS), out)
    lines = [line[: SHOWN_WIDTH - 1] + "…" if len(line) > SHOWN_WIDTH else line for line in out.getvalue().splitlines()]
    return "\n".join([*lines, "…"] if len(table) > SHOWN_ROWS else lines)
