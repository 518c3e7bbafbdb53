"""Values of a point of a sweep as edits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from whatif.axes import Axis
from whatif.core.session import CURVE_POINTS, Session
from whatif.core.sweep import PLATFORM_PARAMETER
from whatif.core.sweep_figure import axis_description, axis_positions
from whatif.core.term import Program
from whatif.errors import UsageError
from whatif.plotting.crosshair import nearest
from whatif.plotting.description import Description, HeatMap
from whatif.tui.commands.explorer_commands import Adopt, Also, Change, Edit, EditAll, SweepParameter
from whatif.units import exact_quantity, format_quantity, parse_quantity


def point_of(session: Session, plot: Description, cross: tuple[float, float]) -> tuple[int, ...]:
    """Index on each axis of a sweep that a crosshair chooses: the first one on curves, two on a heat map."""
    described = (plot.x, plot.y) if isinstance(plot, HeatMap) else (plot.x,)
    axes = zip(session.grid.axes, described, cross, strict=False)
    found = (nearest(axis_positions(axis), value, described) for axis, described, value in axes)
    return tuple(0 if at is None else at for at in found)


def edits_at(session: Session, index: Sequence[int]) -> list[Change]:
    """Commands that give the swept parameters their values at a point; values that they have are left out."""
    texts = [
        (path, text_of(session.program, path, values[at]))
        for axis, at in zip(session.grid.axes, index, strict=False)
        for path, values in axis.parameters.items()
    ]
    platform: list[Change] = [Adopt(text) for path, text in texts if path == PLATFORM_PARAMETER]
    program = session.program.parameters
    pairs = tuple((path, text) for path, text in texts if path in program and program[path].text() != text)
    edits: list[Change] = [Edit(*pairs[0]) if len(pairs) == 1 else EditAll(pairs)] if pairs else []
    return [*platform, *edits]


def part_of_sweep(session: Session, parts: Sequence[tuple[float, float] | None]) -> list[Change]:
    """Commands that sweep a part of each axis, alone with the most points of a curve; None keeps the whole axis.

    Raise `UsageError` for choices, and for parameters that are swept together.
    """
    axes = session.grid.axes[:2]
    if any(len(axis.parameters) > 1 for axis in axes):
        raise UsageError("parameters that are swept together have no part of their own")
    texts = [
        next(iter(axis.texts.values())) if part is None else _range(session, axis, part, len(axes) > 1)
        for axis, part in zip(axes, parts, strict=False)
    ]
    paths = [next(iter(axis.parameters)) for axis in axes]
    first, *others = zip(paths, texts, strict=True)
    return [SweepParameter(*first), *(Also(*other) for other in others)]


def _range(session: Session, axis: Axis, part: tuple[float, float], shared: bool) -> str:
    """Range of an axis as text; of two axes each keeps its number of points."""
    (path, values), (low, high) = next(iter(axis.parameters.items())), part
    parameter = session.program.parameters.get(path)
    if values.dtype == object or parameter is None or parameter.field is None:
        raise UsageError(f"{path}: choices have no values in between")
    count = len(axis) if shared else CURVE_POINTS
    if parameter.field.domain.whole:
        first, last = math.ceil(low), math.floor(high)
        return f"{first} .. {last} step {max(1, math.ceil((last - first) / count))}"
    ends = " .. ".join(format_quantity(end, parameter.dimension, 6) for end in part)
    return f"{ends} {axis_description(session.result, axis).scale.value} {count}"


def adopted_words(session: Session, changes: Sequence[Change]) -> str:
    """Description of the adopted values, in a sentence."""
    pairs = [pair for change in changes for pair in _pairs(change)]
    program = session.program.parameters
    words = [
        f"{path.rpartition('.')[2]} = {text}{f' ({program[path].text()} before)' if path in program else ''}"
        for path, text in pairs
    ]
    return f"adopted {', '.join(words)}; u undoes it" if words else "these are the present values"


def _pairs(change: Change) -> tuple[tuple[str, str], ...]:
    if isinstance(change, Edit):
        return ((change.path, change.text),)
    if isinstance(change, EditAll):
        return change.texts
    return ((PLATFORM_PARAMETER, change.name),) if isinstance(change, Adopt) else ()


def text_of(program: Program, path: str, value: object) -> str:
    """Value of a parameter: choices and whole numbers exactly, others in six digits, as a nudge has them."""
    parameter = program.parameters.get(path)
    if isinstance(value, str) or parameter is None or parameter.field is None:
        return str(value)
    number = float(str(value))
    short = format_quantity(number, parameter.dimension, 6)
    kept = not parameter.field.domain.whole and parameter.field.domain.accepts(parse_quantity(short).value)
    return short if kept else exact_quantity(number, parameter.dimension)
