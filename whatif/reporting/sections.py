"""Sections of a report: pictures with the tables of their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from whatif.axes import Axis, first_number
from whatif.core.result import CATEGORY_TIMES, Result
from whatif.core.scenario import Scenario
from whatif.core.sweep_figure import Y_COLUMN, breakdown, figure, heat_map, with_distinct_positions
from whatif.plotting.description import BarSegment, PlotStack, StackedBar
from whatif.plotting.picture import Drawable, inline_svg
from whatif.plotting.picture_style import typographic
from whatif.reporting.contents import Findings
from whatif.studies.attribution import Attribution, Change
from whatif.studies.bar_charts import category_styles, names_of, phase_bars, tornado_bars, waterfall_bars
from whatif.studies.elasticity import Elasticity
from whatif.table import Column, Table, share_text
from whatif.table_writers import shown_rows, worth_showing
from whatif.units import SECOND, Dimension, format_quantity

if TYPE_CHECKING:
    from markupsafe import Markup

WHOLE_RUN: Final = ("total_time", "setup_time")
_MOST_ROWS: Final = 40
_MOST_PARAMETERS: Final = 24


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Table of texts; `numeric` columns are right-aligned."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    named: bool = False
    """Whether the first cell of a row is its heading."""

    @classmethod
    def of(
        cls, heads: Iterable[str], rows: Iterable[Iterable[object]], words: Iterable[str] = (), *, named: bool = False
    ) -> ReportTable:
        """Table of texts; all columns are numbers except the first one and those in `words`."""
        heads, known = tuple(heads), set(words)
        cells = tuple(tuple(typographic(str(cell)) for cell in row) for row in rows)
        numeric = tuple(bool(at) and head not in known for at, head in enumerate(heads))
        return cls(heads, cells, numeric, named)


@dataclass(frozen=True, slots=True)
class ReportItem:
    """Picture with its caption, table with its title, or both."""

    caption: str = ""
    picture: Markup | None = None
    title: str = ""
    sheet: ReportTable | None = None


Section = tuple[ReportItem, ...]


def picture_of(caption: str, description: Drawable) -> Markup:
    """Picture as an element of the page, with its caption as accessible label."""
    from markupsafe import Markup

    untitled = description if isinstance(description, StackedBar | PlotStack) else replace(description, title="")
    # Nothing but a picture that was drawn here is markup; matplotlib escapes the texts in it.
    return Markup(inline_svg(untitled, caption))  # noqa: S704


def _sheet(table: Table) -> ReportTable:
    rows = tuple(tuple(typographic(cell) for cell in row) for row in shown_rows(table))
    return ReportTable(
        tuple(table.columns), rows, tuple(column.dimension is not None for column in table.columns.values())
    )


def _results(table: Table) -> dict[str, Column]:
    """Columns of a table, without phases and without columns that are 0 everywhere."""
    found = {name: column for name, column in table.columns.items() if not name.startswith("terms.")}
    always = (Y_COLUMN, WHOLE_RUN[0])
    return {n: c for n, c in found.items() if c.dimension is None or n in always or np.nansum(c.values)}


def answer(found: Findings) -> Section:
    """Section on all results with their share of an iteration, and the iteration by category."""
    if found.point.reasons:
        return ()
    whole = float(found.point.columns[Y_COLUMN])
    rows: list[list[str]] = []
    for name, column in _results(found.point.table()).items():
        if column.dimension is not None:
            part = name in (Y_COLUMN, *CATEGORY_TIMES) and whole > 0
            share = f"{column.values[0] / whole:.1%}" if part else ""
            number = float(column.values[0])
            text = share_text(number) if column.is_share else format_quantity(number, column.dimension)
            rows.append([name, text, share])
    sheet = ReportTable.of(("result", "value", "of the iteration"), rows)
    bar = breakdown(found.point, "category")
    styles = category_styles(segment.label for segment in bar.segments if segment.value > 0)
    parts = tuple(BarSegment(s.label, s.value, styles[s.label]) for s in bar.segments if s.label in styles)
    caption = "One iteration by kind of work"
    picture = picture_of(caption, StackedBar(parts, bar.dimension)) if parts else None
    return (ReportItem(caption, picture, "", sheet),)


def phases(found: Findings) -> Section:
    """Section on the phases of an iteration in time."""
    if found.timeline is None:
        return ()
    whole = found.timeline.iteration_time
    rows = [
        (bar.phase, bar.category, format_quantity(bar.start, SECOND), format_quantity(bar.duration, SECOND),
         f"{bar.duration / whole:.1%}" if whole > 0 else "")
        for bar in found.timeline.bars
    ]  # fmt: skip
    heads = ("phase", "kind of work", "starts", "takes", "of the iteration")
    caption = "One iteration phase by phase"
    picture = picture_of(caption, phase_bars(found.scenario.program, found.timeline))
    return (ReportItem(caption, picture, "", ReportTable.of(heads, rows, heads[1:2])),)


@dataclass(frozen=True, slots=True)
class ReportSweep:
    """Axes as written, infeasible points, and pictures of a sweep."""

    axes: tuple[tuple[str, str], ...]
    size: int
    infeasible: int
    reasons: tuple[str, ...]
    section: Section


def sweep(found: Findings, result: Result) -> ReportSweep:
    """Section on the sweep: pictures and a table."""
    axes = tuple((path, axis.texts.get(path, "")) for axis in result.grid.axes for path in axis.parameters)
    drawn = () if result.infeasible == result.grid.size else tuple(_curves(found, result))
    return ReportSweep(axes, result.grid.size, result.infeasible, result.reasons, (*drawn, _points(result)))


def _curves(found: Findings, result: Result) -> Iterator[ReportItem]:
    """Curves, or a family of curves and a map, of the iteration time and of the first result in each other unit."""
    units = {column.dimension: name for name, column in reversed(_results(result.table()).items())}
    others = [name for unit, name in units.items() if unit != SECOND and name in result.columns]
    here = [_here(found, axis) for axis in result.grid.axes[:2]]
    for name in (Y_COLUMN, *others):
        caption = f"{name} over the sweep"
        yield ReportItem(caption, picture_of(caption, with_distinct_positions(figure(result, name, here[0]), result)))
        if len(here) > 1 and min(result.grid.shape[:2]) > 2:
            heat = heat_map(result, name, (here[0], here[1]))
            caption = f"{name} over both axes{'' if np.isfinite(heat.values).all() else '; hatched: no answer'}"
            yield ReportItem(caption, picture_of(caption, heat))


def _here(found: Findings, axis: Axis) -> float | None:
    """Present value of the first parameter of an axis, if it is a number."""
    path, values = next(iter(axis.parameters.items()))
    return None if values.dtype == object or path not in found.at.values else first_number(found.at.values[path])


def _points(result: Result) -> ReportItem:
    """Table of the points, at most a few."""
    columns = _results(result.table())
    if len(result.reasons) == 1:
        # It is above the pictures; a row without numbers needs no other text.
        del columns["infeasible"]
    table = worth_showing(Table(columns))
    chosen = np.unique(np.linspace(0, len(table) - 1, min(len(table), _MOST_ROWS)).round().astype(int))
    few = Table({name: Column(column.values[chosen], column.dimension) for name, column in table.columns.items()})
    title = "" if len(few) == len(table) else f"{len(few)} of {len(table)} points"
    return ReportItem(title=title, sheet=_sheet(few))


def sensitivity(found: Findings) -> Section:
    """Section on sensitivity: tornado of elasticities and ladder of ideals."""
    telling = [item for item in found.elasticities if item.elasticity and not item.reason]
    return (*([_tornado(found, telling)] if telling else []), *_ladder(found))


def _tornado(found: Findings, telling: list[Elasticity]) -> ReportItem:
    program = found.scenario.program
    rows = (
        (item.path, item.value, f"{item.elasticity:+.3g}", program.parameters[item.path].grade)
        for item in telling[:_MOST_PARAMETERS]
    )
    caption = f"What {Y_COLUMN} follows most: by how many percent it moves for one percent of a value"
    title = f"{min(len(telling), _MOST_PARAMETERS)} of the {len(telling)} values that it follows"
    sheet = ReportTable.of(("value", "now", "elasticity", "grade"), rows, ("grade",))
    return ReportItem(caption, picture_of(caption, tornado_bars(program, Y_COLUMN, telling)), title, sheet)


def _ladder(found: Findings) -> Section:
    if found.ladder is None or not found.ladder.rungs:
        return ()
    program, whole = found.scenario.program, found.ladder.time
    dimension = program.dimension_of(found.ladder.result)
    rows = [
        (rung.part, *(format_quantity(value, dimension) for value in (rung.saved, rung.left)),
         f"{rung.left / whole:.1%}" if whole else "")
        for rung in found.ladder.rungs
    ]  # fmt: skip
    caption = "Cumulative idealisation: a part and all above it with infinite rates and no fixed times"
    sheet = ReportTable.of(("ideal", "saved", "left", "of the whole"), rows)
    return (ReportItem(caption, picture_of(caption, found.ladder.picture()), "", sheet),)


@dataclass(frozen=True, slots=True)
class Against:
    """Other scenario, both results in a sentence, and the attribution of their difference."""

    name: str
    sentence: str
    section: Section


def against(found: Findings, other: Scenario) -> Against:
    """Section on the difference from the other scenario."""
    names = names_of(found.scenario, other)
    section = () if found.attribution is None else (_difference(found, found.attribution, names),)
    return Against(names[1], _both(found, names), section)


def _both(found: Findings, names: tuple[str, str]) -> str:
    """Iteration times of both scenarios."""
    if found.point.reasons or found.other_point is None or found.other_point.reasons:
        return "Not both sides have an answer."
    before, after = (float(point.columns[Y_COLUMN]) for point in (found.point, found.other_point))
    dimension = found.scenario.program.dimension_of(Y_COLUMN)
    first, second = (format_quantity(value, dimension) for value in (before, after))
    change = f", {after / before - 1:+.1%}" if before else ""
    return typographic(f"One iteration takes {first} on {names[0]} and {second} on {names[1]}{change}.")


def _explained(change: Change, dimension: Dimension) -> str:
    """Contribution of a change, with its error if that is more than rounding."""
    error, text = change.standard_error, format_quantity(change.contribution, dimension)
    return f"{text} ± {format_quantity(error, dimension, 2)}" if error > 1e-6 * abs(change.contribution) else text


def _difference(found: Findings, attribution: Attribution, names: tuple[str, str]) -> ReportItem:
    program = found.scenario.program
    dimension, total = program.dimension_of(attribution.result), attribution.after - attribution.before
    rows = [
        (change.name, change.before, change.after, _explained(change, dimension),
         f"{change.contribution / total:+.1%}" if total else "")
        for change in attribution.changes
    ]  # fmt: skip
    caption = f"From {names[0]} to {names[1]}, whatever the order of the changes (Shapley values)"
    title = f"{len(attribution.without_effect)} other values differ and explain nothing"
    sheet = ReportTable.of(("change", *names, "explains", "of the difference"), rows, names)
    return ReportItem(caption, picture_of(caption, waterfall_bars(attribution, names)), title, sheet)
