"""Errors of the largest node count of measured series, predicted from smaller ones: the tables of docs/scaling.md.

`python -m tests.fitting.scaling_errors` prints the tables; the series are in ../shared/data.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import md5
from pathlib import Path

import numpy as np

import whatif
from tests.paths import SHARED
from whatif.api.measurements import ImportedTable, import_runs
from whatif.fitting.scaling_runs import runs_of
from whatif.importers.rows import joined
from whatif.table import Table

FOLDER = SHARED / "runs" / "strong_scaling"
WEAK = "snap"
"""Program that was scaled weakly."""


def application(name: str) -> str:
    return name.partition("__")[0]


def is_development(name: str) -> bool:
    """Whether the candidates and constants were chosen on this half of the series."""
    return int(md5(name.encode(), usedforsecurity=False).hexdigest(), 16) % 2 == 0


@cache
def series() -> Mapping[str, ImportedTable]:
    return {path.stem: import_runs(path) for path in sorted(FOLDER.glob("*.csv"))}


def nodes(runs: Table) -> np.ndarray:
    return runs.columns["nodes"].values


def training(hold: int) -> dict[str, Table]:
    """Runs without those of the largest counts, of series that keep three."""
    found = {}
    for name, runs in series().items():
        counts = np.unique(nodes(runs.values))
        if len(counts) - hold >= 3:
            found[name] = runs.values.at(nodes(runs.values) < counts[-hold])
    return found


def truth(name: str, trained: Table) -> tuple[float, float]:
    """Largest count and its time, for the iterations of the largest run that is trained on."""
    (found,) = runs_of(series()[name].values).series
    (kept,) = runs_of(trained).series
    return float(found.nodes[-1]), float(found.time[-1] * kept.iterations / found.iterations)


def scaling(hold: int, pooled: bool) -> dict[str, tuple[float, bool]]:
    """Relative error of each series, and whether the 95 % interval holds what was measured."""
    trained = training(hold)
    groups: dict[str, list[str]] = {}
    for name in trained:
        groups.setdefault(application(name) if pooled else name, []).append(name)
    found = {}
    for names in groups.values():
        named = [Table(trained[name].columns, {**trained[name].notes, "file": name}) for name in names]
        runs = ImportedTable(joined(named))
        counts = {name: truth(name, trained[name]) for name in names}
        for count in sorted({count for count, _ in counts.values()}):
            rows = whatif.fit_scaling(runs, predict=[{"nodes": count}]).to_pandas()
            for name, (fit, lower, upper) in zip(names, rows[["fit", "lower", "upper"]].to_numpy(), strict=True):
                if counts[name][0] == count:
                    measured = counts[name][1]
                    found[name] = fit / measured - 1, bool(lower <= measured <= upper)
    return found


def others(hold: int, rule: str) -> dict[str, tuple[float, bool]]:
    """The same by another rule; only a regression has an interval."""
    found = {}
    for name, runs in training(hold).items():
        count, measured = truth(name, runs)
        fit, lower, upper = RULES[rule](name, runs, count)
        found[name] = fit / measured - 1, bool(lower <= measured <= upper)
    return found


def perfect(name: str, runs: Table, count: float) -> tuple[float, float, float]:
    (found,) = runs_of(runs).series
    return float(found.time[-1] * (1.0 if application(name) == WEAK else found.nodes[-1] / count)), np.nan, np.nan


def log_log(name: str, runs: Table, count: float) -> tuple[float, float, float]:
    return regression(runs, count, formula="log(time) ~ log(nodes)")


def search(name: str, runs: Table, count: float) -> tuple[float, float, float]:
    return regression(runs, count, search="time ~ nodes")


def regression(runs: Table, count: float, **options: str) -> tuple[float, float, float]:
    """Of the time scaled to the iterations of the largest run."""
    (found,) = runs_of(runs).series
    time, steps = (runs.columns[name] for name in ("total_time", "iterations"))
    scaled = type(time)(time.values / steps.values * found.iterations, time.dimension)
    table = ImportedTable(Table({"nodes": runs.columns["nodes"], "time": scaled}, runs.notes))
    row = whatif.fit_regression(table, at=[{"nodes": count}], **options).to_pandas().iloc[0]
    return float(row["fit"]), float(row["lower"]), float(row["upper"])


def grid(name: str, runs: Table, count: float) -> tuple[float, float, float]:
    last = runs.at(nodes(runs) == nodes(runs).max())
    processes = last.columns["processes"].values[0] / last.columns["nodes"].values[0] * count
    target = {"cells": last.columns["cells"].values[0], "processes": processes}
    target["iterations"] = last.columns["iterations"].values[0]
    kept = {name: it for name, it in runs.columns.items() if np.isfinite(it.values).all()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        Table(kept).to_pandas().rename(columns={"total_time": "total_time [s]"}).to_csv(path, index=False)
        row = whatif.fit_grid(path, targets=[target]).to_pandas().iloc[0]
    return float(row["total_time"]), float(row["run_low"]), float(row["run_high"])


RULES = {
    "perfect scaling from the last run": perfect,
    "`log(time) ~ log(nodes)`": log_log,
    "`fit grid`, totals": grid,
    "`fit regression --search`": search,
}


def summary(found: Mapping[str, tuple[float, bool]], *, interval: bool = True) -> str:
    """Mean and median error and share of intervals that hold, as cells of a row."""
    errors = 100 * np.abs([error for error, _ in found.values()])
    inside = 100 * np.mean([holds for _, holds in found.values()])
    return f"{errors.mean():.1f} / {np.median(errors):.1f} | {f'{inside:.0f} %' if interval else '-'}"


def rules_table() -> Iterator[str]:
    """Errors of every rule, with one and with two counts held out."""
    rows = {f"`fit scaling`, {words}": [scaling(hold, pooled) for hold in (1, 2)]
            for words, pooled in (("each series alone", False), ("series of a program together", True))}  # fmt: skip
    rows |= {rule: [others(hold, rule) for hold in (1, 2)] for rule in RULES}
    counts = [len(found) for found in rows["`fit scaling`, each series alone"]]
    yield f"| mean / median error in % | 1 held out ({counts[0]}) | held | 2 held out ({counts[1]}) | held |"
    yield "|---|---:|---:|---:|---:|"
    for name, found in rows.items():
        cells = (summary(it, interval=not name.startswith("perfect")) for it in found)
        yield f"| {name} | {' | '.join(cells)} |"


def programs_table() -> Iterator[str]:
    """Errors of each series alone by program, and by half of the series."""
    alone, naive = scaling(1, pooled=False), others(1, "perfect scaling from the last run")
    parts = {name: [it for it in alone if application(it) == name] for name in dict.fromkeys(map(application, alone))}
    parts["half the method was chosen on"] = list(filter(is_development, alone))
    parts["other half"] = [name for name in alone if not is_development(name)]
    yield "| 1 held out | series | mean / median error in % | held | perfect scaling |"
    yield "|---|---:|---:|---:|---:|"
    for label, names in parts.items():
        ours, theirs = ({name: it[name] for name in names} for it in (alone, naive))
        yield f"| {label} | {len(names)} | {summary(ours)} | {summary(theirs).partition(' |')[0]} |"


if __name__ == "__main__":
    print("\n".join([*rules_table(), "", *programs_table()]))
