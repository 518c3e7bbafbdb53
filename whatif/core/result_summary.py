"""Remarks on results: infeasible points and their reasons, grades, extrapolations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.axes import Grid
from whatif.core.phases.correction import CORRECTION
from whatif.core.result import Result
from whatif.schema.parameters import worst
from whatif.units import counted

_LARGE_SHARE: Final = 0.2
"""Least share of added time that is noted."""
UNCORRECTED: Final = "as the models give it; bands also correct their mean errors at measured runs"
"""Remark on values with the mean error of their models, which bands are without."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over results; texts are those of all of them, each once."""

    points: int = 0
    infeasible: int = 0
    reasons: tuple[str, ...] = ()
    extrapolated: tuple[str, ...] = ()
    grades: tuple[str, ...] = ()
    unanswered: float = 0.0
    """Samples without an answer, in feasible points."""
    outside: tuple[str, ...] = ()
    """Columns with values outside of their bands."""
    shortage: str = ""
    """Shortage at a single infeasible point, in words."""
    added: float = 0.0
    """Largest share of the iteration that a calibration adds."""

    @property
    def refusal(self) -> str:
        """Message that no point is feasible, with what a single one lacks."""
        lacking = [self.shortage] if self.shortage and self.points == 1 else []
        return f"infeasible: {'; '.join([*self.reasons, *lacking])}"

    @classmethod
    def of(cls, result: Result) -> Tally:
        """Tally of one result."""
        feasible = result.grid.size - result.infeasible
        lost = 0.0 if result.bands is None else (1 - result.bands.answered) * feasible
        remarks = tuple(result.extrapolated), (result.grade,), lost, result.outside, result.shortage
        return cls(result.grid.size, result.infeasible, result.reasons, *remarks, _added_share(result))

    def notes(self, grid: Grid) -> tuple[str, ...]:
        """Remarks on the results over a grid."""
        notes = [f"warning: {line}" for line in self.extrapolated]
        if self.added > _LARGE_SHARE:
            reach = "up to " if grid.size > 1 else ""
            notes.append(
                f"warning: {reach}{self.added:.0%} of the iteration is time that calibration adds without a model"
            )
        if self.unanswered:
            share = self.unanswered / (self.points - self.infeasible)
            notes.append(f"warning: {share:.1%} of the samples have no answer and do not count")
        if self.outside:
            notes.append(f"{', '.join(self.outside)}: outside of the bands: {UNCORRECTED}")
        if any(axis.structural for axis in grid.axes):
            notes.append(f"lowest grade over all of them: {worst(self.grades)}")
        if 0 < self.infeasible < grid.size:
            notes.append(f"{self.infeasible} of {counted(grid.size, 'point')} infeasible: {'; '.join(self.reasons)}")
        return tuple(notes)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.points + other.points,
            self.infeasible + other.infeasible,
            _each_once(self.reasons, other.reasons),
            _each_once(self.extrapolated, other.extrapolated),
            _each_once(self.grades, other.grades),
            self.unanswered + other.unanswered,
            _each_once(self.outside, other.outside),
            self.shortage or other.shortage,
            max(self.added, other.added),
        )


def _added_share(result: Result) -> float:
    """Largest share of the correction in the time of an iteration; 0 without any."""
    added = result.terms.get(CORRECTION)
    if added is None:
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.nanmax(added / result.columns["iteration_time"], initial=0.0))


def _each_once(texts: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*texts, *others)))


class Counted:
    """Iterator over results that keeps their tally."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._results = results
        self.tally = Tally()

    def __iter__(self) -> Iterator[Result]:
        for result in self._results:
            self.tally += Tally.of(result)
            yield result
