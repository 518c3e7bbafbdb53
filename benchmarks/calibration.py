"""Calibration of 100 runs, against a general solver for the same corrections: `python -m benchmarks.calibration`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

import whatif
from benchmarks.measure import Row, median_seconds
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.models.quantities import FloatArray

RUNS, POINTS = 100, 1000
TRUE = {
    "calibration.application.kernel_factors.force": 1.2,
    "calibration.application.kernel_factors.pack": 5.0,
    "calibration.application.doubling_time": "300 us",
    "calibration.platforms.lassen.doubling_factor": 0.5,
}
_HEADINGS = {
    "iteration_time": "iteration_time",
    "terms.force": "force",
    "terms.pack": "pack",
    "terms.exchange": "exchange",
}


def calibrating() -> Iterator[Row]:
    """Choice and values of corrections, and a sweep of 10^6 points with them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        _write_runs(path)
        found = whatif.calibrate("minimd", runs=path)
        ours = median_seconds(lambda: whatif.calibrate("minimd", runs=path), 5)
    theirs = median_seconds(lambda: _general_fit(found.calibrated, found.values), 1)
    what = f"calibration of {RUNS} runs: choice of corrections, values"
    other = "values alone: scipy.optimize.least_squares over whatif.run"
    yield Row(what, f"{ours * 1e3:.0f} ms", f"{theirs * 1e3:.0f} ms", theirs / ours, other)
    plain, corrected = (median_seconds(lambda its=its: _sweep(its), 5) for its in ({}, TRUE))
    times = f"{corrected * 1e3:.0f} ms", f"{plain * 1e3:.0f} ms"
    yield Row("10^6 points with a calibration", *times, plain / corrected, "the same without")


def _write_runs(path: Path) -> None:
    ranks = [4 * 2 ** (run % 9) for run in range(RUNS)]
    swept = whatif.sweep("minimd", {"application.rank_count": ranks}, overrides=TRUE)
    noise = np.exp(0.03 * np.random.default_rng(0).normal(size=(len(_HEADINGS), RUNS)))
    columns = [swept[name] * factors for name, factors in zip(_HEADINGS, noise, strict=True)]
    lines = ["platform,rank_count," + ",".join(f"{name} [s]" for name in _HEADINGS.values())]
    for rank, *row in zip(ranks, *columns, strict=True):
        lines.append(f"lassen,{rank}," + ",".join(repr(float(value)) for value in row))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _general_fit(scenario: Scenario, values: dict[str, float]) -> None:
    """The corrections by a solver that knows nothing of them: each evaluation is one of the model."""
    program = scenario.program
    ranks = np.array([4.0 * 2 ** (run % 9) for run in range(RUNS)])
    measured = evaluate(program, {"application.rank_count": ranks}).column("iteration_time")

    def residuals(numbers: FloatArray) -> FloatArray:
        swept = {path: np.array([number]) for path, number in zip(values, numbers, strict=True)}
        times = evaluate(program, {"application.rank_count": ranks, **swept}).column("iteration_time")
        return np.asarray(times / measured - 1)

    least_squares(residuals, np.array(list(values.values())) * 1.3, x_scale=np.array(list(values.values())))


def _sweep(overrides: dict[str, object]) -> None:
    memory = {"platform.node.gpu.dram_bandwidth": np.linspace(5e11, 5e12, POINTS)}
    network = {"platform.network.inter_node.max_rate.rendezvous.base_bandwidth": np.linspace(1e10, 1e11, POINTS)}
    whatif.sweep("minimd", memory, network, overrides=overrides)


if __name__ == "__main__":
    for row in calibrating():
        print(row)
