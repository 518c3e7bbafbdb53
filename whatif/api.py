"""whatif as a library: the verbs of the command line as functions, by the same names.

>>> import whatif
>>> answer = whatif.run("jacobi2d", platform="frontier", sets={"application.rank_count": 64})
>>> round(float(answer["iteration_time"]) * 1e3, 2) > 0
True
>>> swept = whatif.sweep("jacobi2d", {"platform.node.gpu_count": [2, 4, 6]})
>>> swept.to_pandas()["platform.node.gpu_count"].tolist()
[2.0, 4.0, 6.0]

A scenario is a shipped name, a path, or what `load` returned. What is wrong raises `WhatifError`, with the message that
the command line prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whatif.axes import Axis, Grid
from whatif.core import result as engine
from whatif.core.result import array_of
from whatif.core.scenario import Question
from whatif.core.sweep import file_axes, grid_of, parse_axis
from whatif.core.uncertainty import Sampling
from whatif.errors import UsageError, WhatifError
from whatif.limits import DEFAULT_MAXIMUM_POINTS
from whatif.models.quantities import FloatArray
from whatif.studies.attribution import Attribution, attribute
from whatif.studies.elasticity import Elasticity, elasticities
from whatif.studies.ranking import Ranking, ranking
from whatif.studies.sweep_figure import Y_COLUMN, alone
from whatif.studies.threshold import Sought, parse_target
from whatif.studies.threshold import seek as seek_leaf

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

Scenario = str | Path | Question
Values = str | Sequence[str | int | float] | FloatArray
"""What a leaf is swept over: the text of the command line, or values; an array is in base units."""


class Result(engine.Result):
    """The answer to a question over a grid: `result["iteration_time"]` is an array of the grid's shape, in s."""

    def __getitem__(self, name: str) -> FloatArray:
        """A result column, or a phase as `terms.NAME`; NaN at points that cannot exist."""
        if name not in self.dimensions:
            raise KeyError(name)
        return self.grid.spread(array_of(self, name))

    def to_pandas(self) -> pd.DataFrame:
        """One row a point, in base units; the units are in `attrs["units"]`."""
        return self.table().to_pandas()

    def to_xarray(self) -> xr.Dataset:
        """One dimension a swept leaf, by its path; tied leaves share one. Needs the extra `xarray`."""
        try:
            import xarray
        except ImportError:
            raise UsageError("to_xarray needs xarray: pip install 'whatif[xarray]'") from None
        names = [next(iter(axis.leaves)) for axis in self.grid.axes]
        coordinates = {
            path: (name, values)
            for name, axis in zip(names, self.grid.axes, strict=True)
            for path, values in axis.leaves.items()
        }
        columns = {name: (names, self[name], {"units": str(unit)}) for name, unit in self.dimensions.items()}
        found = xarray.Dataset(columns, coordinates)
        found["impossible"] = (names, self.reason)
        if self.bands is not None:
            for name, quantiles in self.bands.values.items():
                spread = np.stack([self.grid.spread(array) for array in quantiles])
                found[f"{name}_band"] = (["quantile", *names], spread)
            found.coords["quantile"] = list(self.bands.sampling.quantiles)
        return found

    def plot(self, path: str | Path | None = None, y: str = Y_COLUMN) -> Figure:
        """The sweep as `whatif run --plot` draws it, with its band, as a figure of matplotlib (extra `report`).

        With a path, also a file, `.svg`, `.png` or `.pdf`. Raise `UsageError` for a single point.
        """
        from whatif.plotting.picture import draw, write_picture

        if not self.grid.axes:
            raise UsageError("a single point has no plot; sweep a leaf")
        description = alone(self, y)
        if path is not None:
            write_picture(description, Path(path))
        return draw(description)

    def _repr_html_(self) -> str:
        """The table, for a notebook."""
        return self.table()._repr_html_()


