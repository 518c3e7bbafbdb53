"""Tables, picture and summary of a procurement study."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from whatif.core.uncertainty import commitment_name
from whatif.models.quantities import FloatArray
from whatif.plotting.bars import LESS, MORE, BarChart, BarRow
from whatif.plotting.description import AxisDescription
from whatif.schema.study_spec import MIX, PRESENT
from whatif.studies.procurement.changes import MOST_CHANGE, PRICE, changes, turns
from whatif.studies.procurement.questions import assumptions, other_questions
from whatif.studies.procurement.study_options import options
from whatif.table import Table
from whatif.table_writers import worth_showing
from whatif.units import CARBON, JOULE, ONE, SECOND, WATT, Dimension, format_quantity, in_percent

if TYPE_CHECKING:
    from whatif.studies.procurement.economics import Outcome
    from whatif.studies.procurement.study import Study

WORDS: Final = {
    "throughput": "throughput of the mix",
    "merit": "figure of merit",
    "cost": "throughput per cost over the lifetime",
    "energy": "throughput per energy",
}
"""Criteria in words."""
OPTIONAL: Final[dict[str, list[list[str]]]] = {
    "bids": [["merit"], ["power"], ["low", "high"], ["limit"]],
    "jobs": [["carbon"], ["grade"], ["equal power", "equal money"], ["energy"]],
    "commitments": [["grade"], ["target nodes"], ["speedup"], ["jobs per day"]],
    "turns": [],
    "changes": [],
    "options": [],
    "questions": [["10 % lower", "10 % higher"], ["assumed"]],
}
"""Groups of columns by view, omitted on a narrow terminal."""


def bids_table(found: Study) -> Table:
    """One row per bid, the best first, then the present machine."""
    money = found.prices.dimension
    columns: dict[str, Dimension | None] = {"machine": None, "nodes": ONE, "limit": None, "throughput": ONE}
    columns |= {"low": ONE, "high": ONE, "best": ONE, "merit": ONE, "jobs per day": ONE}
    columns |= {"price": money, "rent": money / SECOND, "cost": money, "power": WATT, "reason": None}
    rows = []
    for name, its in found.outcomes.items():
        # A mix that cannot run as stated is not an option, although some samples may allow it.
        low, high = (math.nan, math.nan) if its.reason else found.band(its.throughput)
        best = found.chances.get(name, math.nan)
        numbers = [low, high, best, its.merit[0], its.daily_jobs.sum(axis=0)[0]]
        amounts = [its.capital[0], its.rent[0], its.ownership[0], its.power[0]]
        limit = "" if name == PRESENT else its.limit
        rows.append([name, its.node_count[0], limit, its.throughput[0], *numbers, *amounts, its.reason])
    return worth_showing(Table.of_rows(columns, rows, {"criterion": found.criterion}, ("best",)))


def jobs_table(found: Study) -> Table:
    """One row per machine and application, then for the mix: throughput, and that at equal nodes, money and power."""
    money = found.prices.dimension
    columns: dict[str, Dimension | None] = {"machine": None, "application": None, "weight": ONE, "nodes": ONE}
    columns |= {"time": SECOND, "jobs per day": ONE, "throughput": ONE, "equal nodes": ONE, "equal money": ONE}
    columns |= {"equal power": ONE, "energy": JOULE, "cost": money, "carbon": CARBON, "grade": None, "reason": None}
    rows = []
    for name, its in found.outcomes.items():
        equal = equal_speedups(found, name)
        for at, (application, job) in enumerate(found.jobs.of(name).items()):
            daily = [its.daily_jobs[at, 0], its.throughputs[at, 0], *(item[at] for item in equal)]
            amounts = [job.energy[0], its.costs[at, 0], its.carbon[at, 0], job.grade, reason_of(its, at)]
            cells = [found.terms.weights[at, 0], job.node_count[0], job.time[0], *daily, *amounts]
            rows.append([name, application, *cells])
        mix = [its.daily_jobs.sum(axis=0)[0], its.throughput[0], *(_of_mix(found, item) for item in equal)]
        rows.append([name, MIX, 1.0, math.nan, math.nan, *mix, *[math.nan] * 3, "", ""])
    return worth_showing(Table.of_rows(columns, rows, {"reference": PRESENT}, ("weight",)))


def reason_of(its: Outcome, at: int) -> str:
    """Reason why an application cannot run; empty if it can."""
    return its.reasons[at].partition(": ")[2]


def equal_speedups(found: Study, machine: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Throughput of each application over that of the present machine at equal nodes, equal money and equal power.

    The ratios of the node time of a job, and of that times the price of a node or its power under load.
    """
    mix, present = found.mixes[machine], found.mixes[PRESENT]
    each, own = (_node_price(found, name) for name in (machine, PRESENT))
    nodes = (present.node_time / mix.node_time)[:, 0]
    power = (present.power / mix.power)[:, 0]
    return nodes, nodes * own / each, nodes * power


