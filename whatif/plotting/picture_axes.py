"""Plot descriptions on matplotlib axes, with positions in axis space as in terminal plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from whatif.models.quantities import FloatArray
from whatif.plotting.axis_view import Axes as BothAxes
from whatif.plotting.axis_view import (
    AxisView,
    Points,
    Tick,
    axes_of,
    axis_space,
    bars_of,
    heat_axes,
    minor_ticks,
    points_of,
    ticks,
    view_of,
)
from whatif.plotting.bars import BarChart
from whatif.plotting.description import HeatMap, PlotDescription, PlotLine, StackedBar, shorten
from whatif.plotting.marks import draw_picture_marks
from whatif.plotting.picture_style import FONT_SIZE, HATCHES, HEAT, LINES, POINTS, ink, typographic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CHARACTER = 0.56 * FONT_SIZE
"""Approximate width of a character, in points."""
_FEW = 25
"""Most points of a curve that are marked individually."""
_MANY = 100
"""Number of measured points beyond which they are small."""
_BASELINE, _JOIN = ((0, (4, 3)), "x"), (0, (1, 3))
_MARGINS = 0.97
"""Share of a subplot that matplotlib leaves to an axis before the layout, approximately."""
_VECTORS = 600
"""Most cells of a heat map drawn as shapes; larger maps are drawn as a raster."""
_NAME, _BAR_NAME = 28, 48


def draw_curves(axes: Axes, description: PlotDescription, *, named: bool = True) -> None:
    """Draw curves, the first one on top; below them bands, above them points, and next to them the names of all."""
    points = points_of(description)
    views = axes_of(description, points)
    set_axis(axes, "x", views.x)
    set_axis(axes, "y", views.y)
    axes.grid(axis="y", color=ink("rule"), linewidth=0.8)
    ends = []
    ordered = [_ordered(x, y) for x, y in points]
    drawn = list(zip(description.lines, description.line_styles(), description.curve_numbers(), ordered, strict=True))
    _draw_bands(axes, [(style, at) for line, style, _, at in drawn if line.style == "band"])
    for depth, (line, style, number, at) in enumerate(drawn):
        if line.style == "band":
            continue
        manner = {"color": ink(style), "clip_on": _beyond(views, at)}
        if line.style == "points":
            _draw_points(axes, line, description, manner)
        else:
            _draw_curve(axes, description, at, look_of(line, number), {**manner, "zorder": 3 - depth / len(points)})
        ends += [(end, label, ink(style)) for end, label in _named_end(line, at, views)]
    if named:
        _name_ends(axes, ends)
    _draw_markers(axes, views.x, description)
    draw_picture_marks(axes, description, views, (_room(axes, across=True), _room(axes, across=False)))


def _draw_bands(axes: Axes, limits: Sequence[tuple[str, Points]]) -> None:
    """Fill the bands, whose two limits are consecutive lines; a line without a partner is not drawn."""
    for (_, (_, lower)), (style, (x, upper)) in zip(limits[::2], limits[1::2], strict=False):
        axes.fill_between(x, lower, upper, color=ink(style), alpha=0.18, linewidth=0, zorder=2)


def _named_end(line: PlotLine, points: Points, views: BothAxes) -> list[tuple[float, str]]:
    """Height of the end of a line with its label; nothing for one that ends outside of the picture."""
    x, y = points
    known = y[np.isfinite(y) & (x <= views.x.high)]
    if not line.label:
        return []
    if not known.size:
        # A curve below a close-up.
        return [(0.0, f"{line.label} ↓")] if np.isfinite(line.y).any() else []
    end = float(views.y.fraction(known[-1:])[0])
    return [(end, line.label)] if 0 <= end <= 1 else []


def _ordered(x: FloatArray, y: FloatArray) -> Points:
    """Points by x; with gaps in x, which separate parts of a line, as they are."""
    order = np.argsort(x, kind="stable") if np.isfinite(x).all() else slice(None)
    return x[order], y[order]


def look_of(line: PlotLine, number: int) -> tuple[Any, str]:
    """Dashes and marker of a curve by its number."""
    return _BASELINE if line.style == "baseline" else (LINES[number % len(LINES)], POINTS[number % len(POINTS)])


def _beyond(views: BothAxes, points: Points) -> bool:
    """Whether some point is beyond the axes; else a marker at the end of one may be drawn over it."""
    fractions = [view.fraction(places[np.isfinite(places)]) for view, places in zip(views, points, strict=True)]
    return any(bool(np.any((shares < 0) | (shares > 1))) for shares in fractions)


def _draw_curve(
    axes: Axes, description: PlotDescription, points: Points, look: tuple[Any, str], manner: Mapping[str, Any]
) -> None:
    """Draw a curve; of whole numbers as points that a faint line joins, and no line where values of x repeat."""
    x, y = points
    dashes, marker = look
    steps = np.diff(x)
    joined = not description.x.ticks and bool(np.all(steps[np.isfinite(steps)] > 0))
    marked = not joined or x.size <= _FEW
    if joined and marked and description.x.whole:
        axes.plot(x, y, linestyle=_JOIN, linewidth=0.9, alpha=0.6, **manner)
        joined = False
    axes.plot(x, y, linestyle=dashes if joined else "", marker=marker if marked else "", **manner)


def _draw_points(axes: Axes, line: PlotLine, description: PlotDescription, manner: Mapping[str, Any]) -> None:
    """Draw measured points above all curves, with their error bars."""
    x, low, high = bars_of(line, description)
    axes.vlines(x, low, high, linewidth=1, zorder=3.5, **manner)
    axes.plot(x, axis_space(line.y, description.y), zorder=4, **point_look(line), **manner)


def point_look(line: PlotLine) -> dict[str, Any]:
    """Marker of measured points: in the colour of a curve they are hollow, to differ from its own ones."""
    many = line.x.size > _MANY
    look: dict[str, Any] = {"markeredgecolor": ink("ground"), "markeredgewidth": 0 if many else 0.6}
    if line.of:
        look = {"markerfacecolor": ink("ground"), "markeredgewidth": 1.4}
    return {"linestyle": "", "marker": "o", "markersize": 2.5 if many else 4.5 + bool(line.of), **look}


def _name_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write names next to the ends of curves, without overlap."""
    gap = 1.45 * FONT_SIZE / _room(axes, across=False)
    lowest = 0.0
    places: list[tuple[float, str, str]] = []
    for end, label, colour in sorted(ends):
        lowest = max(end, lowest + gap if places else end)
        places.append((lowest, label, colour))
    for at, (place, label, colour) in enumerate(reversed(places)):
        axes.text(
            1.015, min(place, 1.0 - at * gap), shorten(label, _NAME), color=colour, va="center",
            transform=axes.transAxes, weight="bold",
        )  # fmt: skip