def load(
    scenario: Scenario,
    *,
    platform: str | None = None,
    sets: Mapping[str, Any] | None = None,
    folders: Sequence[str | Path] = (),
) -> Question:
    """A scenario, on another platform and with other values, where they are given.

    `sets` are texts, as `--set` has them, or plain numbers for counts and fractions; `folders` hold platforms.
    Raise `InvalidFileError` with all that is wrong with the files, `UsageError` for an unknown name.
    """
    if isinstance(scenario, Question):
        both = {**scenario.sets, **(sets or {})}
        return scenario.changed(both, platform or scenario.platform) if sets or platform else scenario
    return Question.open(scenario, platform=platform, sets=sets, folders=tuple(Path(folder) for folder in folders))


def run(scenario: Scenario, *, samples: Sampling | int | None = None, **changes: Any) -> Result:
    """The answer at one point, with bands of so many samples of what is uncertain; `changes` are those of `load`."""
    return _wrapped(engine.run_whole(load(scenario, **changes), Grid(), _sampling(samples)))


def sweep(
    scenario: Scenario, *axes: Mapping[str, Values], samples: Sampling | int | None = None, **changes: Any
) -> Result:
    """The answer over a grid: one axis a mapping of leaves, which move together; without any, the scenario's own."""
    question = load(scenario, **changes)
    limit = DEFAULT_MAXIMUM_POINTS
    swept = [_axis(axis, question) for axis in axes] or file_axes(question.program, limit)
    return _wrapped(engine.run_whole(question, grid_of(swept, limit), _sampling(samples)))


def compare(
    scenarios: Sequence[Scenario] | Mapping[str, Scenario],
    platforms: Sequence[str],
    *,
    weights: Mapping[str, float] | None = None,
    references: Mapping[str, float] | None = None,
    result: str = "total_time",
    samples: Sampling | int | None = None,
) -> Ranking:
    """Machines ranked over applications (see `whatif.studies.ranking.ranking`); reference times are in s."""
    named = scenarios if isinstance(scenarios, Mapping) else {_name(item): item for item in scenarios}
    questions = {name: load(item) for name, item in named.items()}
    return ranking(questions, platforms, weights, references, result, _sampling(samples))


def seek(scenario: Scenario, vary: str, target: str, **changes: Any) -> Sought:
    """The value of the leaf `vary`, nearest to the present one, that meets a target: `iteration_time <= 5 ms`."""
    program = load(scenario, **changes).program
    return seek_leaf(program, vary, parse_target(target, program))


def diff(first: Scenario, second: Scenario, result: str = "iteration_time", **options: Any) -> Attribution:
    """What explains that a result differs between two scenarios; options as of `attribution.attribute`."""
    return attribute(load(first).program, load(second).program, result, **options)


def sensitivity(scenario: Scenario, result: str = "iteration_time", **changes: Any) -> tuple[Elasticity, ...]:
    """The elasticity of a result in every value that it depends on, the largest first."""
    return elasticities(load(scenario, **changes).program, result)


def _wrapped(found: engine.Result) -> Result:
    return Result(**{item.name: getattr(found, item.name) for item in fields(found)})


def _sampling(samples: Sampling | int | None) -> Sampling | None:
    return Sampling(samples) if isinstance(samples, int) else samples


def _name(scenario: Scenario) -> str:
    return Path(scenario.document.name).stem if isinstance(scenario, Question) else str(scenario)


def _axis(leaves: Mapping[str, Values], question: Question) -> Axis:
    program = question.program
    texts = {path: _texts(path, values, question) for path, values in leaves.items()}
    return parse_axis(next(iter(leaves)), texts, program, DEFAULT_MAXIMUM_POINTS)


def _texts(path: str, values: Values, question: Question) -> str | Sequence[str | int | float]:
    """Values as a person would write them: an array gets the unit of its leaf."""
    if not isinstance(values, np.ndarray):
        return values
    leaf = question.program.leaves.get(path)
    unit = "" if leaf is None or str(leaf.dimension) == "1" else f" {leaf.dimension}"
    return [f"{float(value)!r}{unit}" for value in values.ravel()]


__all__ = [
    "Attribution",
    "Elasticity",
    "Question",
    "Ranking",
    "Result",
    "Sampling",
    "Sought",
    "WhatifError",
    "compare",
    "diff",
    "load",
    "run",
    "seek",
    "sensitivity",
    "sweep",
]
