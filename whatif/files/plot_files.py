"""A plot as a file: a picture, the table of its numbers, or the command line that makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from whatif.atomic import atomic_file
from whatif.core.sweep_figure import plot_table
from whatif.errors import UsageError
from whatif.limits import PICTURES, TABLE_FORMATS
from whatif.plotting.axis_view import axis_space
from whatif.plotting.description import Description, PlotStack
from whatif.plotting.picture import write_picture
from whatif.table import Table
from whatif.table_writers import FILE_WRITERS, FORMATS_BY_SUFFIX

SCRIPT: Final = ".sh"
PLOT_SUFFIXES: Final = (
    *PICTURES, *(suffix for suffix, name in FORMATS_BY_SUFFIX.items() if name in TABLE_FORMATS), SCRIPT
)  # fmt: skip


def write_plot(description: Description | PlotStack, path: Path, command: str) -> str:
    """Message about a plot that is written, with its visible part and its marks, in the format of the file name.

    A table has the visible points. Raise `UsageError` for another suffix, or a file that cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in PLOT_SUFFIXES:
        found = f"`{path.suffix}` is no known format" if path.suffix else "the name has no ending"
        raise UsageError(f"{path}: {found}: use {', '.join(PLOT_SUFFIXES)}")
    if suffix in PICTURES:
        write_picture(description, path)
        return f"written to {path}"
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        if suffix == SCRIPT:
            file.write(f"#!/bin/sh\n{command.rstrip()}\n")
        else:
            FILE_WRITERS[FORMATS_BY_SUFFIX[suffix]](visible_table(description), file)
    return f"written to {path}"


def visible_table(description: Description | PlotStack) -> Table:
    """Table of the points of a plot within the limits of its x axis."""
    table = plot_table(description)
    axis = description.above.x if isinstance(description, PlotStack) else description.x
    if axis.limits is None or axis.ticks:
        return table
    places = axis_space(next(iter(table.columns.values())).values, axis)
    return table.at(np.asarray((places >= axis.limits[0]) & (places <= axis.limits[1])))