def _draw_markers(axes: Axes, view: AxisView, description: PlotDescription) -> None:
    """Draw vertical lines with their names above the plot, on two lines where they would overlap."""
    placed = ((float(axis_space(np.array(marker.x), description.x)), marker.label) for marker in description.markers)
    end, raised = -np.inf, False
    for place, label in sorted((place, label) for place, label in placed if view.low <= place <= view.high):
        name = shorten(label, _NAME)
        centre, half = float(view.fraction(np.array(place))) * _room(axes, across=True), 0.5 * _CHARACTER * len(name)
        raised = centre - half < end and not raised
        end = centre + half + _CHARACTER
        axes.axvline(place, color=ink("faint"), linewidth=1, linestyle=(0, (2, 2)))
        axes.annotate(name, (place, 1), (0, 3 + 1.2 * FONT_SIZE * raised), xycoords=axes.get_xaxis_transform(),
                      textcoords="offset points", color=ink("muted"), ha="center", va="bottom", size=FONT_SIZE - 1,
                      annotation_clip=False)  # fmt: skip


def draw_heat(axes: Axes, description: HeatMap, *, scale: bool = True) -> None:
    """Draw a heat map in colours that become lighter with the value, and their scale next to it.

    Missing values show the hatched background.
    """
    views = heat_axes(description)
    set_axis(axes, "x", views.x)
    set_axis(axes, "y", views.y)
    axes.fill([0, 1, 1, 0], [0, 0, 1, 1], transform=axes.transAxes, facecolor=ink("rule"),
              edgecolor=ink("faint"), hatch="////", linewidth=0, zorder=0)  # fmt: skip
    xs, ys = axis_space(description.xs, description.x), axis_space(description.ys, description.y)
    across, up = (np.argsort(places)[: np.isfinite(places).sum()] for places in (xs, ys))
    values = axis_space(description.values, description.z)[np.ix_(across, up)].T
    if not values.size or not np.isfinite(values).any():
        return
    mesh = axes.pcolormesh(
        _borders(xs[across], views.x), _borders(ys[up], views.y), np.ma.masked_invalid(values), cmap=HEAT,
        edgecolors="face", linewidth=0.3, rasterized=values.size > _VECTORS, zorder=1,
    )  # fmt: skip
    _name_colours(axes, mesh, description, values, scale=scale)
    if description.here is not None:
        axis_places = zip(description.here, (description.x, description.y), strict=True)
        x, y = (float(axis_space(np.array(value), axis)) for value, axis in axis_places)
        if views.x.low <= x <= views.x.high and views.y.low <= y <= views.y.high:
            axes.plot(x, y, marker="o", color=ink("ground"), markeredgecolor=ink("ink"), markersize=8, zorder=4)
            ground = {"facecolor": ink("ground"), "edgecolor": "none", "pad": 1.5}
            axes.annotate("now", (x, y), (8, 8), textcoords="offset points", color=ink("ink"), bbox=ground)
    draw_picture_marks(axes, description, views, (_room(axes, across=True), _room(axes, across=False)))


