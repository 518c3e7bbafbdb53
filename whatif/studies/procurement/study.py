"""Procurement study: bids within the limits, ranked over a mix of applications, with probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from whatif.core.parameter_paths import NODE_COUNT
from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling, shares_of_the_best
from whatif.errors import InfeasiblePointError, InvalidFileError, Problem, UsageError, require_choice
from whatif.models.quantities import FloatArray
from whatif.plotting.bars import BarChart
from whatif.schema.study_file import StudyFile, open_study
from whatif.schema.study_spec import PRESENT
from whatif.schema.toml import Document
from whatif.studies.procurement.economics import Mix, Outcome, Terms, outcome
from whatif.studies.procurement.placing import EFFECTIVENESS, remarks
from whatif.studies.procurement.prices import (
    Prices,
    energy_is_paid,
    money_need,
    price_remarks,
    prices_of,
    without_bound,
    without_conditions,
    without_node_price,
    without_price,
)
from whatif.studies.procurement.study_jobs import JobCache, Jobs, jobs_of, scenario_key
from whatif.studies.procurement.study_tables import OPTIONAL, TABLES, recommendation, score_bars
from whatif.studies.required_nodes import RequiredNodes, required_nodes
from whatif.studies.study_result import StudyResult
from whatif.studies.threshold import parse_target
from whatif.table import Table
from whatif.vocabulary import STUDY_VIEWS, StudyView


@dataclass(frozen=True, eq=False, repr=False)
class Study(StudyResult):
    """Bids of a study with their outcomes, the best first; the present machine is the reference."""

    shows_failures = True

    file: StudyFile
    jobs: Jobs
    prices: Prices
    terms: Terms
    mixes: Mapping[str, Mix]
    present_nodes: float
    outcomes: Mapping[str, Outcome]
    """By machine: bids in the order of the ranking, then the present machine."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Values of the study that replace those of its file, by path."""
    cache: JobCache = field(default_factory=JobCache)
    show: StudyView = "bids"

    @property
    def bids(self) -> dict[str, Outcome]:
        """Outcomes of the bids, the best first."""
        return {name: its for name, its in self.outcomes.items() if name != PRESENT}

    @property
    def able(self) -> list[str]:
        """Bids that run the mix within the limits and have a score, the best first."""
        scores = {name: its.score(self.criterion)[0] for name, its in self.bids.items()}
        return [name for name, its in self.bids.items() if not its.reason and math.isfinite(scores[name])]

    @property
    def winner(self) -> str:
        """Best bid; empty if none runs the mix within the limits."""
        return next(iter(self.able), "")

    @property
    def criterion(self) -> str:
        """Criterion that ranks the bids."""
        return self.file.spec.criterion

    @property
    def confidence(self) -> float:
        """Probability with which commitments are met."""
        return self.file.spec.commit.confidence

    @property
    def inputs(self) -> tuple[Path, ...]:
        """File of the study, which is not overwritten."""
        return (Path(self.file.document.name),)

    @cached_property
    def scores(self) -> dict[str, FloatArray]:
        """Criterion of each bid that runs the mix; larger is better."""
        return {name: self.bids[name].score(self.criterion) for name in self.able}

    @cached_property
    def chances(self) -> dict[str, float]:
        """Probability of each bid to be the best; one that a sample excludes, as by its price, is not."""
        if not self.scores:
            return {}
        shares = shares_of_the_best(np.array([its[1:] for its in self.scores.values()]))
        return dict(zip(self.scores, shares.tolist(), strict=True))

    def band(self, values: FloatArray, failed: float = 0.0) -> tuple[float, float]:
        """Ends of the interval of samples that has the confidence of the study on either side.

        A sample at which a bid cannot run, say as its price buys too few nodes, counts as `failed`.
        """
        drawn = values[1:]
        known = np.isfinite(drawn)
        if not known.any():
            return math.nan, math.nan
        levels = [1 - self.confidence, self.confidence]
        # Between an infinite sample and others there is nothing to interpolate.
        low, high = np.quantile(np.where(known, drawn, failed), levels, method="linear" if known.all() else "nearest")
        return float(low), float(high)

    @cached_property
    def required(self) -> dict[tuple[str, str], RequiredNodes | str]:
        """Fewest nodes with which a machine meets the target of an application, or the reason why none do."""
        found: dict[tuple[str, str], RequiredNodes | str] = {}
        for application, part in self.file.spec.mix.items():
            for machine in self.outcomes if part.target is not None else ():
                found[machine, application] = self._required(machine, application, str(part.target))
        return found

    def _required(self, machine: str, application: str, target: str) -> RequiredNodes | str:
        scenario, known = self.jobs.scenarios[machine][application], self.cache.required
        job, bought = self.jobs.of(machine)[application], self.outcomes[machine].node_count[0]
        try:
            available = scenario.program.parameters[NODE_COUNT].value
        except InvalidFileError:
            # The platform lacks what the application needs.
            return job.reason
        if bought > available:
            scenario = scenario.with_overrides({NODE_COUNT: int(bought)})
        correction = job.correction
        key = f"{scenario_key(scenario)} {target} {correction}"
        if key not in known:
            known[key] = self._searched(scenario, application, target, correction)
        return known[key]

    def _searched(self, scenario: Scenario, application: str, target: str, correction: float) -> RequiredNodes | str:
        try:
            return required_nodes(scenario, target, correction if math.isfinite(correction) else 1.0)
        except (InfeasiblePointError, InvalidFileError) as problem:
            return str(problem).removeprefix("infeasible: ")
        except UsageError as problem:
            raise self.file.refused(f"mix.{application}.target", str(problem)) from None

    def table(self) -> Table:
        """Rows of the view."""
        return TABLES[self.show](self)

    def picture(self) -> BarChart:
        """Bars of the throughput by bid and application, with bands."""
        return score_bars(self)

    @property
    def optional_columns(self) -> list[list[str]]:
        """Groups of columns omitted on a narrow terminal."""
        return OPTIONAL[self.show]

    def summary(self) -> tuple[str, ...]:
        """The recommendation with its probability."""
        missing = ("the study states no `[options]`",) if self.show == "options" and not self.file.spec.options else ()
        return (*missing, *recommendation(self))

    def obstacle(self) -> str:
        """Reason why no bid can be recommended."""
        return "" if self.winner else "infeasible: no bid runs the mix within the limits"


