"""Sweeps: texts and values become axes and grids."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.axes import Axis, Grid
from whatif.core.overrides import option_named
from whatif.core.term import Program
from whatif.errors import InvalidFileError, Problem, UsageError, did_you_mean
from whatif.schema.explain_errors import known_keys
from whatif.schema.expressions import Expression
from whatif.schema.fields import Domain, QuantityField
from whatif.schema.known_names import is_pattern, known_machines, matching
from whatif.schema.parameters import Parameter
from whatif.schema.relative import absolute
from whatif.schema.scenario_spec import ScenarioSpec
from whatif.schema.shipped import KINDS, find
from whatif.schema.toml import key_path

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario

PLATFORM_PARAMETER: Final = "platform"
_MAPPING_FILE: Final = "application.grid.mapping_file"

RANGE: Final = re.compile(
    r"(?P<start>.+?)\s*\.\.\s*(?P<stop>.+?)(?:\s+|\s*:\s*)(?P<kind>linear|log|step)(?:\s+|\s*:\s*)(?P<last>.+)"
)
_HINT = "write `1, 2, 4`, `START .. STOP linear N`, `START .. STOP log N` or `START .. STOP step SIZE`"
_NUMBER_WITH_UNIT: Final = r"[\d.]+(?:\s*[A-Za-z/]+)?"
_OTHER_NOTATION: Final = re.compile(
    rf"(?!.*\.\.)(?:(?:range|arange|linspace|logspace)?\s*[\[({{].*"
    rf"|{_NUMBER_WITH_UNIT}(?:\s*(?:-|–|:|\bto\b)\s*|\s+)[\d.].*)",
    re.DOTALL,
)
"""List or range in the notation of another program: `1-8`, `1:8`, `1 to 8`, `[1, 2, 4]`, `range(1, 8)`, `1 2 4`."""
_ANY: Final = Domain(minimum=-math.inf)
SweepText = str | int | float | Sequence[str | int | float]


@dataclass(frozen=True, slots=True)
class _Range:
    """Range as written: its ends, kind of division, and number of points or size of steps."""

    start: str
    stop: str
    kind: str
    last: str


def parse_axis(name: str, parameters: Mapping[str, SweepText], program: Program, limit: int) -> Axis:
    """Axis from the texts of its parameters; tied parameters must have the same number of values."""
    values = {path: parameter_points(path, text, program, limit) for path, text in parameters.items()}
    if empty := next((path for path, array in values.items() if not len(array)), ""):
        raise UsageError(f"sweep `{empty}`: state at least one value")
    sizes = {path: len(array) for path, array in values.items()}
    if len(set(sizes.values())) > 1:
        numbers = ", ".join(f"{path}: {size}" for path, size in sizes.items())
        wrong = f"tied parameters need the same number of values ({numbers})"
        raise UsageError(f"sweep `{name}`: {wrong}; for a grid, sweep each alone")
    return Axis(name, values, {path: _written(text) for path, text in parameters.items()})


def _written(text: SweepText) -> str:
    return text if isinstance(text, str) else ", ".join(map(str, swept_values(text)))


def parse_option(text: str, program: Program, limit: int) -> Axis:
    """Axis from a command line: `PATH=SPEC`, or `PATH=SPEC; PATH=SPEC` for parameters that move together."""
    parameters: dict[str, SweepText] = {}
    for part in text.split(";"):
        path, equals, spec = part.partition("=")
        if not equals or not spec.strip():
            raise UsageError(f"sweep `{text}`: expected PATH=SPEC; {_HINT}")
        if path.strip() in parameters:
            raise UsageError(f"sweep `{text}`: `{path.strip()}` is given twice")
        parameters[path.strip()] = spec.strip()
    return parse_axis(next(iter(parameters)), parameters, program, limit)


def parameter_points(path: str, text: SweepText, program: Program, limit: int) -> NDArray[Any]:
    """Values of one swept parameter, each checked by the parameter's own type."""
    parameter = swept_parameter(path, program)
    if parameter is None or parameter.structural:
        words = (str(word).lower() if isinstance(word, bool) else str(word) for word in swept_values(text))
        return np.array([choice for word in words for choice in _choices(path, parameter, word, program)], dtype=object)
    return numeric_points(path, text, parameter, limit)


def swept_values(text: SweepText) -> list[Any]:
    """Values of a text, a list or a single number, as plain Python values."""
    if isinstance(text, str):
        return [part.strip() for part in text.split(",")]
    words = text if isinstance(text, Iterable) else [text]
    return [word.item() if isinstance(word, np.generic) else word for word in words]


