"""Tables of what makes a result what it is: ladders of ideals, Sobol' indices, differences change by change."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Final

from whatif.studies.attribution import Attribution
from whatif.studies.bottlenecks import Bottlenecks
from whatif.studies.sobol import Variance
from whatif.table import Table
from whatif.units import ONE, Dimension, format_quantity

_BAR_WIDTH: Final = 24
_CELL_WIDTH: Final = 20


def ladder_table(found: Bottlenecks, dimension: Dimension, *, bars: bool = False) -> Table:
    """One row a rung: what it saves, and what is left of the result with it and all above ideal."""
    columns: dict[str, Dimension | None] = {"ideal": None, "saved": dimension, "left": dimension, "share_left": ONE}
    columns |= {"what_is_left": None} if bars else {}
    rows: list[list[object]] = []
    for rung in found.rungs:
        share = rung.left / found.time
        rows.append([rung.part, rung.saved, rung.left, share, *([_bar(share)] if bars else [])])
    return Table.of_rows(columns, rows, {"result": found.result, "time": f"{found.time!r}"})


def ladder_in_words(found: Bottlenecks, dimension: Dimension) -> str:
    """What the rungs begin with."""
    now = format_quantity(found.time, dimension, 4)
    return f"{found.result}: {now} as it stands; each rung is ideal with all above"


def variance_in_words(found: Variance, result: str, dimension: Dimension) -> str:
    """Mean and standard deviation of a result, and what they rest on."""
    mean, deviation = (format_quantity(value, dimension) for value in (found.mean, found.deviation))
    told = f"{result}: {mean} on average, standard deviation {deviation}; errors at {found.sampling.level:.0%}"
    return f"{told}, {found.sampling.count:,} samples"


def variance_table(found: Variance, result: str, *, everything: bool = False, bars: bool = False) -> Table:
    """One row an uncertain value, or all of a fit: what it explains alone and with all others, with errors."""
    columns: dict[str, Dimension | None] = {"value": None}
    columns |= dict.fromkeys(["first", "first_error", "total", "total_error"], ONE)
    columns |= {"explains": None} if bars else {}
    rows: list[list[object]] = []
    for item in found.indices:
        numbers = [item.first, item.first_error, item.total, item.total_error]
        if everything or any(numbers):
            rows.append([", ".join(item.paths), *numbers, *([_bar(item.total)] if bars else [])])
    return Table.of_rows(columns, rows, {"result": result})


def _bar(share: float) -> str:
    return ("#" * round(min(share, 1.0) * _BAR_WIDTH)).ljust(_BAR_WIDTH)


def attribution_in_words(found: Attribution, dimension: Dimension, seed: int = 0) -> tuple[str, ...]:
    """From where to where the result goes, and how its parts were found."""
    before, after, difference = (
        format_quantity(number, dimension, 4) for number in (found.before, found.after, found.after - found.before)
    )
    change = f"{found.after / found.before - 1:+.1%}" if found.before else "from nothing"
    said = [f"{found.result}: {before} -> {after} ({difference}, {change})"]
    if not found.exact:
        said.append(f"{len(found.changes)} changes: mean over 512 orders, seed {seed}")
    if not found.changes:
        said.append("nothing that differs has an effect")
    if found.without_effect:
        said.append(f"{len(found.without_effect)} other values differ and explain nothing")
    return tuple(said)


def attribution_table(found: Attribution, dimension: Dimension, *, bars: bool = False) -> Table:
    """One row a change: what changed, what it explains, its share of the difference, and where the result is then."""
    total, ends = found.after - found.before, _ends(found)
    columns: dict[str, Dimension | None] = {"change": None, "before": None, "after": None, "contribution": dimension}
    shown = _short if bars else str
    rows: list[list[object]] = [[c.name, shown(c.before), shown(c.after), c.contribution] for c in found.changes]
    if not found.exact:
        columns["standard_error"] = dimension
        rows = [[*row, change.standard_error] for row, change in zip(rows, found.changes, strict=True)]
    columns |= {"share": None if bars else ONE, "then": dimension} | ({"waterfall": None} if bars else {})
    for row, change, end, bar in zip(rows, found.changes, ends[1:], _waterfall(ends), strict=True):
        share = change.contribution / total if total else float("nan")
        row.extend([f"{share:+.1%}", end, bar] if bars else [share, end])
    return Table.of_rows(columns, rows, {"before": f"{found.before!r}", "after": f"{found.after!r}"})


def _short(text: str) -> str:
    return text if len(text) <= _CELL_WIDTH else f"{text[: _CELL_WIDTH - 2]}.."


def _ends(found: Attribution) -> list[float]:
    """The result before the first change, and after each."""
    return list(accumulate((change.contribution for change in found.changes), initial=found.before))


def _waterfall(ends: list[float]) -> list[str]:
    """A bar a change from where the result was to where it is then, on one scale."""
    least, most = min(ends), max(ends)
    scale = _BAR_WIDTH / (most - least) if most > least else 0.0
    bars = []
    for start, end in pairwise(ends):
        left, right = sorted((round((start - least) * scale), round((end - least) * scale)))
        bars.append((" " * left + ("+" if end > start else "-") * max(right - left, 1)).ljust(_BAR_WIDTH + 1))
    return bars