def study_of(
    source: str | Path | Document,
    overrides: Mapping[str, Any] | None = None,
    *,
    show: StudyView = "bids",
    cache: JobCache | None = None,
) -> Study:
    """Study of a file, with overrides by path.

    Raise `InvalidFileError` for files that cannot be used, with the place of each problem.
    """
    require_choice("show", show, STUDY_VIEWS)
    file, cache = open_study(source, overrides), JobCache() if cache is None else cache
    stated = file.spec.uncertainty
    sampling = Sampling(stated.samples, stated.seed, spreads=stated.spreads)
    prices = prices_of(file, sampling.count, sampling.seed)
    jobs = jobs_of(file, sampling, cache)
    _check(file, jobs, prices)
    terms = Terms.of(file.spec, prices)
    mixes = {name: Mix.of(jobs.of(name)) for name in file.spec.machines}
    nodes = _present_nodes(file, jobs)
    outcomes = _ranked(file, mixes, prices, terms, nodes)
    notes = (*_shares(file), *remarks(jobs.adjustments), *price_remarks(prices), *_sites(file, jobs), *_warnings(jobs))
    notes += tuple(_failures(outcomes))
    return Study(file, jobs, prices, terms, mixes, nodes, outcomes, overrides or {}, cache, show, remarks=notes)


def _ranked(
    file: StudyFile, mixes: Mapping[str, Mix], prices: Prices, terms: Terms, nodes: float
) -> dict[str, Outcome]:
    """Outcomes, the best bid first, bids that cannot run the mix after the others, and the present machine."""
    found = {name: outcome(mixes[name], mixes[PRESENT], nodes, prices.machines[name], terms) for name in file.spec.bids}
    scores = {name: float(its.score(file.spec.criterion)[0]) for name, its in found.items()}
    order = sorted(found, key=lambda name: (not math.isfinite(scores[name]), -scores[name]))
    return {**{name: found[name] for name in order}, PRESENT: present_outcome(mixes[PRESENT], nodes, prices, terms)}


def present_outcome(mix: Mix, nodes: float, prices: Prices, terms: Terms) -> Outcome:
    """Outcome of the present machine, which no limit applies to."""
    return outcome(mix, mix, nodes, replace(prices.machines[PRESENT], offered=nodes), terms.unlimited())