def numeric_points(path: str, text: SweepText, parameter: Parameter, limit: int) -> NDArray[np.float64]:
    """Values of a numeric parameter: those of a list or a range. Raise `UsageError` for a value that is not allowed."""
    computed = isinstance(parameter.value, Expression)
    words = [word if computed else absolute(parameter, word) for word in swept_values(text)]
    found = RANGE.fullmatch(text.strip()) if isinstance(text, str) else None
    try:
        if found is None and ".." in str(text):
            raise ValueError(f"`{text}`: a range states its number of points or its step; {_HINT}")
        if found is None:
            _refuse_too_many(path, len(words), limit)
            assert parameter.field is not None
            return np.array([parameter.field.number(word) for word in words])
        ends = {} if computed else {key: str(absolute(parameter, found[key])) for key in ("start", "stop")}
        return _range_points(path, parameter, _Range(**(found.groupdict() | ends)), limit)
    except ValueError as error:
        foreign = isinstance(text, str) and _OTHER_NOTATION.fullmatch(text.strip())
        reason = f"`{text}` is not a list or range of values; {_HINT}" if foreign else str(error)
        raise UsageError(f"sweep `{path}`: {reason}") from None


def is_machine(path: str) -> bool:
    """Whether a path selects a platform or a part of one: `platform`, `platform.node.gpu.extends`."""
    keys = path.split(".")
    return path == PLATFORM_PARAMETER or (keys[0] == PLATFORM_PARAMETER and keys[-1] == "extends" and keys[-2] in KINDS)


def names_file(path: str) -> bool:
    """Whether the value of a path is the name of a file: of a machine, a part of one, or a mapping of ranks."""
    return path == _MAPPING_FILE or is_machine(path)


def machine_name(structural: Mapping[str, str]) -> str:
    """Name of the machine among structural values: its platform and parts; empty if they select none."""
    return " ".join(value for path, value in structural.items() if is_machine(path))


def swept_parameter(path: str, program: Program) -> Parameter | None:
    """Parameter to sweep; None for the platform or a part of it. Raise `UsageError` for one that does
    not exist or has no effect."""
    if is_machine(path):
        return None
    parameter = program.parameters.get(path)
    if parameter is None and (lack := program.loaded.scenario.platform.lack(path)):
        raise UsageError(f"{lack}: there is no `{path}`")
    if parameter is None and may_be_stated(path, program):
        raise UsageError(f"`{path}` is not stated in this scenario; give it a value first with --set {path}=VALUE")
    if parameter is None:
        raise program.no_parameter(path)
    if parameter.structural and not parameter.choices and path != _MAPPING_FILE:
        raise UsageError(f"`{path}`: no result depends on this text")
    if not parameter.structural and path not in program.reached:
        raise UsageError(f"`{path}` has no effect on any result of this scenario{_lacking_with(path, program)}")
    return parameter


def _lacking_with(path: str, program: Program) -> str:
    """Results without an answer for lack of values in the same table as a parameter, in words."""
    table = path.rpartition(".")[0]
    lacking = {result: [it for it in unstated if it.rpartition(".")[0] == table]
               for result, unstated in program.missing.items()}  # fmt: skip
    found = next(((result, names) for result, names in lacking.items() if names), None)
    return "" if found is None else f"; {found[0]} needs {' and '.join(found[1])}, which are not stated, too"


def may_be_stated(path: str, program: Program) -> bool:
    """Whether a parameter could be stated: its table exists and allows such a key."""
    if any(parameter.startswith(f"{path}.") for parameter in program.parameters):
        return False
    table, _, key = path.rpartition(".")
    merged = program.loaded.layers.merged

    def knows(inner: str, word: str) -> bool:
        return word in known_keys(ScenarioSpec, merged, key_path(inner))

    # A table that is not stated may be, in a table that is.
    outer, _, name = table.rpartition(".")
    inside = [any(parameter.startswith(f"{it}.") for parameter in program.parameters) for it in (table, outer)]
    return (inside[0] or (bool(outer) and inside[1] and knows(outer, name))) and knows(table, key)


def _choices(path: str, parameter: Parameter | None, word: str, program: Program) -> list[str]:
    """Choices of a word: itself, or those that a pattern such as `dgx_*` matches."""
    known = () if parameter is None else parameter.choices
    try:
        if is_pattern(word):
            return matching(word, known if parameter is not None else known_machines(path, program.loaded.search))
    except UsageError as error:
        raise UsageError(f"sweep `{path}`: {error}") from None
    if known and word not in known:
        raise UsageError(f"sweep `{path}`: `{word}` is not one of {', '.join(known)}{did_you_mean(word, known)}")
    return [word]


