"""Ranking of platforms over several applications by a figure of merit, and its dependence on the weights.

The merit of a machine m is the weighted geometric mean of its speedups, as the benchmark suites of CORAL-2 and JUPITER
derive one number from several applications: ln F_m = sum_a w_a ln(T_a / t_am), with weights w_a that add up to 1, the
reference time T_a of an application and its time t_am on the machine. It is linear in the weights, so that the weight
at which another machine leads has a closed form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from whatif.axes import Grid
from whatif.core.answer_words import gain
from whatif.core.grid_run import run_whole
from whatif.core.result import array_of
from whatif.core.result_summary import UNCORRECTED
from whatif.core.scenario import Scenario
from whatif.core.term import common_dimension
from whatif.core.uncertainty import Sampling, result_samples, shared_keys, shares_of_the_best
from whatif.errors import UsageError, WhatifError
from whatif.models.quantities import FloatArray
from whatif.plotting.bars import BarChart
from whatif.studies.bar_charts import merit_bars
from whatif.studies.decision_tables import commitment_table, ranking_table, titles
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import SECOND, Dimension, Quantity, format_quantity
from whatif.vocabulary import RankingView

BESIDE: Final = ("total_energy", "total_cost")
"""Results reported in addition to the one that platforms are ranked by."""
_ALIKE: Final = 1.1
"""Factor within which a reference is that of the prediction, and a merit the median of its band."""


@dataclass(frozen=True, slots=True, eq=False)
class MachineScore:
    """Time, energy or cost of an application on a platform, with its grade."""

    number: float
    """In base units; NaN without one."""
    reason: str = ""
    """Reason why there is no number."""
    grade: str = ""
    extrapolated: tuple[str, ...] = ()
    dimension: Dimension | None = None
    other_results: Mapping[str, Quantity] = field(default_factory=dict)
    """Energy and cost of the job, if known."""
    samples: FloatArray | None = None
    """The number at every sample; sample i of all platforms and applications uses the same values."""


@dataclass(frozen=True, slots=True, eq=False)
class Chances:
    """Band of the merit of a platform, and probabilities, from samples."""

    merits: tuple[float, float, float]
    """Lower end, median and upper end of the band."""
    best: float
    """Probability to have the highest merit; platforms that tie share the samples."""
    ahead: float
    """Probability that its merit is higher than that of the first platform."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A platform with its merit; NaN if an application has no answer there."""

    platform: str
    answers: Mapping[str, MachineScore]
    """By application."""
    speedups: Mapping[str, float]
    """Reference time over time, by application, or another `gain`."""
    merit: float
    reason: str
    """Reason why an application has no answer; empty if all have one."""
    chances: Chances | None = None

    @property
    def is_able(self) -> bool:
        """Whether it has a merit."""
        return bool(np.isfinite(self.merit))

    @property
    def times(self) -> dict[str, float]:
        """Times, energies or costs in base units, by application."""
        return {name: answer.number for name, answer in self.answers.items()}