def _present_nodes(file: StudyFile, jobs: Jobs) -> float:
    """Number of nodes of the present machine."""
    stated = file.spec.present.node_count
    if stated is not None:
        return stated
    scenario = next(iter(jobs.scenarios[PRESENT].values()))
    return float(scenario.program.parameters[NODE_COUNT].value)


def _check(file: StudyFile, jobs: Jobs, prices: Prices) -> None:
    """Refuse applications that the present machine cannot run, and what a limit or the criterion lacks."""
    problems = [
        *_unable(file, jobs),
        *_unknown_targets(file, jobs),
        *without_price(file, prices),
        *without_node_price(file, prices),
        *_without_power(file, jobs, prices),
        *without_bound(file, prices),
        *without_conditions(file, prices),
    ]
    if problems:
        raise InvalidFileError(problems)


def _unable(file: StudyFile, jobs: Jobs) -> Iterator[Problem]:
    """Problems of applications that the present machine cannot run, and what to change."""
    for name, job in jobs.of(PRESENT).items():
        if job.reason and file.spec.mix[name].weight:
            fewer = f"lower `mix.{name}.overrides.application.rank_count`, or " if job.lacks_nodes else ""
            message = f"the present machine cannot run it: {job.reason}; {fewer}leave it out with `weight = 0`"
            yield file.problem(f"mix.{name}", message)


def _unknown_targets(file: StudyFile, jobs: Jobs) -> Iterator[Problem]:
    """Problems of targets that are none, or whose result the application does not have."""
    for name, part in file.spec.mix.items():
        try:
            if part.target is not None:
                parse_target(part.target, jobs.scenarios[PRESENT][name].program)
        except UsageError as problem:
            yield file.problem(f"mix.{name}.target", str(problem))
        except (InfeasiblePointError, InvalidFileError):
            continue  # Reasons of the present machine, which others need not have.


def _without_power(file: StudyFile, jobs: Jobs, prices: Prices) -> Iterator[Problem]:
    """Problems of bids without a power that a limit or the criterion needs; rent may include the energy."""
    by_criterion = '`criterion = "energy"`' if file.spec.criterion == "energy" else ""
    always = "`[limits] power`" if file.spec.limits.power is not None else by_criterion
    for name in file.spec.bids:
        needed = always or (money_need(file) if energy_is_paid(prices, name) else "")
        lacking = dict.fromkeys(path for job in jobs.of(name).values() for path in job.unknown)
        if needed and lacking:
            unstated = ", ".join(path.removeprefix("platform.") for path in lacking)
            where = f"in its platform or in `[bids.{name}.overrides]`"
            message = f"no power, which {needed} needs: state {unstated} {where}"
            yield file.problem(f"bids.{name}.platform", message)


def _shares(file: StudyFile) -> Iterator[str]:
    """Remark on weights that do not add up to 1: the shares that they give."""
    weights = {name: part.weight for name, part in file.spec.mix.items()}
    total = sum(weights.values())
    if not math.isclose(total, 1):
        shares = ", ".join(f"{name} {weight / total:.1%}" for name, weight in weights.items())
        yield f"weights of the mix add up to {total:g}; as shares: {shares}"


def _sites(file: StudyFile, jobs: Jobs) -> Iterator[str]:
    """Warning of cooling that differs between the machines, as the study does not state that of its site."""
    machines: dict[str, list[str]] = {}
    for machine, its in jobs.scenarios.items() if file.spec.site.power_usage_effectiveness is None else ():
        with suppress(InvalidFileError):
            parameter = next(iter(its.values())).program.parameters[EFFECTIVENESS]
            machines.setdefault(parameter.text(4), []).append(machine)
    if len(machines) > 1:
        values = "; ".join(f"{text} of {', '.join(names)}" for text, names in machines.items())
        yield f"warning: site: the PUE differs, {values}; state `[site] power_usage_effectiveness`, which holds for all"


def _failures(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """Warnings of bids that run the mix as stated, but not at all samples."""
    for name, its in outcomes.items():
        share = 1 - np.isfinite(its.throughput[1:]).mean()
        if share and not its.reason:
            yield f"warning: {name}: cannot run the mix in {share:.1%} of the samples, which count as no throughput"


def _warnings(jobs: Jobs) -> Iterator[str]:
    for machine, its in jobs.by_machine.items():
        for name, job in its.items():
            yield from (f"warning: {name} on {machine}: {text}" for text in (*job.outside, *job.partly_used))
