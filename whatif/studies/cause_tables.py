"""Tables of elasticities, bottlenecks, Sobol' indices and differences."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from whatif.table import Table
from whatif.units import ONE, Dimension

if TYPE_CHECKING:
    from whatif.studies.attribution import Attribution
    from whatif.studies.bottlenecks import Bottlenecks
    from whatif.studies.elasticity import Elasticities, Elasticity
    from whatif.studies.sobol import Variance

_BAR_WIDTH: Final = 24
_CELL_WIDTH: Final = 20


def tornado_table(found: Elasticities, *, bars: bool = False) -> Table:
    """One row per parameter: value, change and elasticity."""
    shown = found.effective
    most = max((abs(item.elasticity) for item in shown if not item.reason), default=1.0)
    columns = {"value": None, "now": None, "change": None, "elasticity": ONE} | ({"tornado": None} if bars else {})
    rows = [
        [item.path, item.value, item.change or item.reason, item.elasticity, *([_arm(item, most)] if bars else [])]
        for item in shown
    ]
    return Table.of_rows(columns, rows, {"result": found.result})


def _arm(item: Elasticity, most: float) -> str:
    """Bar to the left for a negative elasticity, to the right for a positive one."""
    half = _BAR_WIDTH // 2
    length = 0 if item.reason or not most else max(round(abs(item.elasticity) / most * half), 1)
    left, right = (length, 0) if item.elasticity < 0 else (0, length)
    return f"{'#' * left:>{half}}|{'#' * right:<{half}}"


def ladder_table(found: Bottlenecks, *, bars: bool = False) -> Table:
    """One row per part: time saved, and the result with this part and all above ideal."""
    dimension = found.dimension
    columns: dict[str, Dimension | None] = {"ideal": None, "saved": dimension, "left": dimension, "share_left": ONE}
    columns |= {"what_is_left": None} if bars else {}
    rows: list[list[object]] = []
    for rung in found.rungs:
        share = rung.left / found.time
        rows.append([rung.part, rung.saved, rung.left, share, *([_bar(share)] if bars else [])])
    return Table.of_rows(columns, rows, {"result": found.result, "time": f"{found.time!r}"})


def variance_table(found: Variance, *, bars: bool = False) -> Table:
    """One row per factor: first-order and total index with their errors."""
    columns: dict[str, Dimension | None] = {"value": None}
    columns |= dict.fromkeys(["first", "first_error", "total", "total_error"], ONE)
    columns |= {"explains": None} if bars else {}
    rows: list[list[object]] = []
    for item in found.indices:
        numbers = [item.first, item.first_error, item.total, item.total_error]
        if found.everything or any(numbers):
            rows.append([", ".join(item.paths), *numbers, *([_bar(item.total)] if bars else [])])
    return Table.of_rows(columns, rows, {"result": found.result})


def _bar(share: float) -> str:
    return ("#" * round(min(share, 1.0) * _BAR_WIDTH)).ljust(_BAR_WIDTH)


def attribution_table(found: Attribution, *, bars: bool = False) -> Table:
    """One row per change: both values, contribution, share of the difference, and the result after it."""
    total, ends, dimension = found.after - found.before, _ends(found), found.dimension
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
    """Result before the first change and after each change."""
    return list(accumulate((change.contribution for change in found.changes), initial=found.before))


def _waterfall(ends: list[float]) -> list[str]:
    """Bar per change from the result before it to the result after it, all on one scale."""
    least, most = min(ends), max(ends)
    scale = _BAR_WIDTH / (most - least) if most > least else 0.0
    bars = []
    for start, end in pairwise(ends):
        left, right = sorted((round((start - least) * scale), round((end - least) * scale)))
        bars.append((" " * left + ("+" if end > start else "-") * max(right - left, 1)).ljust(_BAR_WIDTH + 1))
    return bars
