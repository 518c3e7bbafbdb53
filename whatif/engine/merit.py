"""Machines compared over several applications: one figure of merit each, and how much it depends on the weights.

The merit of a machine m is the weighted geometric mean of its speedups, as the benchmark suites of CORAL-2 and JUPITER
take one number from several applications: ln F_m = sum_a w_a ln(T_a / t_am), with weights w_a that add up to 1, the
reference time T_a of an application and its time t_am on the machine. It is linear in the weights, so that the weight
at which another machine leads has a closed form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whatif.axes import Grid
from whatif.engine.result import Question, array_of, run_whole
from whatif.errors import UsageError, WhatifError
from whatif.models.quantities import FloatArray
from whatif.units import SECOND, Dimension


@dataclass(frozen=True, slots=True)
class Standing:
    """A machine with its merit; NaN where an application has no answer there."""

    platform: str
    times: Mapping[str, float]
    """Or energies, or costs, in base units, by application."""
    speedups: Mapping[str, float]
    """Reference time over time, by application."""
    merit: float
    reason: str
    """Why an application has no answer; empty where all have."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The nearest weight of one application at which another machine leads, the others keeping their proportions."""

    application: str
    weight: float
    turns_at: float
    leader: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """All machines, the best first."""

    weights: Mapping[str, float]
    references: Mapping[str, float]
    standings: tuple[Standing, ...]
    turns: tuple[Turn, ...]
    """Empty where the best machine leads whatever one application weighs."""
    dimension: Dimension = SECOND
    """Of what is compared."""

    @property
    def is_time(self) -> bool:
        """Whether times are compared."""
        return self.dimension == SECOND


def ranking(
    questions: Mapping[str, Question],
    platforms: Sequence[str],
    weights: Mapping[str, float] | None = None,
    references: Mapping[str, float] | None = None,
    result: str = "total_time",
) -> Ranking:
    """Rank platforms over applications by name, by a result of which less is better: a time, an energy, a cost.

    Weights are 1 where they are not given, and need not add up to 1; reference times are those on the first platform.
    Raise `UsageError` for weights that are negative or add up to 0, names that are not asked for, costs in several
    currencies, and a first platform without an answer where its times are needed.
    """
    shares = _shares(questions, weights or {})
    answers = {
        name: {app: _answer(question, name, result) for app, question in questions.items()} for name in platforms
    }
    units = {its.dimension for answer in answers.values() for its in answer.values() if its.dimension} or {SECOND}
    if len(units) > 1:
        raise UsageError(f"`{result}` is in {' and '.join(sorted(map(str, units)))}: nothing here converts them")
    reference = _references(questions, references or {}, platforms[0], answers[platforms[0]])
    standings = [_standing(name, answer, shares, reference) for name, answer in answers.items()]
    standings.sort(key=lambda its: -its.merit if np.isfinite(its.merit) else np.inf)
    return Ranking(shares, reference, tuple(standings), tuple(_turns(standings, shares)), units.pop())


def _known(given: Mapping[str, float], questions: Mapping[str, Question], what: str) -> None:
    for name in given:
        if name not in questions:
            raise UsageError(f"{what} of `{name}`: it is none of the applications {', '.join(questions)}")


def _shares(questions: Mapping[str, Question], weights: Mapping[str, float]) -> dict[str, float]:
    _known(weights, questions, "weight")
    stated = {name: float(weights.get(name, 1.0)) for name in questions}
    for name, weight in stated.items():
        if not 0 <= weight < np.inf:
            raise UsageError(f"weight of `{name}`: {weight:g} must be 0 or more")
    total = sum(stated.values())
    if total <= 0:
        raise UsageError("weights add up to 0; at least one application must count")
    return {name: weight / total for name, weight in stated.items()}


@dataclass(frozen=True, slots=True)
class _Answer:
    """A result on a platform, and its unit; or why there is none."""

    number: float
    reason: str
    dimension: Dimension | None = None


def _answer(question: Question, platform: str, result: str) -> _Answer:
    try:
        answer = run_whole(question.on_platform(platform), Grid())
    except WhatifError as error:
        return _Answer(np.nan, str(error))
    if result in answer.program.missing:
        return _Answer(np.nan, answer.program.lack(result))
    dimension = answer.dimension_of(result)
    number = float(array_of(answer, result))
    if not answer.reasons and not number > 0:
        return _Answer(np.nan, f"{result} is {number:g} {dimension} there, which has no speedup", dimension)
    return _Answer(number, "; ".join(answer.reasons), dimension)


def _references(
    questions: Mapping[str, Question], given: Mapping[str, float], first: str, answer: Mapping[str, _Answer]
) -> dict[str, float]:
    _known(given, questions, "reference time")
    found = {}
    for name in questions:
        found[name] = float(given.get(name, answer[name].number))
        if not 0 < found[name] < np.inf:
            raise UsageError(f"no reference time of `{name}`: on {first}: {answer[name].reason}")
    return found


def _standing(
    name: str, answer: Mapping[str, _Answer], shares: Mapping[str, float], references: Mapping[str, float]
) -> Standing:
    times = {app: its.number for app, its in answer.items()}
    speedups = {app: references[app] / time for app, time in times.items()}
    counted = [shares[app] * np.log(speedup) for app, speedup in speedups.items() if shares[app] > 0]
    reasons = [f"{app}: {its.reason}" for app, its in answer.items() if its.reason]
    return Standing(name, times, speedups, float(np.exp(sum(counted))), "; ".join(reasons))


def _turns(standings: Sequence[Standing], shares: Mapping[str, float]) -> list[Turn]:
    """By application, the nearest share of the weight at which the leader changes."""
    ranked = [its for its in standings if np.isfinite(its.merit)]
    if len(ranked) < 2:
        return []
    logarithms = np.log([[its.speedups[app] for app in shares] for its in ranked])
    weights = np.array(list(shares.values()))
    found = []
    for at, (app, share) in enumerate(shares.items()):
        rest = 1 - share
        others = (logarithms @ weights - share * logarithms[:, at]) / rest if rest > 0 else None
        turn = None if others is None else _nearest(logarithms[:, at], others, share)
        if turn is not None:
            found.append(Turn(app, share, turn[0], ranked[turn[1]].platform))
    return found


def _nearest(alone: FloatArray, others: FloatArray, share: float) -> tuple[float, int] | None:
    """Where t alone + (1 - t) others of the first machine is overtaken by that of another, t nearest to `share`."""
    gain, lead = (alone - others) - (alone[0] - others[0]), others[0] - others
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = lead / gain
    crossings[~((crossings >= 0) & (crossings <= 1) & (gain != 0))] = np.inf
    crossings[0] = np.inf
    if not np.isfinite(crossings).any():
        return None
    at = int(np.abs(crossings - share).argmin())
    return float(crossings[at]), at
