"""Machines compared over several applications: one figure of merit each, and how much it depends on the weights.

The merit of a machine m is the weighted geometric mean of its speedups, as the benchmark suites of CORAL-2 and JUPITER
take one number from several applications: ln F_m = sum_a w_a ln(T_a / t_am), with weights w_a that add up to 1, the
reference time T_a of an application and its time t_am on the machine. It is linear in the weights, so that the weight
at which another machine leads has a closed form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from whatif.axes import Grid
from whatif.core.result import array_of, run_whole
from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling, result_samples, shared_keys
from whatif.errors import UsageError, WhatifError
from whatif.models.quantities import FloatArray
from whatif.units import SECOND, Dimension, Quantity

BESIDE: Final = ("total_energy", "total_cost")
"""What is told of a job besides the result that machines are ranked by."""


@dataclass(frozen=True, slots=True, eq=False)
class MachineScore:
    """The time, or energy, or cost, of an application on a machine, with what it is worth."""

    number: float
    """In base units; NaN where there is none."""
    reason: str = ""
    """Why there is none."""
    grade: str = ""
    extrapolated: tuple[str, ...] = ()
    dimension: Dimension | None = None
    beside: Mapping[str, Quantity] = field(default_factory=dict)
    """Energy and cost of the job, as far as they are known."""
    samples: FloatArray | None = None
    """The number at every sample of what is uncertain; the same sample of all answers goes together."""


@dataclass(frozen=True, slots=True, eq=False)
class Chances:
    """What the samples say of a machine."""

    merits: tuple[float, float, float]
    """Lower end, median and upper end of the band of the merit."""
    best: float
    """Probability that no other machine has a higher merit."""
    ahead: float
    """Probability that its merit is higher than that of the first platform."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A machine with its merit; NaN where an application has no answer there."""

    platform: str
    answers: Mapping[str, MachineScore]
    """By application."""
    speedups: Mapping[str, float]
    """Reference time over time, by application."""
    merit: float
    reason: str
    """Why an application has no answer; empty where all have."""
    chances: Chances | None = None

    @property
    def times(self) -> dict[str, float]:
        """Or energies, or costs, in base units, by application."""
        return {name: answer.number for name, answer in self.answers.items()}


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
    drawn: int = 0
    """How many uncertain values the samples vary."""

    @property
    def is_time(self) -> bool:
        """Whether times are compared."""
        return self.dimension == SECOND


def ranking(
    questions: Mapping[str, Scenario],
    platforms: Sequence[str],
    weights: Mapping[str, float] | None = None,
    references: Mapping[str, float] | None = None,
    result: str = "total_time",
    sampling: Sampling | None = None,
) -> Ranking:
    """Rank platforms over applications by name, by a result of which less is better: a time, an energy, a cost.

    Weights are 1 where they are not given, and need not add up to 1; reference times are those on the first platform,
    as the values stand. What is set from outside holds on every platform. With samples a machine has its chances: what
    is uncertain of an application is drawn once for all machines, what is uncertain of a machine once for all
    applications.
    Raise `UsageError` for weights that are negative or add up to 0, names that are not asked for, costs in several
    currencies, and a first platform without an answer where its times are needed.
    """
    shares = _shares(questions, weights or {})
    answers, drawn = _answers(questions, platforms, result, sampling)
    units = {its.dimension for answer in answers.values() for its in answer.values() if its.dimension} or {SECOND}
    if len(units) > 1:
        raise UsageError(f"`{result}` is in {' and '.join(sorted(map(str, units)))}: nothing here converts them")
    reference = _references(questions, references or {}, platforms[0], answers[platforms[0]])
    standings = [_standing(name, answer, shares, reference) for name, answer in answers.items()]
    if sampling is not None and drawn:
        standings = _with_chances(standings, shares, reference, sampling)
    standings.sort(key=lambda its: -its.merit if np.isfinite(its.merit) else np.inf)
    return Ranking(shares, reference, tuple(standings), tuple(_turns(standings, shares)), units.pop(), drawn)


def _answers(
    questions: Mapping[str, Scenario], platforms: Sequence[str], result: str, sampling: Sampling | None
) -> tuple[dict[str, dict[str, MachineScore]], int]:
    """By platform and application; also how many values are uncertain."""
    asked = {
        name: {app: question.changed(question.sets, name) for app, question in questions.items()} for name in platforms
    }
    found = {name: {app: _answer(question, result) for app, question in its.items()} for name, its in asked.items()}
    if sampling is None:
        return found, 0
    programs = {
        (name, app): asked[name][app].program for name, its in found.items() for app in its if not its[app].reason
    }
    alike = replace(sampling, keys=shared_keys(programs.values(), sampling))
    for (name, app), program in programs.items():
        found[name][app] = replace(found[name][app], samples=result_samples(program, result, alike))
    return found, len(alike.keys)


