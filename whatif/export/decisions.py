"""Tables of what is decided by: rankings of machines, and what each of them can commit to."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from whatif.engine.merit import Ranking, Standing
from whatif.engine.uncertainty import Sampling
from whatif.table import Table
from whatif.units import ONE, Dimension


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
