"""A session: a question with edits and a sweep, and its answer; every change makes a new session."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, Final

import numpy as np

from whatif.axes import Axis, Grid, first_number
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.grid_run import run_whole
from whatif.core.parameter_paths import RANK_COUNT
from whatif.core.result import Result, result_of
from whatif.core.scenario import Scenario
from whatif.core.sweep import PLATFORM_PARAMETER, file_axes, grid_of, parse_axis, swept_parameter
from whatif.core.term import Program
from whatif.errors import UsageError, WhatifError
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.schema.distributions import Uncertain
from whatif.schema.expressions import Expression
from whatif.schema.parameters import STATED, Parameter
from whatif.schema.relative import absolute
from whatif.schema.removal import is_known, removes
from whatif.schema.scenario_spec import ScenarioSpec
from whatif.schema.stated_tables import REMOVED
from whatif.schema.toml import key_path
from whatif.units import Quantity, exact_quantity, format_quantity

CURVE_POINTS: Final = 200
FAMILY_POINTS: Final = 25
"""Points along the first axis, and along a second one, unless a range is given."""
SIMULATED_POINTS: Final = 9
"""Points of a curve of simulated runs of HPL."""
_FIRST_SWEPT: Final = (
    "application.matrix_size",
    "platform.node.gpu_count",
    RANK_COUNT,
    "platform.node.gpu.dram_bandwidth",
    "platform.node.host.memory_bandwidth",
)
"""Parameters that a session without a sweep begins with: the first that changes the time."""

EDITED: Final = "edited here"
"""The source of a value that the files do not have."""


class NudgeSize(Enum):
    """Size of a nudge: amount added to a whole number, and factor for any other one."""

    FINE = (1.0, 1.05)
    COARSE = (10.0, 1.25)
    FACTOR = (0.0, 2.0)


@dataclass(frozen=True, eq=False)
class SessionInputs:
    """Inputs of a session: small, unlike its results, so that a history or another process can hold them.

    `fed` is the program where it differs from the question's own by numbers alone.
    """

    scenario: Scenario
    grid: Grid
    fed: Program | None = None

    @property
    def program(self) -> Program:
        """Compiled scenario."""
        return self.scenario.program if self.fed is None else self.fed


@dataclass(frozen=True, eq=False)
class Session:
    """State of an exploration: `point` is the result at the present values, `result` that over the sweep."""

    inputs: SessionInputs
    evaluation: Evaluation | None
    result: Result
    at: Evaluation

    @classmethod
    def start(cls, scenario: Scenario) -> Session:
        """Session on a scenario with the sweep of its file, or else over the GPUs per node or what changes the time."""
        scenario = scenario.absolute()
        axes = file_axes(scenario.program, DEFAULT_MAXIMUM_POINTS)
        session = cls.of(SessionInputs(scenario, grid_of(axes, DEFAULT_MAXIMUM_POINTS)))
        if axes:
            return session
        found = []
        for path in (path for path in _FIRST_SWEPT if path in session.program.parameters):
            # Raised for a parameter without effect.
            with suppress(UsageError):
                found.append(session.sweep(path))
                times = found[-1].result["iteration_time"]
                if np.unique(times[np.isfinite(times)]).size > 1:
                    return found[-1]._where_feasible(path)
        return next(iter(found), session)

    @classmethod
    def of(cls, inputs: SessionInputs, previous: Session | None = None) -> Session:
        """Session with results; if the terms are those of `previous`, only the ones after a change are computed."""
        program, grid = inputs.program, inputs.grid
        known = previous if previous is not None and previous.program.terms is program.terms else None
        at = evaluate(program, previous=known.at if known else None)
        if any(axis.structural for axis in grid.axes):
            return cls(inputs, None, run_whole(inputs.scenario, grid), at)
        before = known.evaluation if known is not None and known.grid is grid else None
        evaluation = evaluate(program, grid.arrays(), before)
        return cls(inputs, evaluation, result_of(evaluation, grid), at)

    @classmethod
    def unswept(cls, inputs: SessionInputs) -> Session:
        """Session without its sweep: `result` is that of the point alone."""
        at = evaluate(inputs.program)
        return cls(inputs, None, result_of(at, Grid()), at)

    def at_rest(self) -> Session:
        """The session without its sweep's numbers."""
        return Session(self.inputs, None, self.point, self.at)

    @property
    def scenario(self) -> Scenario:
        """The file with its changes."""
        return self.inputs.scenario

    @property
    def program(self) -> Program:
        """Compiled scenario."""
        return self.inputs.program

    @property
    def grid(self) -> Grid:
        """Grid of the sweep."""
        return self.inputs.grid

    @cached_property
    def point(self) -> Result:
        """Result at the present values, without the sweep."""
        return result_of(self.at, Grid())

    @property
    def here(self) -> float | None:
        """Position of the present values on the first axis (see `place_on`)."""
        return self.place_on(self.grid.axes[0]) if self.grid.axes else None

    def place_on(self, axis: Axis) -> float | None:
        """Position of the present values on an axis: the value of its first parameter, or the number of its choice."""
        path, values = next(iter(axis.parameters.items()))
        if path not in self.program.parameters:
            return None
        if values.dtype == object:
            return next((float(i) for i, text in enumerate(values) if text == self.parameter(path).text()), None)
        return first_number(self.at.values[path])

    def parameter(self, path: str) -> Parameter:
        """A parameter by path; raise `UsageError` for an unknown one."""
        if path not in self.program.parameters:
            raise self.program.no_parameter(path)
        return self.program.parameters[path]

    def edit(self, path: str, text: str) -> Session:
        """The session with another value, which may be relative to the present one, such as `x2`.

        Raise `WhatifError` if the value is not allowed.
        """
        if self._unstated(path) or (text.strip() == REMOVED and self._removable(path)):
            return self.with_scenario(self.scenario.with_overrides({path: text}))
        parameter, original = self.parameter(path), self._original(path)
        text = self.absolute(path, text)
        value = self._number(parameter, text)
        back = original is not None and _says(original, value, text)
        sets = {key: item for key, item in self.scenario.overrides.items() if key != path}
        scenario = self.scenario.changed(sets if back else {**sets, path: text})
        # A number in place of a number changes no term: the compiled program is kept and only fed anew.
        if value is not None and not isinstance(parameter.value, Expression):
            edited = replace(parameter, value=value, source=EDITED, grade=_edited_grade(parameter), fitted=None)
            parameters = {**self.program.parameters, path: original if original is not None and back else edited}
            return Session.of(SessionInputs(scenario, self.grid, replace(self.program, parameters=parameters)), self)
        return self.with_scenario(scenario)

    def _unstated(self, path: str) -> bool:
        """Whether a path is an optional value without default that no file states."""
        known = self.program.parameters
        return path not in known and is_known(ScenarioSpec, self.program.loaded.layers, key_path(path))

    def _removable(self, path: str) -> bool:
        """Whether `none` removes the value of a path, and is not one of its choices."""
        return removes(ScenarioSpec, self.program.loaded.layers, key_path(path))

    def absolute(self, path: str, text: str) -> str:
        """Value of a text that may be relative to the present value of a parameter; other texts are returned."""
        if path not in self.program.parameters:
            return text
        try:
            return str(absolute(self.program.parameters[path], text))
        except UsageError as problem:
            raise UsageError(f"{path}: {problem}") from None

    def is_number(self, path: str, text: str) -> bool:
        """Whether a text replaces a number by a number, which needs no compilation."""
        if path not in self.program.parameters or isinstance(self.program.parameters[path].value, Expression):
            return False
        try:
            return self._number(self.parameter(path), self.absolute(path, text)) is not None
        except UsageError:
            return False

    def _original(self, path: str) -> Parameter | None:
        """The parameter as the file has it; None if it has not, or where another platform takes its place."""
        original = self.scenario.original
        if original is None or (self.scenario.platform is not None and path.startswith(f"{PLATFORM_PARAMETER}.")):
            return None
        return original.parameters.get(path)

    def with_scenario(self, scenario: Scenario) -> Session:
        """The session on the same sweep with another question, compiled anew."""
        return Session.of(SessionInputs(scenario, still_there(self.grid, scenario.program)))

    def on_platform(self, name: str) -> Session:
        """The session on another platform, without the edits of the present one."""
        return self.with_scenario(self.scenario.on_platform(name))

    def _number(self, parameter: Parameter, text: str) -> float | None:
        if parameter.field is None:
            return None
        try:
            value = parameter.field.parse(text)
        except ValueError as error:
            raise UsageError(f"{parameter.path}: {error}") from None
        if isinstance(value, Quantity):
            return value.value
        return None if isinstance(value, Expression) else value

    def nudge(self, path: str, steps: int, size: NudgeSize = NudgeSize.FINE) -> Session:
        """The session with a parameter moved by steps of a size; a choice is turned to the next one."""
        parameter = self.parameter(path)
        if parameter.structural:
            return self._turned(parameter, steps)
        if parameter.distribution is not None:
            raise UsageError(f"{path}: a step would drop the distribution of {parameter.text()}; type a value")
        value = first_number(self.at.values[path])
        return self.edit(path, _moved(parameter, value, steps, size))

    def _turned(self, parameter: Parameter, steps: int) -> Session:
        """Session with another choice; choices without the required values are skipped."""
        if not parameter.choices:
            raise UsageError(f"{parameter.path}: not a number and not one of a few choices; type a value")
        first: WhatifError | None = None
        at, direction = parameter.choices.index(parameter.text()), 1 if steps > 0 else -1
        for further in range(len(parameter.choices)):
            try:
                return self.edit(
                    parameter.path, parameter.choices[(at + steps + direction * further) % len(parameter.choices)]
                )
            except WhatifError as problem:
                first = first or problem
        raise first or UsageError(f"{parameter.path}: no other choice is possible")

    def sweep(self, path: str, text: str | None = None) -> Session:
        """Session that sweeps one parameter over a range, by default one around its value."""
        return self.over((self._axis(path, text, CURVE_POINTS),))

    def _where_feasible(self, path: str) -> Session:
        """The session on a sweep of a count without its infeasible values."""
        parameter, values = self.parameter(path), self.grid.coordinate(path)
        kept = values[np.isfinite(self.result["iteration_time"])]
        if parameter.field is None or not parameter.field.domain.whole or len(kept) == len(values):
            return self
        if len(kept) > 2 and (np.diff(kept) == 1).all():
            return self.sweep(path, f"{kept[0]:.0f} .. {kept[-1]:.0f} step 1")
        return self.sweep(path, ", ".join(f"{value:.0f}" for value in kept))

    def sweep_also(self, path: str, text: str | None = None) -> Session:
        """Session that sweeps a second parameter, on the second axis."""
        first = self.grid.axes[:1]
        if not first or path in first[0].parameters:
            raise UsageError(
                f"{path}: sweep another parameter first; a second one makes a family of curves or a heat map"
            )
        return self.over((*first, self._axis(path, text, FAMILY_POINTS)))

    def _axis(self, path: str, text: str | None, points: int) -> Axis:
        parameter = swept_parameter(path, self.program)
        spec = text if text is not None or parameter is None else self.range_text(path, points)
        return parse_axis(path, {path: spec or ""}, self.program, DEFAULT_MAXIMUM_POINTS)

    def range_text(self, path: str, points: int = CURVE_POINTS) -> str:
        """The range over which a parameter is swept unless another one is given."""
        parameter = self.parameter(path)
        return (
            default_range(parameter, self.at, points) if parameter.field is not None else self._choices_text(parameter)
        )

    def _choices_text(self, parameter: Parameter) -> str:
        """The choices that the files have all values for."""
        possible = [choice for choice in parameter.choices if self._compiles(parameter.path, choice)]
        if len(possible) < 2:
            raise UsageError(
                f"{parameter.path}: not a number and no other choice is possible; there is nothing to sweep"
            )
        return ", ".join(possible)

    def _compiles(self, path: str, choice: str) -> bool:
        try:
            self.scenario.program_at({path: choice})
        except WhatifError:
            return False
        return True

    def over(self, axes: tuple[Axis, ...]) -> Session:
        """The session with other axes."""
        return Session.of(replace(self.inputs, grid=grid_of(axes, DEFAULT_MAXIMUM_POINTS)), self)