def _of_mix(found: Study, speedups: np.ndarray) -> float:
    """Throughput of the mix of applications with these throughputs: the harmonic mean, weighted by node time."""
    weights = found.terms.weights[:, 0]
    return float(1 / (weights[weights > 0] / speedups[weights > 0]).sum())


def _node_price(found: Study, machine: str) -> float:
    """Price of one node with its share of what comes with the nodes; NaN if it is rented or has no price."""
    price = found.outcomes[machine].bought_node_price
    return price if price > 0 else math.nan


def commitments_table(found: Study) -> Table:
    """One row per bid and application: the time and throughput to commit to, and the nodes that its target needs."""
    time, jobs, speedup = (commitment_name(name, found.confidence) for name in ("time", "jobs per day", "speedup"))
    columns: dict[str, Dimension | None] = {"bid": None, "application": None, "nodes": ONE, "time": SECOND}
    columns |= {time: SECOND, "jobs per day": ONE, jobs: ONE, "speedup": ONE, speedup: ONE}
    columns |= {"target nodes": ONE, "grade": None, "remarks": None}
    rows = []
    for name, its in found.bids.items():
        for at, (application, job) in enumerate(found.jobs.of(name).items()):
            present = found.jobs.of(PRESENT)[application].time
            required = found.required.get((name, application), "")
            about, target = (required, math.nan) if isinstance(required, str) else (required.doubt, required.count)
            late, few = found.band(job.time, math.inf)[1], found.band(its.daily_jobs[at])[0]
            slow = found.band(present / job.time)[0]
            numbers = [job.node_count[0], job.time[0], late, its.daily_jobs[at, 0], few, present[0] / job.time[0], slow]
            words = "; ".join(dict.fromkeys(filter(None, (reason_of(its, at), about))))
            rows.append([name, application, *numbers, target, job.grade, words])
    return worth_showing(Table.of_rows(columns, rows, {"confidence": f"{found.confidence:g}"}))


def turns_table(found: Study) -> Table:
    """One row per number: its present value, and the nearest value at which another bid leads."""
    rows = [
        [its.name, shown(its.present, its.dimension), shown(its.at, its.dimension), its.leader or found.winner]
        for its in turns(found)
    ]
    return Table.of_rows(dict.fromkeys(("value", "present", "turns at", "best there")), rows)


def changes_table(found: Study) -> Table:
    """One row per bid and change: the least factor with which the bid is level with the best, and the values."""
    columns: dict[str, Dimension | None] = {"bid": None, "change": None, "factor": ONE, "from": None, "to": None}
    rows = []
    for its in changes(found):
        remark = "" if math.isfinite(its.factor) else f"no factor up to {MOST_CHANGE:g} is enough"
        if remark and its.name == PRICE and found.outcomes[its.bid].limit == "offer":
            remark += ": no more nodes are offered"
        values = shown(its.present, its.dimension), shown(its.needed, its.dimension)
        rows.append([its.bid, its.name, its.factor, *values, remark])
    return worth_showing(Table.of_rows(columns | {"remark": None}, rows))


def options_table(found: Study) -> Table:
    """One row per option and bid: throughput, cost and power with it, and the price of a node that is worth as much."""
    money = found.prices.dimension
    columns: dict[str, Dimension | None] = {"option": None, "bid": None, "nodes": ONE, "throughput": ONE, "change": ONE}
    columns |= {"best": None, "cost": money, "power": WATT, "worth a node": money, "reason": None}
    rows = []
    for option in options(found):
        for name, its in option.study.bids.items():
            before, after = found.outcomes[name].throughput[0], its.throughput[0]
            worth = option.worth(found, name)
            cells = [option.study.winner, its.ownership[0], its.power[0], worth, its.reason]
            rows.append([option.name, name, its.node_count[0], after, after / before - 1, *cells])
    return worth_showing(Table.of_rows(columns, rows, shares=("change",)))