def _name_colours(axes: Axes, mesh: Any, description: HeatMap, values: FloatArray, *, scale: bool) -> None:
    view = view_of(description.z, [values], roomy=False)
    mesh.set_clim(view.low, view.high)
    if not scale:
        return
    bar = _figure(axes).colorbar(mesh, ax=axes, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    found = ticks(view, _fits(axes, across=False))
    bar.set_ticks([tick.position for tick in found], labels=[typographic(tick.label) for tick in found])
    bar.set_label(typographic(view.label(_NAME)))


def _borders(places: FloatArray, view: AxisView) -> FloatArray:
    return np.concatenate([[view.low], (places[1:] + places[:-1]) / 2, [view.high]])


def draw_bars(axes: Axes, chart: BarChart) -> None:
    """Draw bars from top to bottom with their values after them, on an axis that shows zero."""
    ends = np.array([value for row in chart.rows for value in (row.start, row.end, *(row.band or ()))] or [0.0])
    # The text before a negative bar must not overlap the names.
    room = 0.15 * float(np.ptp(ends)) if ends.min() < 0 else 0.0
    set_axis(axes, "x", view_of(chart.x, [np.append(ends, [0.0, ends.min() - room])], roomy=True))
    axes.grid(axis="x", color=ink("rule"), linewidth=0.8)
    axes.axvline(0.0, color=ink("faint"), linewidth=1, zorder=1)
    # The line of the reference must not cross the texts.
    ground = None if chart.reference is None else {"facecolor": ink("ground"), "edgecolor": "none", "pad": 1}
    for at, row in enumerate(chart.rows):
        place: dict[str, Any] = {"width": row.end - row.start, "left": row.start, "height": 0.62, "zorder": 2}
        # The edge in the colour of a bar keeps it visible however short it is.
        axes.barh(at, color=ink(row.style), **place)
        if chart.legend and HATCHES.get(row.style):
            axes.barh(at, **place, **pattern_of(row.style))
        left, places = row.end < 0, (row.start, row.end, *(row.band or ()))
        if row.band is not None:
            _draw_whisker(axes, at, row.band)
        axes.annotate(
            typographic(row.text), (min(places) if left else max(places), at),
            (-4 if left else 4, 0), textcoords="offset points", ha="right" if left else "left", va="center",
            color=ink("ink"), bbox=ground,
        )  # fmt: skip
    if chart.reference is not None:
        axes.axvline(chart.reference, color=ink("ink"), linewidth=1, linestyle=(0, (4, 3)), zorder=2.5)
    axes.set_ylim(len(chart.rows) - 0.4, -0.6)
    axes.set_yticks(range(len(chart.rows)), labels=[shorten(row.label, _BAR_NAME) for row in chart.rows])
    axes.tick_params(axis="y", length=0, labelcolor=ink("ink"))
    axes.spines["left"].set_visible(False)
    draw_legend(axes, chart.legend)


def pattern_of(style: str) -> dict[str, Any]:
    """Pattern of bars of a style, without a colour of its own."""
    return {"facecolor": "none", "edgecolor": ink("ground"), "linewidth": 0, "hatch": HATCHES.get(style, "")}


def _draw_whisker(axes: Axes, at: int, band: tuple[float, float]) -> None:
    """Draw an uncertainty interval over its bar, with caps at its ends, and a margin that sets it off the bar."""
    axes.plot(band, (at, at), color=ink("ground"), linewidth=3.4, zorder=3.9)
    axes.hlines(at, *band, color=ink("ink"), linewidth=1.4, zorder=4)
    axes.plot(band, (at, at), linestyle="", marker="|", markersize=6, color=ink("ink"), zorder=4)


def draw_legend(axes: Axes, meanings: Sequence[tuple[str, str]], lines: Sequence[tuple[str, str]] = ()) -> None:
    """Draw the meanings of styles of bars, and of lines, above the axes."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if meanings or lines:
        handles: list[Any] = [
            Patch(label=shorten(name, _BAR_NAME), **pattern_of(style) | {"facecolor": ink(style)})
            for style, name in meanings
        ]
        handles += [Line2D([], [], label=name, color=ink(style)) for style, name in lines]
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 0.99), ncols=len(handles), borderaxespad=0,
                    handlelength=1, handleheight=1, borderpad=0.3)  # fmt: skip


def draw_stack(axes: Axes, bar: StackedBar) -> None:
    """Draw the parts of a whole side by side, with their shares if there is space."""
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(-0.5, 0.5))
    left, width = 0.0, _room(axes, across=True)
    for share, style in zip(bar.shares(), bar.styles(), strict=True):
        axes.barh(0, share, left=left, height=0.9, **pattern_of(style) | {"facecolor": ink(style), "linewidth": 1})
        if share * width > 6 * _CHARACTER:
            box = {"facecolor": ink(style), "edgecolor": "none", "pad": 1.5}
            axes.text(left + share / 2, 0, f"{share:.0%}", ha="center", va="center", color=ink("ground"), weight="bold",
                      bbox=box)  # fmt: skip
        left += share
    draw_legend(axes, [(style, segment.label) for segment, style in zip(bar.segments, bar.styles(), strict=True)])


def set_axis(axes: Axes, which: str, view: AxisView) -> None:
    """Set limits, ticks and label of an axis, as in terminal plots."""
    across = which == "x"
    found = ticks(view, _fits(axes, across=across))
    (axes.set_xlim if across else axes.set_ylim)(view.low, view.high)
    (axes.set_xticks if across else axes.set_yticks)(
        [tick.position for tick in found], labels=[typographic(tick.label) for tick in found]
    )
    near = 2 * (view.high - view.low) / _room(axes, across=across)
    minor = minor_ticks(view, lambda positions: all(after - before >= near for before, after in pairwise(positions)))
    (axes.set_xticks if across else axes.set_yticks)(minor, minor=True)
    width = int(_room(axes, across=across) / _CHARACTER)
    # A plot below another one has its x axis.
    label = view.label(width) if view.description.label or not across else ""
    (axes.set_xlabel if across else axes.set_ylabel)(typographic(shorten(label, width)))


def _fits(axes: Axes, *, across: bool) -> Callable[[Sequence[Tick]], bool]:
    """Function that checks whether labels fit on an axis."""
    room = _room(axes, across=across)
    if across:
        return lambda found: sum((len(tick.label) + 3) * _CHARACTER for tick in found) <= room
    return lambda found: len(found) * 2.5 * FONT_SIZE <= room


def _room(axes: Axes, *, across: bool) -> float:
    """Approximate length of an axis in points."""
    place = axes.get_position()
    share = place.width if across else place.height
    return _MARGINS * 72 * share * float(_figure(axes).get_size_inches()[0 if across else 1])


def _figure(axes: Axes) -> Figure:
    figure: Any = axes.get_figure(root=True)
    return cast("Figure", figure)