def _edited_grade(parameter: Parameter) -> Any:
    return "assumed" if parameter.path.startswith("platform.") else STATED


def _says(parameter: Parameter, value: float | None, text: str) -> bool:
    """Whether a typed value is the one that a parameter has already."""
    if value is None or parameter.distribution is not None or isinstance(value, Uncertain):
        return parameter.text() == text.strip()
    return bool(parameter.value == value)


def _moved(parameter: Parameter, value: float, steps: int, size: NudgeSize) -> str:
    assert parameter.field is not None
    domain, (added, factor) = parameter.field.domain, size.value
    with np.errstate(over="ignore", under="ignore"):
        moved = value + steps * added if domain.whole and added else float(value * np.float64(factor) ** steps)
    if domain.whole:
        moved = float(np.ceil(moved) if steps > 0 else np.floor(moved))
    moved = min(max(moved, domain.minimum), domain.maximum)
    if not domain.accepts(moved):
        return parameter.text(digits=None)
    if domain.whole:
        return exact_quantity(moved, parameter.dimension)
    return format_quantity(moved, parameter.dimension, digits=6)


def still_there(grid: Grid, program: Program) -> Grid:
    """Grid without the axes whose parameters a program lacks."""
    known = {PLATFORM_PARAMETER, *program.parameters}
    axes = tuple(axis for axis in grid.axes if known.issuperset(axis.parameters))
    return grid if axes == grid.axes else Grid(axes)