@dataclass(frozen=True, slots=True)
class WeightTurn:
    """Nearest weight of one application at which another platform leads; the others keep their proportions."""

    application: str
    weight: float
    turns_at: float
    leader: str
    above: bool
    """Whether it leads above `turns_at`, not below."""


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(StudyResult):
    """Platforms ranked by merit, the best first."""

    shows_failures = True

    weights: Mapping[str, float]
    references: Mapping[str, float]
    standings: tuple[Standing, ...]
    turns: tuple[WeightTurn, ...]
    """Empty if the best platform leads whatever the weight of one application."""
    dimension: Dimension = SECOND
    """Dimension of the compared result."""
    drawn: int = 0
    """Number of uncertain values that the samples vary."""
    result: str = "total_time"
    first: str = ""
    """The first platform as asked, on which references and measured results are."""
    sampling: Sampling | None = None
    """None without samples, and if nothing is uncertain."""
    required: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Nodes that applications need to meet a target, by application and platform; NaN if none are enough."""
    show: RankingView = "ranking"

    @property
    def is_time(self) -> bool:
        """Whether times are compared."""
        return self.dimension == SECOND

    @property
    def feasible(self) -> list[Standing]:
        """Platforms with a merit, the best first."""
        return [standing for standing in self.standings if standing.is_able]

    @property
    def optional_columns(self) -> list[list[str]]:
        """Groups of columns omitted on a narrow terminal."""
        if self.show == "commitment":
            return [["grade"], ["weight"]]
        bands = [] if self.sampling is None else [[f"merit {name}" for name in self.sampling.names]]
        return [titles(self), *bands]

    def table(self) -> Table:
        """One row per platform, or with `show="commitment"` one per platform and application."""
        return commitment_table(self) if self.show == "commitment" else ranking_table(self)

    def picture(self) -> BarChart:
        """Bars of the merits."""
        return merit_bars(self)

    def summary(self) -> tuple[str, ...]:
        """Weights and references, warnings, and the weights at which another platform leads."""
        return (*self._weights(), *self._warnings(), *self._leads())

    def obstacle(self) -> str:
        """Reason why no platform has a merit."""
        return "" if self.feasible else "infeasible: no machine has an answer for every application that counts"

    def _weights(self) -> Iterator[str]:
        kind = "reference time" if self.is_time else "reference"
        for name, weight in self.weights.items():
            reference = format_quantity(self.references[name], self.dimension, 4)
            yield f"{name}: weight {weight:.1%}, {kind} {reference}"

    def _warnings(self) -> Iterator[str]:
        for standing in self.standings:
            for name, score in standing.answers.items():
                yield from (f"warning: {name} on {standing.platform}: {text}" for text in score.extrapolated)
        assumed = [its.platform for its in self.standings if "assumed" in {item.grade for item in its.answers.values()}]
        if assumed:
            yield f"assumed values: {', '.join(assumed)}"
        banded = ((its.platform, its.merit, its.chances.merits) for its in self.feasible if its.chances is not None)
        if apart := [name for name, merit, (_, median, _) in banded if not 1 / _ALIKE <= merit / median <= _ALIKE]:
            yield f"merit of {', '.join(apart)}: {UNCORRECTED}"
        yield from self._biases()

    def _biases(self) -> Iterator[str]:
        """References that differ from the predictions on the first platform: speedups contain the difference."""
        own = next((its for its in self.standings if its.platform == self.first), None)
        for name, reference in self.references.items():
            ratio = np.nan if own is None else reference / own.answers[name].number
            if np.isfinite(ratio) and not 1 / _ALIKE <= ratio <= _ALIKE:
                text = f"warning: the reference of {name} is {ratio:.2g} times its prediction on {self.first}"
                yield f"{text}: all speedups contain this factor; if measured there, state --measured {name}=.. instead"

    def _leads(self) -> Iterator[str]:
        for turn in self.turns:
            side = "more" if turn.above else "less"
            yield f"{turn.leader} leads if {turn.application} weighs {side} than {turn.turns_at:.1%}"
        if not self.turns and len(self.feasible) > 1 and len(self.weights) > 1:
            yield f"{self.feasible[0].platform} leads whatever one application weighs"


def ranking(
    scenarios: Mapping[str, Scenario],
    platforms: Sequence[str],
    weights: Mapping[str, float] | None = None,
    references: Mapping[str, float] | None = None,
    result: str = "total_time",
    sampling: Sampling | None = None,
    measured: Mapping[str, float] | None = None,
) -> Ranking:
    """Ranking of platforms over applications by name, by a time, energy or cost to minimise, or a rate to maximise.

    Weights default to 1 and need not add up to 1; reference times default to those on the first platform. `measured`
    are measured results on the first platform: those of an application on all platforms are scaled by measured /
    predicted there. Overrides apply to every platform. Samples of an application are the same on all platforms, those
    of a platform the same for all applications.

    Raise `UsageError` for weights that are negative or add up to 0, unknown names, costs in several currencies, and a
    first platform without an answer if its times are the references.
    """
    shares = _shares(scenarios, weights or {})
    answers, drawn = _answers(scenarios, platforms, result, sampling)
    units = [its.dimension for answer in answers.values() for its in answer.values() if its.dimension]
    dimension = common_dimension(result, units or [SECOND])
    _known(measured or {}, scenarios, "measured result")
    if twice := sorted((measured or {}).keys() & (references or {}).keys()):
        raise UsageError(f"{', '.join(twice)}: a measured result on {platforms[0]} is the reference: state one of both")
    answers = _scaled(answers, measured or {}, platforms[0])
    reference = _references(scenarios, references or {}, platforms[0], answers[platforms[0]])
    standings = [_standing(name, answer, shares, reference, dimension) for name, answer in answers.items()]
    if sampling is not None and drawn:
        standings = _with_chances(standings, shares, reference, dimension, sampling)
    standings.sort(key=lambda its: -its.merit if its.is_able else np.inf)
    turns = tuple(_turns(standings, shares))
    known = sampling if drawn else None
    return Ranking(shares, reference, tuple(standings), turns, dimension, drawn, result, platforms[0], known)


def _answers(
    scenarios: Mapping[str, Scenario], platforms: Sequence[str], result: str, sampling: Sampling | None
) -> tuple[dict[str, dict[str, MachineScore]], int]:
    """Scores by platform and application, and the number of uncertain values."""
    placed = {name: {app: scenario.moved(name) for app, scenario in scenarios.items()} for name in platforms}
    found = {name: {app: _answer(scenario, result) for app, scenario in its.items()} for name, its in placed.items()}
    if sampling is None:
        return found, 0
    programs = {
        (name, app): placed[name][app].program for name, its in found.items() for app in its if not its[app].reason
    }
    alike = replace(sampling, keys=shared_keys(programs.values(), sampling))
    for (name, app), program in programs.items():
        found[name][app] = replace(found[name][app], samples=result_samples(program, result, alike))
    return found, len(alike.keys)


def _scaled(
    answers: Mapping[str, Mapping[str, MachineScore]], measured: Mapping[str, float], first: str
) -> dict[str, dict[str, MachineScore]]:
    """Scores times measured / predicted on the first platform, sample by sample, without the error that all share."""
    found = {name: dict(its) for name, its in answers.items()}
    for app, number in measured.items():
        base = answers[first][app]
        for its in found.values():
            score, samples = its[app], its[app].samples
            if samples is not None and base.samples is not None:
                samples = samples * number / base.samples
            its[app] = replace(score, number=score.number * number / base.number, samples=samples)
    return found


def _known(given: Mapping[str, float], scenarios: Mapping[str, Scenario], what: str) -> None:
    for name in given:
        if name not in scenarios:
            raise UsageError(f"{what} of `{name}`: it is not one of the applications {', '.join(scenarios)}")


def _shares(scenarios: Mapping[str, Scenario], weights: Mapping[str, float]) -> dict[str, float]:
    _known(weights, scenarios, "weight")
    stated = {name: float(weights.get(name, 1.0)) for name in scenarios}
    for name, weight in stated.items():
        if not 0 <= weight < np.inf:
            raise UsageError(f"weight of `{name}`: {weight:g} must be 0 or more")
    total = sum(stated.values())
    if total <= 0:
        raise UsageError("weights add up to 0; at least one application must count")
    return {name: weight / total for name, weight in stated.items()}


def _answer(scenario: Scenario, result: str) -> MachineScore:
    """Result of a scenario on its platform."""
    try:
        answer = run_whole(scenario, Grid())
    except WhatifError as error:
        return MachineScore(np.nan, str(error))
    if result in answer.program.missing:
        return MachineScore(np.nan, answer.program.lack(result))
    answer.program.term_of(result)
    result = answer.program.result_name(result)
    dimension, number = answer.dimensions[result], float(array_of(answer, result))
    known = [name for name in BESIDE if name in answer.columns]
    other_results = {name: Quantity(float(array_of(answer, name)), answer.dimensions[name]) for name in known}
    details = (answer.grade, tuple(answer.extrapolated), dimension, other_results)
    if not answer.reasons and not number > 0:
        return MachineScore(np.nan, f"{result} is {number:g} {dimension} there, which has no speedup", *details)
    return MachineScore(number, "; ".join(answer.reasons), *details)


def _references(
    scenarios: Mapping[str, Scenario], given: Mapping[str, float], first: str, answer: Mapping[str, MachineScore]
) -> dict[str, float]:
    _known(given, scenarios, "reference time")
    found = {}
    for name in scenarios:
        found[name] = float(given.get(name, answer[name].number))
        if not 0 < found[name] < np.inf:
            raise UsageError(f"no reference time of `{name}`: on {first}: {answer[name].reason}")
    return found


def _standing(
    name: str, answers: Mapping[str, MachineScore], shares: Mapping[str, float], references: Mapping[str, float],
    dimension: Dimension,
) -> Standing:  # fmt: skip
    speedups = {app: gain(references[app], answer.number, dimension) for app, answer in answers.items()}
    reasons = [f"{app}: {answer.reason}" for app, answer in answers.items() if answer.reason]
    return Standing(name, answers, speedups, float(_merit(speedups, shares)), "; ".join(reasons))


def _merit(speedups: Mapping[str, Any], shares: Mapping[str, float]) -> Any:
    """Weighted geometric mean of the speedups, or of their samples, over the applications that count."""
    return np.exp(sum(share * np.log(speedups[app]) for app, share in shares.items() if share > 0))


def _with_chances(
    standings: Sequence[Standing], shares: Mapping[str, float], references: Mapping[str, float], dimension: Dimension,
    sampling: Sampling,
) -> list[Standing]:  # fmt: skip
    """Standings with their chances by samples of merits, the first platform first; none without an answer."""
    merits = {its.platform: _merit_samples(its, shares, references, dimension) for its in standings if its.is_able}
    drawn = np.array([np.where(np.isfinite(array), array, -np.inf) for array in merits.values()])
    answered = np.isfinite(drawn)
    # The only platform with an answer is not the best of several.
    if len(merits) < 2 or not answered.any(axis=1).all():
        return list(standings)
    known = answered.any(axis=0)
    first = merits.get(standings[0].platform)
    ahead = np.full(len(drawn), np.nan) if first is None else (drawn > drawn[0])[:, known].mean(axis=1)
    bands = [
        tuple(np.quantile(own[some], sampling.quantiles).tolist()) for own, some in zip(drawn, answered, strict=True)
    ]
    found = dict(zip(merits, map(Chances, bands, shares_of_the_best(drawn).tolist(), ahead.tolist()), strict=True))
    return [replace(its, chances=found.get(its.platform)) for its in standings]


def _merit_samples(
    its: Standing, shares: Mapping[str, float], references: Mapping[str, float], dimension: Dimension
) -> FloatArray:
    """Merit of a platform at every sample."""
    known = ((app, answer.samples) for app, answer in its.answers.items() if answer.samples is not None)
    return np.asarray(_merit({app: gain(references[app], samples, dimension) for app, samples in known}, shares))


def _turns(standings: Sequence[Standing], shares: Mapping[str, float]) -> list[WeightTurn]:
    """Nearest weight of each application at which the leader changes."""
    ranked = [its for its in standings if its.is_able]
    if len(ranked) < 2:
        return []
    logarithms = np.log([[its.speedups[app] for app in shares] for its in ranked])
    weights = np.array(list(shares.values()))
    # An application that does not count may have no answer.
    parts = np.where(weights > 0, logarithms * weights, 0.0)
    found = []
    for at, (app, share) in enumerate(shares.items()):
        others = (parts.sum(axis=1) - parts[:, at]) / (1 - share) if share < 1 else None
        turn = None if others is None else _nearest(logarithms[:, at], others, share)
        if turn is not None:
            weight, place, above = turn
            found.append(WeightTurn(app, share, weight, ranked[place].platform, above))
    return found


def _nearest(alone: FloatArray, others: FloatArray, share: float) -> tuple[float, int, bool] | None:
    """The t nearest to `share` at which another platform has the larger t alone + (1 - t) others, the place of that
    platform, and whether it leads above t. A platform whose `alone` is NaN leads at no t > 0."""
    gain, lead = (alone - others) - (alone[0] - others[0]), others[0] - others
    gain = np.where(np.isnan(alone[0]) & ~np.isnan(alone), np.inf, gain)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = lead / gain
    crossings[~((crossings >= 0) & (crossings <= 1) & (gain != 0))] = np.inf
    crossings[0] = np.inf
    if not np.isfinite(crossings).any():
        return None
    at = int(np.abs(crossings - share).argmin())
    return float(crossings[at]), at, bool(gain[at] > 0)
