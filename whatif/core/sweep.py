"""Sweeps: what a person writes becomes axes; a grid is evaluated in chunks, structural values one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.axes import Axis, Grid
from whatif.core.term import Program
from whatif.errors import InvalidFileError, Problem, UsageError, did_you_mean
from whatif.schema.explain_errors import known_keys
from whatif.schema.fields import QuantityField
from whatif.schema.parameters import Parameter
from whatif.schema.parts import KINDS
from whatif.schema.scenario_spec import ScenarioSpec

PLATFORM_LEAF: Final = "platform"

RANGE: Final = re.compile(
    r"(?P<start>.+?)\s*\.\.\s*(?P<stop>.+?)(?:\s+|\s*:\s*)(?P<kind>linear|log|step)(?:\s+|\s*:\s*)(?P<last>.+)"
)
_HINT = "write `1, 2, 4`, `START .. STOP linear N`, `START .. STOP log N` or `START .. STOP step SIZE`"
SweepText = str | Sequence[str | int | float]


@dataclass(frozen=True, slots=True)
class _Range:
    """A range as written: its ends, how it is divided, and into how many points or steps of which size."""

    start: str
    stop: str
    kind: str
    last: str


def parse_axis(name: str, leaves: Mapping[str, SweepText], program: Program, limit: int) -> Axis:
    """One axis from the texts of its leaves; tied leaves must have the same number of values."""
    values = {path: leaf_points(path, text, program, limit) for path, text in leaves.items()}
    sizes = {path: len(array) for path, array in values.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{path}: {size}" for path, size in sizes.items())
        raise UsageError(f"sweep `{name}`: tied leaves need the same number of values ({listed})")
    return Axis(name, values, {path: _written(text) for path, text in leaves.items()})


def _written(text: SweepText) -> str:
    return text if isinstance(text, str) else ", ".join(str(word) for word in text)


def parse_option(text: str, program: Program, limit: int) -> Axis:
    """One axis from a command line: `PATH=SPEC`, or `PATH=SPEC; PATH=SPEC` for leaves that move together."""
    leaves: dict[str, SweepText] = {}
    for part in text.split(";"):
        path, equals, spec = part.partition("=")
        if not equals or not spec.strip():
            raise UsageError(f"sweep `{text}`: expected PATH=SPEC; {_HINT}")
        if path.strip() in leaves:
            raise UsageError(f"sweep `{text}`: `{path.strip()}` is given twice")
        leaves[path.strip()] = spec.strip()
    return parse_axis(next(iter(leaves)), leaves, program, limit)


def leaf_points(path: str, text: SweepText, program: Program, limit: int) -> NDArray[Any]:
    """The values of one swept leaf, each checked by the leaf's own type."""
    leaf = swept_leaf(path, program)
    words = [part.strip() for part in text.split(",")] if isinstance(text, str) else list(text)
    if leaf is None or leaf.structural:
        return np.array([_choice(path, leaf, word) for word in words], dtype=object)
    found = RANGE.fullmatch(text.strip()) if isinstance(text, str) else None
    try:
        if found is None and ".." in str(text):
            raise ValueError(f"`{text}`: a range says into how many points or steps it is divided; {_HINT}")
        if found is None:
            _refuse_too_many(path, len(words), limit)
            assert leaf.field is not None
            return np.array([leaf.field.number(word) for word in words])
        return _range_points(path, leaf, _Range(**found.groupdict()), limit)
    except ValueError as error:
        raise UsageError(f"sweep `{path}`: {error}") from None


def is_machine(path: str) -> bool:
    """Whether a path names a machine, or what part a table of it extends: `platform`, `platform.node.gpu.extends`."""
    keys = path.split(".")
    return path == PLATFORM_LEAF or (keys[0] == PLATFORM_LEAF and keys[-1] == "extends" and keys[-2] in KINDS)


def swept_leaf(path: str, program: Program) -> Parameter | None:
    """The leaf to sweep; None stands for the platform or a part of it. Refuse what does not exist or has no effect."""
    if is_machine(path):
        return None
    leaf = program.leaves.get(path)
    if leaf is None and may_be_stated(path, program):
        raise UsageError(f"`{path}` is not stated in this scenario; give it a value first with --set {path}=VALUE")
    if leaf is None:
        raise UsageError(
            f"`{path}`: there is no such leaf{did_you_mean(path, program.leaves)}; see `whatif list leaves`"
        )
    if leaf.structural and not leaf.choices and leaf.path != "application.grid.mapping_file":
        raise UsageError(f"`{path}` is a text that no result depends on")
    if not leaf.structural and path not in program.reached:
        raise UsageError(f"`{path}` reaches no term of this scenario: whatever its value, no result depends on it")
    return leaf


