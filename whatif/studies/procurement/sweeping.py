"""Sweeps of a study: the ranking at each value of a price, a limit, a weight, a machine or an application."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.core.sweep import SweepText, numeric_points, swept_values
from whatif.errors import UsageError, did_you_mean
from whatif.models.quantities import FloatArray
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine
from whatif.schema.parameters import Parameter, stated_parameters
from whatif.schema.relative import absolute, is_relative
from whatif.schema.study_file import StudyFile, open_study
from whatif.schema.study_spec import PRESENT
from whatif.schema.toml import Document
from whatif.studies.procurement.placing import Adjustment, placed
from whatif.studies.procurement.study import Study, study_of
from whatif.studies.procurement.study_jobs import JobCache
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.table_writers import worth_showing
from whatif.units import ONE, SECOND, Dimension, format_quantity

MOST_VALUES: Final = 1000
_EXACT: Final = 15


@dataclass(frozen=True, eq=False, repr=False)
class StudySweep(StudyResult):
    """Studies at each value of one parameter."""

    path: str
    dimension: Dimension | None
    """None for words."""
    values: FloatArray | tuple[str, ...]
    studies: tuple[Study, ...]
    shows_failures = True

    def table(self) -> Table:
        """One row per value and bid, the best first."""
        money = self.studies[0].prices.dimension
        columns: dict[str, Dimension | None] = {self.path: self.dimension, "bid": None, "nodes": ONE, "limit": None}
        columns |= {"throughput": ONE, "low": ONE, "high": ONE, "best": ONE, "merit": ONE}
        columns |= {"price": money, "rent": money / SECOND, "cost": money, "reason": None}
        rows = []
        for value, study in zip(self.values, self.studies, strict=True):
            for name, its in study.bids.items():
                numbers = [its.throughput[0], *study.band(its.throughput), study.chances.get(name, math.nan)]
                numbers += [its.merit[0], its.capital[0], its.rent[0], its.ownership[0]]
                rows.append([value, name, its.node_count[0], its.limit, *numbers, its.reason])
        return worth_showing(Table.of_rows(columns, rows, {"criterion": self.studies[0].criterion}, ("best",)))

    def picture(self) -> PlotDescription:
        """Throughput of the mix of each bid over the parameter, with bands."""
        if self.dimension is None:
            raise UsageError(f"--sweep {self.path}: words have no axis; a table shows them")
        x, lines = np.asarray(self.values), []
        for name in self.studies[0].file.spec.bids:
            its = [study.outcomes[name].throughput for study in self.studies]
            lines.append(PlotLine(name, x, np.array([item[0] for item in its])))
            ends = np.array([study.band(item) for study, item in zip(self.studies, its, strict=True)])
            lines += [PlotLine("", x, end, "band") for end in ends.T]
        title = self.studies[0].file.spec.question
        return PlotDescription(
            title, AxisDescription(self.path, self.dimension), AxisDescription("throughput"), tuple(lines)
        )

    def summary(self) -> tuple[str, ...]:
        """Intervals of the parameter with the bid that is best there."""
        best = [study.winner or "no bid" for study in self.studies]
        starts = [at for at in range(len(best)) if not at or best[at] != best[at - 1]]
        ends = [*(start - 1 for start in starts[1:]), len(best) - 1]
        return tuple(f"{best[one]} is best {self._words(one, other)}" for one, other in zip(starts, ends, strict=True))

    def _words(self, one: int, other: int) -> str:
        first, last = (self._text(at) for at in (one, other))
        return f"at {first}" if one == other else f"from {first} to {last}"

    def _text(self, at: int) -> str:
        return (
            str(self.values[at]) if self.dimension is None else format_quantity(float(self.values[at]), self.dimension)
        )

    def obstacle(self) -> str:
        """Reason why no bid can be recommended at any value."""
        found = any(study.winner for study in self.studies)
        return "" if found else "infeasible: no bid runs the mix within the limits at any value"


def study_sweep(source: str | Path | Document, path: str, text: SweepText, overrides: Mapping[str, Any]) -> StudySweep:
    """Studies at the values of one parameter, written as for `--sweep`.

    Raise `UsageError` for a value that is not allowed, and for an unknown path.
    """
    base = open_study(source, overrides)
    parameter = parameter_of(base, path)
    if parameter is None or parameter.structural:
        words = list(map(str, swept_values(text)))
        values: Any = tuple(words)
        texts, dimension = words, None
    else:
        values, dimension = numeric_points(path, text, parameter, MOST_VALUES), parameter.dimension
        texts = [_written(parameter, float(value)) for value in values]
    if not texts:
        raise UsageError(f"sweep `{path}`: state at least one value")
    cache = JobCache()
    studies = tuple(study_of(source, {**overrides, path: item}, cache=cache) for item in texts)
    return StudySweep(path, dimension, values, studies, remarks=studies[0].remarks)


def _written(parameter: Parameter, value: float) -> Any:
    """Value as a file states it."""
    return value if parameter.dimension == ONE else format_quantity(value, parameter.dimension, _EXACT)


def parameter_of(study: StudyFile, path: str) -> Parameter | None:
    """Parameter of a study, or of the scenario that one of its overrides changes; None for a word that it can state.

    Raise `UsageError` for a path that the study does not state.
    """
    known = stated_parameters(study.spec, study.layers)
    keys = path.split(".")
    if "overrides" in keys[:3]:
        return _of_scenario(study, keys)
    if path in known:
        return known[path]
    raise UsageError(f"`{path}`: not stated in the study{did_you_mean(path, known)}; give it a value first")


def _of_scenario(study: StudyFile, keys: list[str]) -> Parameter | None:
    """Parameter of the scenario that an override of a machine or an application changes."""
    at = keys.index("overrides")
    machine = keys[1] if keys[0] == "bids" else PRESENT
    application = keys[1] if keys[0] == "mix" else next(iter(study.spec.mix))
    if machine not in study.spec.machines or application not in study.spec.mix:
        raise UsageError(f"`{'.'.join(keys)}`: no such bid or application in the study")
    program = placed(study, application, machine, Adjustment()).program
    path = ".".join(keys[at + 1 :] if keys[0] == "mix" else ("platform", *keys[at + 1 :]))
    if path not in program.parameters:
        raise program.no_parameter(path)
    return program.parameters[path]


def absolute_values(
    source: str | Path | Document, overrides: Mapping[str, Any], before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Overrides of a study without reference to present values, such as `x0.9`; those of options keep it.

    Present values are those with the overrides `before`, which the result includes.
    """
    known = dict(before or {})
    relative = {path: text for path, text in overrides.items() if is_relative(text) and not path.startswith("options.")}
    if not relative:
        return {**known, **overrides}
    base = open_study(source, {**known, **{path: text for path, text in overrides.items() if path not in relative}})
    present = {path: parameter_of(base, path) for path in relative}
    return known | {
        path: absolute(parameter, text) if (parameter := present.get(path)) is not None else text
        for path, text in overrides.items()
    }
