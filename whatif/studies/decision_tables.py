"""Tables of rankings and commitments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from whatif.core.answer_words import gain, larger_is_better
from whatif.core.uncertainty import commitment_name
from whatif.table import Table
from whatif.units import ONE, Dimension

if TYPE_CHECKING:
    from whatif.studies.ranking import Ranking, Standing


def titles(found: Ranking) -> list[str]:
    """Headings of the columns of times, or of another result, by application."""
    return [f"{name} {_quantity(found)}" for name in found.weights]


def _quantity(found: Ranking) -> str:
    return "time" if found.is_time else found.result.replace("_", " ")


def _gain(found: Ranking) -> str:
    return "speedup" if found.is_time else "gain"


def ranking_table(found: Ranking) -> Table:
    """One row per platform, the best first: merit and chances, time and speedup of every application, or a reason."""
    sampling, targets = found.sampling, found.required
    columns: dict[str, Dimension | None] = {"platform": None, "merit": ONE}
    if sampling is not None:
        columns |= dict.fromkeys([*(f"merit {name}" for name in sampling.names), "best", "ahead"], ONE)
    for name, title in zip(found.weights, titles(found), strict=True):
        columns |= {title: found.dimension, f"{name} {_gain(found)}": ONE}
    columns |= {f"{name} nodes": ONE for name in targets}
    has_reasons = any(its.reason for its in found.standings)
    columns |= {"infeasible": None} if has_reasons else {}
    rows = []
    for its in found.standings:
        cells = [cell for name in found.weights for cell in (its.times[name], its.speedups[name])]
        chances = [] if sampling is None else _chances(its)
        cells += [targets[name][its.platform] for name in targets]
        rows.append([its.platform, its.merit, *chances, *cells, *([its.reason] if has_reasons else [])])
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in found.weights.items())
    return Table.of_rows(columns, rows, {"weights": weights}, ("best", "ahead"))


def _chances(its: Standing) -> list[float]:
    if its.chances is None:
        return [math.nan] * 5
    return [*its.chances.merits, its.chances.best, its.chances.ahead]


def commitment_table(found: Ranking) -> Table:
    """One row per platform and application: the time and speedup to commit to, with grade and remarks.

    With samples the time is the upper end of the band, a rate the lower end, which the platform meets with that
    probability.
    """
    sampling, what, by = found.sampling, _quantity(found), _gain(found)
    end = 0 if larger_is_better(found.dimension) else 2
    names = (what, by) if sampling is None else [commitment_name(name, sampling.quantiles[2]) for name in (what, by)]
    columns: dict[str, Dimension | None] = {"platform": None, "application": None, "weight": ONE}
    columns |= dict.fromkeys(["reference", what, names[0]], found.dimension)
    columns |= {names[1]: ONE, "grade": None, "remarks": None}
    rows = []
    for its in found.standings:
        for name, answer in its.answers.items():
            number = answer.number
            if sampling is not None and answer.samples is not None:
                number = float(np.nanquantile(answer.samples, sampling.quantiles[end]))
            committed = [] if sampling is None else [number]
            weight, reference = found.weights[name], found.references[name]
            remarks = "; ".join(text for text in (answer.reason, *answer.extrapolated) if text)
            numbers = [weight, reference, answer.number, *committed, gain(reference, number, found.dimension)]
            rows.append([its.platform, name, *numbers, answer.grade, remarks])
    return Table.of_rows(columns, rows, {"weights": ", ".join(found.weights)}, ("weight",))