def may_be_stated(path: str, program: Program) -> bool:
    """Whether a leaf could be there: its table is, and allows such a key."""
    table, _, key = path.rpartition(".")
    if any(leaf.startswith(f"{path}.") for leaf in program.leaves):
        return False
    inside = any(leaf.startswith(f"{table}.") for leaf in program.leaves)
    return inside and key in known_keys(ScenarioSpec, program.loaded.layers.merged, tuple(table.split(".")))


def _choice(path: str, leaf: Parameter | None, word: Any) -> str:
    text = str(word).lower() if isinstance(word, bool) else str(word)
    if leaf is not None and leaf.choices and text not in leaf.choices:
        allowed = ", ".join(leaf.choices)
        raise UsageError(f"sweep `{path}`: `{text}` is not one of {allowed}{did_you_mean(text, leaf.choices)}")
    return text


def _range_points(path: str, leaf: Parameter, found: _Range, limit: int) -> NDArray[np.float64]:
    assert leaf.field is not None
    start, stop = leaf.field.number(found.start), leaf.field.number(found.stop)
    if found.kind == "step":
        values = _steps(path, start, stop, QuantityField(leaf.dimension).number(found.last), limit)
    else:
        values = _spaced(path, start, stop, found, limit)
    if leaf.field.domain.whole:
        values = _rounded(values) if found.kind == "log" else values
    bad = values[~leaf.field.domain.accepts(values)]
    if bad.size:
        raise ValueError(f"{bad[0]:g} is not allowed; it must be {leaf.field.domain.describe(leaf.dimension)}")
    return values


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole numbers in the order given, each once."""
    rounded: NDArray[np.float64] = np.round(values)
    once: NDArray[np.float64] = rounded[np.append(True, np.diff(rounded) != 0)]
    return once


def _steps(path: str, start: float, stop: float, step: float, limit: int) -> NDArray[np.float64]:
    if step <= 0:
        raise ValueError("the step must be greater than 0")
    if stop < start:
        raise ValueError("a range with a step goes up: START must not be above STOP")
    # A last value that misses STOP by rounding alone still belongs to the range.
    count = np.floor((stop - start) / step * (1 + 1e-12)) + 1
    _refuse_too_many(path, count, limit)
    return np.minimum(start + step * np.arange(count), stop)


def _spaced(path: str, start: float, stop: float, found: _Range, limit: int) -> NDArray[np.float64]:
    if not re.fullmatch(r"\d+", found.last.strip()) or int(found.last) < 2:
        raise ValueError(f"`{found.last}` is not a number of points of at least 2; {_HINT}")
    _refuse_too_many(path, int(found.last), limit)
    if found.kind == "linear":
        return np.linspace(start, stop, int(found.last))
    if start <= 0 or stop <= 0:
        raise ValueError("a log range needs ends greater than 0")
    return np.geomspace(start, stop, int(found.last))


def _refuse_too_many(path: str, count: float, limit: int) -> None:
    if count > limit:
        raise UsageError(f"sweep `{path}`: {count:,.0f} points; the limit is {limit:,} (raise it with --max-points)")


def grid_of(axes: Sequence[Axis], limit: int) -> Grid:
    """The product of axes; refuse one with too many points, and a leaf that is swept twice."""
    grid = Grid(tuple(axes))
    leaves = grid.leaves()
    twice = next((path for path in leaves if leaves.count(path) > 1), None)
    if twice is not None:
        raise UsageError(f"`{twice}` is swept on more than one axis")
    _refuse_too_many(" x ".join(axis.name for axis in axes), grid.size, limit)
    return grid


def file_axes(program: Program, limit: int) -> list[Axis]:
    """The axes that the scenario's own `[sweep]` asks for."""
    axes: list[Axis] = []
    problems: list[Problem] = []
    for name, leaves in program.loaded.scenario.sweep.items():
        try:
            axes.append(parse_axis(name, leaves, program, limit))
        except UsageError as error:
            problems.append(program.loaded.layers.problem(("sweep", name), str(error)))
    swept = [path for axis in axes for path in axis.leaves]
    for axis in axes:
        for path in (path for path in axis.leaves if swept.count(path) > 1):
            message = f"`{path}` is swept on more than one axis"
            problems.append(program.loaded.layers.problem(("sweep", axis.name), message))
    if problems:
        raise InvalidFileError(problems)
    return axes


def structural_points(axis: Axis) -> Iterator[dict[str, str]]:
    """The structural values at each place of an axis."""
    for index in range(len(axis)):
        yield {path: str(values[index]) for path, values in axis.leaves.items() if values.dtype == object}
