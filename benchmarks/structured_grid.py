"""Structured grids: `python -m benchmarks.structured_grid` prints the coverage of the prediction intervals.

Uses synthetic runs with known parameters: three grids, 2 to 16 processes, two iteration counts. Predicts the total time
of a single run with six times the cells on 64 processes. Times have a relative scatter.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from whatif.fitting.grid import fit_grid
from whatif.fitting.grid_advice import next_run, predict
from whatif.fitting.grid_plan import next_candidates
from whatif.fitting.grid_runs import RATES, Columns, GridRuns, terms_of
from whatif.models.quantities import FloatArray

TRUTH = {
    "cell_rate": 2e8, "packing_time": 30e-9, "overhead_time": 400e-6, "halo_rate": 4e8, "latency": 20e-6,
    "reduction_time": 3e-6, "miscellaneous_time": 300e-6, "cell_setup_time": 50e-9, "startup_time": 3.5,
}  # fmt: skip
LEVEL = 0.9


@dataclass(frozen=True)
class Trial:
    """Scatter of the runs, and options of the fit."""

    noise: float
    trials: int
    options: dict[str, Any]


def design(cells: tuple[float, ...], processes: tuple[float, ...], iterations: tuple[float, ...]) -> GridRuns:
    """Runs of all combinations without times, on square grids partitioned by rows."""
    shapes = np.meshgrid(cells, processes, iterations)
    c, p, i = (np.ravel(np.asarray(item, dtype=float)) for item in shapes)
    nothing, case = np.full(len(c), np.nan), np.full(len(c), "", dtype=object)
    return GridRuns(c, p, i, 2 * np.sqrt(c), np.ones(len(c)), nothing, case, nothing, nothing, nothing)


def timed(runs: GridRuns, noise: float, random: np.random.Generator) -> GridRuns:
    """Runs with the times of the model for the true parameters, each with its own scatter."""
    columns = Columns.of(("",), reduction=True, intra_node=False)
    parts = terms_of(runs, columns)
    steps = {"computation": runs.iterations, "communication": runs.iterations, "setup": np.ones(len(runs))}
    times = {
        name: steps[name] * (terms @ truth(columns)) * (1 + noise * random.standard_normal(len(runs)))
        for name, terms in parts.items()
    }
    total = times["computation"] + times["communication"] + times["setup"]
    return runs.changed(
        computation_time=times["computation"], communication_time=times["communication"], total_time=total
    )


def truth(columns: Columns) -> FloatArray:
    """True coefficients of the runs."""
    return np.array([1 / TRUTH[name] if name in RATES else TRUTH[name] for name in columns.names])


def covered(trial: Trial) -> tuple[float, float, float, float]:
    """Coverage of parameters and of further runs; mean half-width and error of the total time of the runs."""
    runs = design((1e6, 4e6, 1.6e7), (2, 4, 8, 16), (500, 2000))
    target = design((1e8,), (64,), (5000,))
    random = np.random.default_rng(0)
    inside, predicted, widths, errors = [], [], [], []
    for _ in range(trial.trials):
        fit = fit_grid(timed(runs, trial.noise, random), reduction=True, level=LEVEL, **trial.options)
        low, high = fit.intervals
        wanted = truth(fit.columns)
        inside.append(np.mean((low <= wanted) & (wanted <= high)))
        found, one = predict(fit, target), timed(target, trial.noise, random).total_time
        predicted.append(float(np.abs(found.total_time - one)[0] <= found.reach[0]))
        widths.append(float((found.reach / found.total_time)[0]))
        errors.append(float(np.abs(found.total_time / one - 1)[0]))
    return float(np.mean(inside)), float(np.mean(predicted)), float(np.mean(widths)), float(np.mean(errors))


def main() -> None:
    """Print the table of docs/structured_grids.md, and the time of the advice."""
    print("| scatter | weighting | errors from | parameters inside | runs inside | half-width | error |")
    print("|---:|---|---|---:|---:|---:|---:|")
    for noise in (0.01, 0.03, 0.1):
        for weighting, draws in (("relative", 0), ("relative", 200), ("equal", 0)):
            trial = Trial(noise, 100 if draws else 500, {"weighting": weighting, "draws": draws})
            shares = " | ".join(f"{share:.1%}" for share in covered(trial))
            print(f"| {noise:.0%} | {weighting} | {'draws' if draws else 'design'} | {shares} |")
    made = timed(design((1e6, 4e6, 1.6e7), (2, 4, 8, 16), (500, 2000)), 0.03, np.random.default_rng(1))
    started = time.perf_counter()
    fit = fit_grid(made, reduction=True)
    fitted = time.perf_counter()
    candidates = next_candidates(made, "")
    next_run(fit, design((1e8,), (64,), (5000,)), candidates)
    done = time.perf_counter()
    print(f"fit: {fitted - started:.4f} s; advice among {len(candidates)} runs: {done - fitted:.4f} s")


if __name__ == "__main__":
    main()