def default_range(parameter: Parameter, at: Evaluation, points: int = CURVE_POINTS) -> str:
    """Range around a value within its domain: small counts one by one, ranks doubled, else three octaves each way."""
    assert parameter.field is not None
    value, domain = first_number(at.values[parameter.path]), parameter.field.domain
    octaves = 3
    if at.program.loaded.scenario.application.costly_points:
        points, octaves = min(points, SIMULATED_POINTS), 1  # Upwards N costs more.
    if domain.maximum == 1:
        return f"{0.01 if domain.above_minimum else 0} .. 1 linear {min(points, 100)}"
    if parameter.field.domain.whole and value <= 64:
        return f"{max(domain.minimum, 0):g} .. {min(max(16, 4 * value), domain.maximum):g} step 1"
    if parameter.path == RANK_COUNT:  # Between them are primes, on whose grids of N x 1 x 1 ranks nobody runs.
        return ", ".join(f"{value * 2.0**octave:.0f}" for octave in range(-3, octaves + 1))
    if value <= 0:
        unit = "" if str(parameter.dimension) == "1" else f" {parameter.dimension}"
        return f"0 .. 1{unit} linear {points}"
    ends = max(value / 8, domain.minimum), min(value * 2**octaves, domain.maximum)
    low, high = (format_quantity(end, parameter.dimension, digits=6) for end in ends)
    if domain.whole:
        low, high = (f"{int(end)}" for end in (max(value / 8, 1), min(value * 2**octaves, domain.maximum)))
    return f"{low} .. {high} log {points}"