def _known(given: Mapping[str, float], questions: Mapping[str, Scenario], what: str) -> None:
    for name in given:
        if name not in questions:
            raise UsageError(f"{what} of `{name}`: it is none of the applications {', '.join(questions)}")


def _shares(questions: Mapping[str, Scenario], weights: Mapping[str, float]) -> dict[str, float]:
    _known(weights, questions, "weight")
    stated = {name: float(weights.get(name, 1.0)) for name in questions}
    for name, weight in stated.items():
        if not 0 <= weight < np.inf:
            raise UsageError(f"weight of `{name}`: {weight:g} must be 0 or more")
    total = sum(stated.values())
    if total <= 0:
        raise UsageError("weights add up to 0; at least one application must count")
    return {name: weight / total for name, weight in stated.items()}


def _answer(question: Scenario, result: str) -> MachineScore:
    """A result on the platform of a question."""
    try:
        answer = run_whole(question, Grid())
    except WhatifError as error:
        return MachineScore(np.nan, str(error))
    if result in answer.program.missing:
        return MachineScore(np.nan, answer.program.lack(result))
    answer.program.term_of(result)
    dimension, number = answer.dimensions[result], float(array_of(answer, result))
    known = [name for name in BESIDE if name in answer.columns]
    beside = {name: Quantity(float(array_of(answer, name)), answer.dimensions[name]) for name in known}
    told = (answer.grade, tuple(answer.extrapolated), dimension, beside)
    if not answer.reasons and not number > 0:
        return MachineScore(np.nan, f"{result} is {number:g} {dimension} there, which has no speedup", *told)
    return MachineScore(number, "; ".join(answer.reasons), *told)


def _references(
    questions: Mapping[str, Scenario], given: Mapping[str, float], first: str, answer: Mapping[str, MachineScore]
) -> dict[str, float]:
    _known(given, questions, "reference time")
    found = {}
    for name in questions:
        found[name] = float(given.get(name, answer[name].number))
        if not 0 < found[name] < np.inf:
            raise UsageError(f"no reference time of `{name}`: on {first}: {answer[name].reason}")
    return found


def _standing(
    name: str, answers: Mapping[str, MachineScore], shares: Mapping[str, float], references: Mapping[str, float]
) -> Standing:
    speedups = {app: references[app] / answer.number for app, answer in answers.items()}
    counted = [shares[app] * np.log(speedup) for app, speedup in speedups.items() if shares[app] > 0]
    reasons = [f"{app}: {answer.reason}" for app, answer in answers.items() if answer.reason]
    return Standing(name, answers, speedups, float(np.exp(sum(counted))), "; ".join(reasons))


def _with_chances(
    standings: Sequence[Standing], shares: Mapping[str, float], references: Mapping[str, float], sampling: Sampling
) -> list[Standing]:
    """The standings, the first platform first, with what their samples say; those without an answer have none."""
    able = [its for its in standings if np.isfinite(its.merit)]
    merits = {its.platform: _merits(its, shares, references) for its in able}
    whole = np.all([np.isfinite(array) for array in merits.values()], axis=0)
    if not whole.any():
        return list(standings)
    drawn = {name: array[whole] for name, array in merits.items()}
    most = np.max(list(drawn.values()), axis=0)
    first = drawn.get(standings[0].platform)
    found = []
    for its in standings:
        own = drawn.get(its.platform)
        if own is not None:
            lower, median, upper = (float(item) for item in np.quantile(own, sampling.quantiles))
            ahead = np.nan if first is None else float((own > first).mean())
            its = replace(its, chances=Chances((lower, median, upper), float((own >= most).mean()), ahead))  # noqa: PLW2901
        found.append(its)
    return found


def _merits(its: Standing, shares: Mapping[str, float], references: Mapping[str, float]) -> FloatArray:
    """The merit of a machine at every sample."""
    logarithms = [
        share * np.log(references[app] / samples)
        for app, share in shares.items()
        if share > 0 and (samples := its.answers[app].samples) is not None
    ]
    return np.asarray(np.exp(np.sum(logarithms, axis=0)))


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
