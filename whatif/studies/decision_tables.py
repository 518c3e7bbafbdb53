"""Tables of what is decided by: rankings of machines, what each of them can commit to, layouts, budgets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.core.scenario import Scenario
from whatif.core.uncertainty import Sampling
from whatif.schema.load import stated_values
from whatif.studies.decompositions import Layout, Layouts, same
from whatif.studies.purchase import Offer
from whatif.studies.ranking import Ranking, Standing
from whatif.table import Table
from whatif.table_writers import worth_showing
from whatif.units import JOULE, ONE, Dimension

_LISTED: Final = 3


def on_all_machines(question: Scenario) -> str:
    """Which values a scenario's file states of every machine that it is asked on; empty where it states none."""
    paths = stated_values(question.document, question.folders)
    more = f" and {len(paths) - _LISTED} more" if len(paths) > _LISTED else ""
    name = Path(question.document.name).stem
    return f"{name} itself states {', '.join(paths[:_LISTED])}{more}: the same on every machine" if paths else ""


def titles(found: Ranking, result: str) -> list[str]:
    """What the columns of times, or of another result, are called, by application."""
    return [f"{name} {_what(found, result)}" for name in found.weights]


def _what(found: Ranking, result: str) -> str:
    return "time" if found.is_time else result.replace("_", " ")


def _gain(found: Ranking) -> str:
    return "speedup" if found.is_time else "gain"


def ranking_table(
    found: Ranking,
    result: str,
    sampling: Sampling | None = None,
    needed: Mapping[str, Mapping[str, float]] | None = None,
) -> Table:
    """One row a machine, the best first: its merit and chances, time and speedup of every application, or why not.

    `needed` are nodes that applications need for a target, by application and platform.
    """
    targets = needed or {}
    columns: dict[str, Dimension | None] = {"platform": None, "merit": ONE}
    if sampling is not None:
        columns |= dict.fromkeys([*(f"merit {name}" for name in sampling.names), "best", "ahead"], ONE)
    for name, title in zip(found.weights, titles(found, result), strict=True):
        columns |= {title: found.dimension, f"{name} {_gain(found)}": ONE}
    columns |= {f"{name} nodes": ONE for name in targets}
    has_reasons = any(its.reason for its in found.standings)
    columns |= {"impossible": None} if has_reasons else {}
    rows = []
    for its in found.standings:
        cells = [cell for name in found.weights for cell in (its.times[name], its.speedups[name])]
        chances = [] if sampling is None else _chances(its)
        cells += [targets[name][its.platform] for name in targets]
        rows.append([its.platform, its.merit, *chances, *cells, *([its.reason] if has_reasons else [])])
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in found.weights.items())
    return Table.of_rows(columns, rows, {"weights": weights})


def _chances(its: Standing) -> list[float]:
    if its.chances is None:
        return [math.nan] * 5
    return [*its.chances.merits, its.chances.best, its.chances.ahead]


def commitment_table(found: Ranking, result: str, sampling: Sampling | None = None) -> Table:
    """One row a machine and application: the time and speedup to commit to, and what they are worth.

    With samples the time is the upper end of the band, which the machine keeps with that probability.
    """
    what, gain = _what(found, result), _gain(found)
    upper = "" if sampling is None else f" {sampling.names[2]}"
    columns: dict[str, Dimension | None] = {"platform": None, "application": None, "weight": ONE}
    columns |= dict.fromkeys(["reference", what, f"{what}{upper}"], found.dimension)
    columns |= {f"{gain}{upper}": ONE, "grade": None, "remarks": None}
    rows = []
    for its in found.standings:
        for name, answer in its.answers.items():
            number = answer.number
            if sampling is not None and answer.samples is not None:
                number = float(np.nanquantile(answer.samples, sampling.quantiles[2]))
            committed = [] if sampling is None else [number]
            weight, reference = found.weights[name], found.references[name]
            remarks = "; ".join(text for text in (answer.reason, *answer.extrapolated) if text)
            numbers = [weight, reference, answer.number, *committed, reference / number]
            rows.append([its.platform, name, *numbers, answer.grade, remarks])
    return Table.of_rows(columns, rows, {"weights": ", ".join(found.weights)})


def layouts_shown(found: Layouts, count: int) -> list[tuple[int, Layout]]:
    """The best layouts, and the present one, each with its place among all."""
    return [(at, item) for at, item in enumerate(found.ranked, start=1) if at <= count or same(item, found.present)]


def layouts_table(found: Layouts, question: Scenario, count: int) -> Table:
    """The best layouts, and the present one with its rank among all."""
    now = found.present
    columns = {"place": ONE, "ranks": None, "decomposition": None, "mapping": None, "order": None}
    columns |= {found.result: question.program.dimension_of(found.result), "change": ONE, "present": None}
    rows: list[list[Any]] = []
    for at, item in layouts_shown(found, count):
        shape = " x ".join(map(str, item.ranks))
        present = "present" if same(item, now) else ""
        rows.append([at, shape, item.decomposition, item.mapping, item.order, item.result, found.change(item), present])
    return Table.of_rows(columns, rows, {"layouts": str(len(found.ranked))})


def offers_table(found: Sequence[Offer]) -> Table:
    """One row a scenario and machine; costs in a column for each currency."""
    money = dict.fromkeys(row.cost.dimension for row in found if row.cost is not None)
    priced = {dimension: "cost" if len(money) == 1 else f"cost in {dimension}" for dimension in money}
    columns = {"scenario": None, "platform": None, "nodes": ONE, "limit": None, "side by side": ONE, "jobs a day": ONE}
    columns |= {"energy": JOULE, **{name: dimension for dimension, name in priced.items()}, "reason": None}
    rows = [
        [
            *(row.scenario, row.platform, row.node_count, row.limit, row.job_count, row.daily_jobs, row.energy),
            *(row.cost.value if row.cost and row.cost.dimension == its else float("nan") for its in priced),
            row.reason,
        ]
        for row in found
    ]
    return worth_showing(Table.of_rows(columns, rows))
