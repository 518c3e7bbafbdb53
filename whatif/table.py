"""Tables: named columns with units, as returned by sweeps and importers and written to files."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import abridged
from whatif.units import JOULE, ONE, Dimension, counted, format_quantity, parse_unit

if TYPE_CHECKING:
    import pandas as pd

_NAMED: Final = 6
_SHARES: Final = ("_fraction", "_utilisation", "goodput", "residual")


@dataclass(frozen=True, eq=False)
class Column:
    """Values of a column and their dimension; None for texts."""

    values: NDArray[Any]
    dimension: Dimension | None = None
    written: str = ""
    """Unit in which the values were written, such as `ms`; empty for the base unit, or if it is not known."""
    is_share: bool = False
    """Whether people read the values in per cent, with signs if there are negative ones."""

    @property
    def size(self) -> float:
        """Size in base units of the written unit."""
        return parse_unit(self.written)[1] if self.written else 1.0

    def as_written(self) -> NDArray[Any]:
        """Values in the written unit."""
        return self.values / self.size if self.written else self.values

    def text(self, value: float) -> str:
        """Text of one of its numbers for people."""
        if self.is_share and math.isfinite(value):
            sign = "+" if value > 0 and self._has_negative else ""
            return sign + share_text(value)
        return format_quantity(value, self.dimension or ONE, 5, self._least_energy)

    @cached_property
    def _has_negative(self) -> bool:
        return bool((self.values < 0).any())

    @cached_property
    def _least_energy(self) -> float:
        """Smallest of several energies, which all have its unit, J or Wh; infinite for other columns."""
        sizes = np.abs(self.values) if self.dimension == JOULE else np.empty(0)
        return float(np.min(sizes, where=np.isfinite(sizes) & (sizes > 0), initial=math.inf))

    @property
    def unit(self) -> str:
        """Base unit of the values; empty for texts and plain numbers."""
        unit = "" if self.dimension is None else str(self.dimension)
        return "" if unit == "1" else unit


@dataclass(frozen=True, eq=False)
class Table:
    """Table of columns of equal length by name, with notes on their origin."""

    columns: Mapping[str, Column]
    notes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_rows(
        cls,
        columns: Mapping[str, Dimension | None],
        rows: Sequence[Sequence[Any]],
        notes: Mapping[str, str] | None = None,
        shares: Collection[str] = (),
    ) -> Table:
        """Table of rows with one cell per column; columns without a dimension hold objects such as texts.

        People read the columns `shares`, and those with the names of shares and relative residuals, in per cent.
        """
        cells: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(columns)
        read_in_percent = {*shares, *filter(names_share, columns)}
        filled = {
            name: Column(
                np.array(values, dtype=object if dimension is None else np.float64),
                dimension,
                is_share=name in read_in_percent,
            )
            for (name, dimension), values in zip(columns.items(), cells, strict=True)
        }
        return cls(filled, dict(notes or {}))

    def __repr__(self) -> str:
        """Number of rows, and the names of the columns."""
        return f"<{type(self).__name__}: {counted(len(self), 'row')} of {abridged(list(self.columns), _NAMED)}>"

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).values) if self.columns else 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the importer that read it."""
        return tuple(self.notes.get("warnings", "").splitlines())

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Values of the columns by name."""
        return {name: column.values for name, column in self.columns.items()}

    def at(self, rows: slice | NDArray[Any]) -> Table:
        """Some rows: a slice, their numbers, or a mask."""
        columns = {name: replace(column, values=column.values[rows]) for name, column in self.columns.items()}
        return Table(columns, self.notes)

    def head(self, count: int) -> Table:
        """Table of the first rows."""
        return self.at(slice(count))

    def with_texts(self, name: str, texts: Iterable[str]) -> Table:
        """The table with a further column of texts."""
        return Table({**self.columns, name: text_column(texts)}, self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data in base units: `{"notes": {..}, "units": {column: unit}, "rows": [{column: value}]}`."""
        units = {name: column.unit for name, column in self.columns.items() if column.unit}
        return {"notes": dict(self.notes), "units": units, "rows": list(self.records())}

    def to_pandas(self) -> pd.DataFrame:
        """Data frame in base units; `attrs` has the units of the columns and the notes."""
        import pandas

        frame = pandas.DataFrame(self.arrays)
        frame.attrs.update(units={name: column.unit for name, column in self.columns.items()}, **self.notes)
        return frame

    def _repr_html_(self) -> str:
        """HTML of the table with its units, for a notebook."""
        frame = self.to_pandas()
        units = frame.attrs["units"]
        return str(frame.rename(columns={name: f"{name} [{unit}]" for name, unit in units.items() if unit}).to_html())

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Rows as plain Python values: floats, texts, None for missing values."""
        lists = [_plain(column.values) for column in self.columns.values()]
        return zip(*lists, strict=True)

    def records(self) -> Iterator[dict[str, Any]]:
        """Rows as plain Python values by column."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows())


def noted(notes: Mapping[str, str], warnings: Iterable[str] = ()) -> dict[str, str]:
    """Notes with warnings, a line each (`Table.warnings`); empty notes are left out."""
    texts = {**notes, "warnings": "\n".join(warnings)}
    return {name: text for name, text in texts.items() if text}


def names_share(name: str) -> bool:
    """Whether a column or result with this name is a share or a relative residual, which people read in per cent."""
    return name.endswith(_SHARES)


def share_text(value: float) -> str:
    """Text of a share for people."""
    return f"{format_quantity(100 * value, ONE, 3)}%"


def number_text(name: str, value: float, dimension: Dimension, digits: int = 4) -> str:
    """Text of a result with this name for people: a share in per cent, other numbers with their unit."""
    is_share = names_share(name) and math.isfinite(value)
    return share_text(value) if is_share else format_quantity(value, dimension, digits)


def share_column(values: NDArray[Any]) -> Column:
    """Column of shares or relative errors, which people read in per cent."""
    return Column(values, ONE, is_share=True)


def warned(lines: Iterable[str]) -> tuple[str, ...]:
    """Distinct lines as notes that begin with `warning:`."""
    return tuple(f"warning: {line}" for line in dict.fromkeys(lines))


def text_column(items: Iterable[str]) -> Column:
    """Column of texts."""
    return Column(np.array(list(items), dtype=object))


def _plain(values: NDArray[Any]) -> list[Any]:
    items: list[Any] = values.tolist()
    if values.dtype == np.float64 and not np.isfinite(values).all():
        return [item if math.isfinite(item) else None for item in items]
    return items
