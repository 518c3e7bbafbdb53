"""Scaling laws fitted to all origins of many series at once, against scipy's solver: `python -m benchmarks.scaling`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import nnls

from benchmarks.measure import Row, median_seconds
from whatif.fitting.scaling_fits import Problems, non_negative, predictions

SERIES, COUNTS = 64, 6


def scaling() -> Iterator[Row]:
    """Time of the fits of one law with three terms, and of all laws."""
    random = np.random.default_rng(0)
    rows = SERIES * (COUNTS - 2)
    counts = np.tile(2.0 ** np.arange(COUNTS), (rows, 1))
    time = (100 / counts + 1) * np.exp(random.normal(0, 0.02, counts.shape))
    design = np.stack((1 / counts, counts ** (-2 / 3), np.log2(counts)), axis=2) / time[..., None]
    one = np.ones_like(time)
    ours = median_seconds(lambda: non_negative(design, one), 20)
    theirs = median_seconds(lambda: [nnls(*pair) for pair in zip(design, one, strict=True)], 5)
    what = f"non-negative fits of 3 terms, {rows} sets of {COUNTS} runs"
    yield Row(what, f"{ours * 1e3:.1f} ms", f"{theirs * 1e3:.1f} ms", theirs / ours, "scipy.optimize.nnls")
    target = np.full(rows, 2.0**COUNTS)
    sets = Problems(counts, counts, time, np.ones_like(time, dtype=bool), np.zeros(rows, dtype=bool), target, target)
    yield Row(f"all laws of the same {rows} sets", f"{median_seconds(lambda: predictions(sets), 5) * 1e3:.0f} ms")


if __name__ == "__main__":
    for row in scaling():
        print(row)