def _range_points(path: str, parameter: Parameter, found: _Range, limit: int) -> NDArray[np.float64]:
    assert parameter.field is not None
    start, stop = parameter.field.number(found.start), parameter.field.number(found.stop)
    if found.kind == "step":
        values = _steps(path, start, stop, QuantityField(parameter.dimension, _ANY).number(found.last), limit)
    else:
        values = _spaced(path, start, stop, found, limit)
    if parameter.field.domain.whole:
        values = _rounded(values) if found.kind == "log" else values
    bad = values[~parameter.field.domain.accepts(values)]
    if bad.size:
        allowed = parameter.field.domain.describe(parameter.dimension, bad[0])
        raise ValueError(f"{bad[0]:g} is not allowed; it must be {allowed}")
    return values


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole numbers in order, each once."""
    rounded: NDArray[np.float64] = np.round(values)
    once: NDArray[np.float64] = rounded[np.append(True, np.diff(rounded) != 0)]
    return once


def _steps(path: str, start: float, stop: float, step: float, limit: int) -> NDArray[np.float64]:
    if step <= 0:
        raise ValueError("the step must be greater than 0")
    if stop < start:
        raise ValueError("a range with a step is ascending: START must not be above STOP")
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
    """Grid of axes. Raise `UsageError` for too many points, and for a parameter that is swept twice."""
    grid = Grid(tuple(axes))
    parameters = grid.parameters()
    twice = next((path for path in parameters if parameters.count(path) > 1), None)
    if twice is not None:
        raise UsageError(f"`{twice}` is swept on more than one axis")
    _refuse_too_many(" x ".join(axis.name for axis in axes), grid.size, limit)
    return grid


def file_axes(program: Program, limit: int) -> list[Axis]:
    """Axes of the scenario's own `[sweep]`."""
    axes: list[Axis] = []
    problems: list[Problem] = []
    for name, parameters in program.loaded.scenario.sweep.items():
        try:
            axes.append(parse_axis(name, parameters, program, limit))
        except UsageError as error:
            problems.append(program.loaded.layers.problem(("sweep", name), str(error)))
    swept = [path for axis in axes for path in axis.parameters]
    for axis in axes:
        for path in (path for path in axis.parameters if swept.count(path) > 1):
            message = f"`{path}` is swept on more than one axis"
            problems.append(program.loaded.layers.problem(("sweep", axis.name), message))
    if problems:
        raise InvalidFileError(problems)
    return axes


Values = SweepText | NDArray[Any]
"""Values of a swept parameter: the text of the command line, or values; an array of numbers is in base units."""
AxisSpec = str | Mapping[str, Values]
"""One axis: `PATH=SPEC` as on the command line, or values by parameter, which move together."""


def asked_grid(scenario: Scenario, axes: Sequence[AxisSpec], *, point: bool, limit: int) -> Grid:
    """Grid of the axes, else of the scenario's own sweep; a single point where `point`.

    Raise `UsageError` for axes of a point, unknown parameters, and a grid of more points than `limit`.
    """
    if point and axes:
        raise UsageError("--point and --sweep exclude each other")
    program = scenario.program
    if axes:
        asked = grid_of([_axis(axis, program, limit) for axis in axes], limit)
        _refuse_absent(scenario, asked)
        return asked
    own = [] if point else file_axes(program, limit)
    # An override is meant: the file's own axis over the same parameter gives way.
    return grid_of([axis for axis in own if scenario.overrides.keys().isdisjoint(axis.parameters)], limit)


def _refuse_absent(scenario: Scenario, grid: Grid) -> None:
    """Raise `InvalidFileError` for a swept platform without a file, before anything is said of the others."""
    for name in (name for axis in grid.axes for name in axis.parameters.get(PLATFORM_PARAMETER, ())):
        if name not in scenario.built and find(name, "platforms", scenario.search_folders) is None:
            with option_named("--sweep", [PLATFORM_PARAMETER]):
                scenario.program_at({PLATFORM_PARAMETER: name})


def _axis(axis: AxisSpec, program: Program, limit: int) -> Axis:
    if isinstance(axis, str):
        try:
            return parse_option(axis, program, limit)
        except UsageError as error:
            named = str(error).removeprefix("sweep ")
            raise UsageError(f"--sweep {named}" if named != str(error) else f"--sweep: {error}") from None
    if not isinstance(axis, Mapping):
        raise UsageError(f"sweep: `{axis}` is not an axis: a text, or values by parameter")
    if not axis:
        raise UsageError("sweep: state at least one parameter")
    texts = {path: _texts(path, values, program) for path, values in axis.items()}
    return parse_axis(next(iter(axis)), texts, program, limit)


def _texts(path: str, values: Values, program: Program) -> SweepText:
    """Values as text or choices: an array of numbers gets the unit of its parameter."""
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind not in "iuf":
        return list(values.ravel().tolist())
    parameter = program.parameters.get(path)
    unit = "" if parameter is None or str(parameter.dimension) == "1" else f" {parameter.dimension}"
    return [f"{float(value)!r}{unit}" for value in values.ravel()]


def structural_points(axis: Axis) -> Iterator[dict[str, str]]:
    """Structural values at each place of an axis."""
    for index in range(len(axis)):
        yield {path: str(values[index]) for path, values in axis.parameters.items() if values.dtype == object}