def questions_table(found: Study) -> Table:
    """One row per bid and assumed value of its platform: what its throughput does if the value is 10 % lower or higher.

    Then one row per question that no value answers.
    """
    columns: dict[str, Dimension | None] = {"bid": None, "value": None, "assumed": None, "10 % lower": ONE}
    columns |= {"10 % higher": ONE, "question": None}
    rows = [
        [its.bid, its.parameter.path.removeprefix("platform."), its.text, its.lower, its.higher,
         its.parameter.description.replace("\n", " ")]
        for its in assumptions(found)
    ]  # fmt: skip
    rows += [[bid, "", "", math.nan, math.nan, text] for bid, text in other_questions(found)]
    return Table.of_rows(columns, rows, shares=("10 % lower", "10 % higher"))


def shown(value: float, dimension: Dimension) -> str:
    """Value with its unit; empty for NaN."""
    return format_quantity(value, dimension, 4) if math.isfinite(value) else ""


TABLES: Final[dict[str, Callable[[Study], Table]]] = {
    "bids": bids_table,
    "jobs": jobs_table,
    "commitments": commitments_table,
    "turns": turns_table,
    "changes": changes_table,
    "options": options_table,
    "questions": questions_table,
}


def score_bars(found: Study) -> BarChart:
    """Bars of the throughput of the mix and of each application by bid, over the present machine, with bands."""
    rows = []
    for name, its in found.bids.items():
        rows.append(_score_bar(found, f"{name}: mix", its.throughput, its.reason, MORE))
        for at, application in enumerate(found.file.spec.mix):
            rows.append(_score_bar(found, f"{name}: {application}", its.throughputs[at], its.reasons[at], LESS))
    axis = AxisDescription("throughput over the present machine")
    legend = ((MORE, "mix"), (LESS, "one application alone"))
    return BarChart(found.file.spec.question, axis, tuple(rows), legend, reference=1.0)


def _score_bar(found: Study, label: str, values: FloatArray, reason: str, style: str) -> BarRow:
    if reason or not np.isfinite(values[0]):
        return BarRow(label, 0.0, 0.0, style, "cannot run")
    low, high = found.band(values)
    band = f" ({low:.3g} to {high:.3g})" if low < high else ""
    return BarRow(label, 0.0, float(values[0]), style, f"{values[0]:.3g}{band}", (low, high))


def recommendation(found: Study) -> Iterator[str]:
    """The best bid with its probability, how far it is ahead, and what cannot run."""
    for name, its in found.bids.items():
        if its.reason:
            yield f"{name}: {its.reason}"
    if not found.winner:
        return
    best, its = found.winner, found.bids[found.winner]
    size = f"{its.node_count[0]:,.0f} nodes, limited by {its.limit}"
    yield f"{_best(found)}; {size}, throughput {its.throughput[0]:.3g} times that of {PRESENT}"
    for other in found.able[1:]:
        ratio = found.scores[best][0] / found.scores[other][0] - 1
        yield f"{best} is {ratio:.1%} ahead of {other}"
    yield from _amounts(found, best)
    yield from _unknown_powers(found)


def _best(found: Study) -> str:
    """The best bid with its probability."""
    likely, confidence = found.chances[found.winner], found.confidence
    text = f"best by {WORDS[found.criterion]}: {found.winner}"
    if len(found.able) == 1:
        return f"{text}, the only bid that runs the mix within the limits"
    is_open = (
        f" (less than the confidence of {in_percent(confidence)}: the order is open)" if likely < confidence else ""
    )
    return f"{text}, probability {chance(likely)}{is_open}"


def chance(value: float) -> str:
    """Probability in percent; a bound near 0 and 1, which samples do not resolve."""
    return "under 1%" if value < 0.005 else "over 99%" if value > 0.995 else f"{value:.0%}"


def _amounts(found: Study, bid: str) -> Iterator[str]:
    """Price, rent, cost over the lifetime and power of a bid, those that are known."""
    its, money = found.bids[bid], found.prices.dimension
    amounts = (("price", its.capital[0], money), ("rent", its.rent[0], money / SECOND),
               ("cost over the lifetime", its.ownership[0], money),
               ("power", its.power[0], WATT))  # fmt: skip
    known = [f"{name} {format_quantity(float(value), unit)}" for name, value, unit in amounts if math.isfinite(value)]
    if known:
        yield f"{bid}: {', '.join(known)}"


def _unknown_powers(found: Study) -> Iterator[str]:
    """Bids whose power is not known, with the values that their platforms lack."""
    for bid in found.bids:
        lacking = dict.fromkeys(path for job in found.jobs.of(bid).values() for path in job.unknown)
        if lacking:
            yield f"{bid}: power and its cost are not known, as the platform does not state {', '.join(lacking)}"
