"""Questions to the vendors: what the outcome of a bid depends on, and nobody has measured or firmly offered."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from whatif.axes import first_number
from whatif.core.evaluate import evaluate
from whatif.core.model_error import with_model_errors
from whatif.models.quantities import FloatArray
from whatif.schema.parameters import Parameter
from whatif.studies.procurement.changes import changed_throughput
from whatif.studies.procurement.economics import Mix
from whatif.studies.procurement.study_jobs import amounts_of
from whatif.units import format_quantity

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.studies.procurement.study import Study

STEP: Final = 0.1
"""Relative change of a value whose effect is shown."""
_OF_THE_BUYER: Final = ("platform.site.", "platform.node_count")
"""Values that the study states, or that its limits decide."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumed value of the platform of a bid, and what a change of it does to the throughput of the mix."""

    bid: str
    parameter: Parameter
    value: float
    """Present value in base units; NaN for a word."""
    lower: float
    """Relative change of the throughput if the value is lower by `STEP`; NaN if it cannot be that low."""
    higher: float

    @property
    def weight(self) -> float:
        """Larger of the two effects; 0 where neither is known."""
        return max((abs(effect) for effect in (self.lower, self.higher) if math.isfinite(effect)), default=0.0)

    @property
    def text(self) -> str:
        """Present value with its unit."""
        its = self.parameter
        return format_quantity(self.value, its.dimension) if math.isfinite(self.value) else its.text(4)


def assumptions(study: Study) -> list[Assumption]:
    """Assumed values of the platforms of all bids; of each bid, those with the largest effect first."""
    return [item for bid in study.bids for item in sorted(_of_bid(study, bid), key=lambda item: -item.weight)]


def _of_bid(study: Study, bid: str) -> Iterator[Assumption]:
    known = _assumed(study, bid)
    moved = [path for path, (parameter, value) in known.items() if _can_move(parameter, value)]
    values = {path: _moved(*known[path], 1 + 2 * at, 1 + 2 * len(moved)) for at, path in enumerate(moved)}
    scenarios = study.jobs.scenarios[bid]
    its = np.broadcast_to(changed_throughput(study, bid, partial(_changed, scenarios, values)), 1 + 2 * len(moved))
    effects = {path: (its[1 + 2 * at] / its[0] - 1, its[2 + 2 * at] / its[0] - 1) for at, path in enumerate(moved)}
    for path, (parameter, value) in known.items():
        lower, higher = effects.get(path, (math.nan, math.nan))
        yield Assumption(bid, parameter, value, float(lower), float(higher))


def _assumed(study: Study, bid: str) -> dict[str, tuple[Parameter, float]]:
    """Assumed parameters of the platform of a bid that its jobs depend on, with their values."""
    found: dict[str, tuple[Parameter, float]] = {}
    for name, job in study.jobs.of(bid).items():
        if job.assumed:
            program = study.jobs.scenarios[bid][name].program
            values = evaluate(program).values
            for path in job.assumed:
                parameter = program.parameters[path]
                number = math.nan if parameter.structural else first_number(values[path])
                found[path] = (parameter, number)
    return {path: item for path, item in found.items() if not path.startswith(_OF_THE_BUYER)}


def _can_move(parameter: Parameter, value: float) -> bool:
    """Whether a parameter can change by a tenth: a number other than 0, not a count."""
    return parameter.field is not None and math.isfinite(value) and value != 0 and not parameter.field.domain.whole


def _moved(parameter: Parameter, value: float, at: int, count: int) -> FloatArray:
    """Values of a parameter: the present one, but for a lower and a higher one at two places; NaN if not allowed."""
    assert parameter.field is not None
    values = np.full(count, value)
    for place, changed in ((at, value * (1 - STEP)), (at + 1, value * (1 + STEP))):
        values[place] = changed if parameter.field.domain.accepts(changed) else math.nan
    return values


def _changed(scenarios: Mapping[str, Scenario], values: Mapping[str, FloatArray], mix: Mix) -> Mix:
    """Jobs of a bid with other values of its platform."""
    rows = [
        _ratios(scenario, values) if not reason else np.ones((4, 1))
        for scenario, reason in zip(scenarios.values(), mix.reasons, strict=True)
    ]
    time, nodes, energy, power = np.array(np.broadcast_arrays(*rows)).transpose(1, 0, 2)
    return replace(
        mix,
        time=mix.time * time,
        node_count=mix.node_count * nodes,
        energy=mix.energy * energy,
        power=mix.power * power,
    )


def _ratios(scenario: Scenario, values: Mapping[str, FloatArray]) -> FloatArray:
    """Time, nodes, energy and power of a job with other values, over those with the present ones."""
    program = with_model_errors(scenario.program)
    plain = evaluate(program)
    swept = evaluate(program, {path: array for path, array in values.items() if path in program.reached})
    rows = [
        np.atleast_1d(swept.numbers(term)) / plain.numbers(term) if term else np.full(1, math.nan)
        for term in amounts_of(program)
    ]
    return np.array(np.broadcast_arrays(*rows))


def other_questions(study: Study) -> Iterator[tuple[str, str]]:
    """Bids with what else is open: prices that are not offered or uncertain, and jobs beyond measured ranges."""
    for bid in study.bids:
        prices = study.prices.machines[bid]
        if prices.origin:
            yield bid, f"What is the price? The study has none; it assumes the {prices.origin}."
        if not prices.is_known:
            yield bid, "What is the price? The study has none."
        for count, each in prices.node_prices:
            low, high = study.band(each)
            if low < high:
                ends = " to ".join(format_quantity(value, study.prices.dimension) for value in (low, high))
                which = f" from {count:,.0f} nodes" if count > 1 else ""
                yield bid, f"Is the price of a node{which} firm? The study assumes {ends}."
        for name, job in study.jobs.of(bid).items():
            for text in job.outside:
                question = f"What is the measured time of {name}? Its prediction lies outside the measured range"
                yield bid, f"{question}: {text}."
            if job.unknown:
                yield bid, f"What power does {name} draw? Not stated: {', '.join(job.unknown)}."
