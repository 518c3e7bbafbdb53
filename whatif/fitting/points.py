"""Which rows of measurements a network fit uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, did_you_mean
from whatif.models.quantities import FloatArray
from whatif.table import Table

Weighting = Literal["relative", "uniform", "sqrt_size"]
WEIGHTINGS: Final = ("relative", "uniform", "sqrt_size")
WINDOWED: Final = ("bandwidth",)
"""Tests with several messages in flight: their time is that of a message in a stream."""
FEWEST_SIZES: Final = 3


@dataclass(frozen=True, eq=False)
class Points:
    """Measured times of messages, sorted by size and then by count; three arrays of one length."""

    message_size: FloatArray
    process_count: FloatArray
    """k, the pairs of processes that communicate at the same time."""
    time: FloatArray

    def __len__(self) -> int:
        return len(self.time)

    def where(self, chosen: NDArray[Any]) -> Points:
        """Those points that a mask or an index chooses."""
        return Points(self.message_size[chosen], self.process_count[chosen], self.time[chosen])

    @property
    def counts(self) -> FloatArray:
        """The different process counts, ascending."""
        return np.unique(self.process_count)

    def alone(self) -> Points:
        """Those with the fewest processes: what a postal model is fitted to."""
        return self.where(self.process_count == self.process_count.min())

    def weights(self, weighting: Weighting) -> FloatArray:
        """1/σ² of each time: σ = t (relative), 1 (uniform) or √n (sqrt_size, at least 1)."""
        if weighting == "relative":
            return self.time**-2.0
        return np.ones(len(self)) if weighting == "uniform" else 1.0 / np.maximum(self.message_size, 1.0)


@dataclass(frozen=True, eq=False)
class Choice:
    """The rows chosen: for the postal model, and for the models of sharing where there are several counts."""

    test: str
    points: Points
    shared_test: str
    shared: Points | None
    warnings: tuple[str, ...]


def choose(table: Table, test: str | None = None, buffers: str | None = None) -> Choice:
    """The rows to fit: ping-pongs before windowed tests, of one kind of buffers; `UsageError` if that is not clear."""
    mask = _of_buffers(table, buffers)
    tests = table.columns["test"].values.astype(str)
    present = [name for name in ("ping_pong", *WINDOWED) if (tests[mask] == name).any()] if test is None else [test]
    if test is not None and not (tests[mask] == test).any():
        known = sorted(set(tests[mask]))
        raise UsageError(f"no rows of the test `{test}`; there are {', '.join(known)}{did_you_mean(test, known)}")
    if not present:
        found = ", ".join(sorted(set(tests[mask]))) or "none"
        raise UsageError(f"no ping-pong or bandwidth test among the measurements (found: {found})")
    sets = {name: _points(table, mask & (tests == name), name) for name in present}
    first = present[0]
    shared_test = next((name for name in present if len(sets[name].counts) > 1), "")
    warnings = tuple(_streamed(name) for name in dict.fromkeys((first, shared_test)) if name in WINDOWED)
    return Choice(first, sets[first], shared_test, sets.get(shared_test), warnings)


def _streamed(test: str) -> str:
    return (
        f"the times of the {test} test are those of a message in a stream of them: "
        "their latency is the gap between messages, not the time of a lone one"
    )


def _of_buffers(table: Table, buffers: str | None) -> NDArray[np.bool_]:
    held = table.columns["buffers"].values.astype(str)
    kinds = sorted(set(held.tolist()))
    if buffers is None and len(kinds) > 1:
        names = ", ".join(kind or "not said" for kind in kinds)
        raise UsageError(f"the measurements are of several kinds of buffers ({names}); choose one")
    if buffers is not None and buffers not in kinds:
        raise UsageError(f"no measurements with buffers `{buffers}`; there are {', '.join(kinds)}")
    mask: NDArray[np.bool_] = held == (kinds[0] if buffers is None and kinds else buffers)
    return mask


def _points(table: Table, mask: NDArray[np.bool_], test: str) -> Points:
    size, count, time = (table.columns[name].values[mask] for name in ("message_size", "pair_count", "time"))
    if np.isnan(count).all():
        count = np.ones(len(count))
    elif np.isnan(count).any():
        raise UsageError(f"some rows of the {test} test do not say how many pairs communicate at the same time")
    bad = ~(np.isfinite(size) & np.isfinite(time) & (time > 0) & (size >= 0))
    if bad.any():
        raise UsageError(f"{bad.sum()} rows of the {test} test have no time above zero or no message size")
    order = np.lexsort((count, size))
    points = Points(size[order], count[order], time[order])
    _refuse_useless(points.alone(), test)
    return points


def _refuse_useless(points: Points, test: str) -> None:
    sizes = np.unique(points.message_size)
    if len(sizes) == 1:
        raise UsageError(f"the {test} test has one message size only: latency and bandwidth cannot be told apart")
    if len(sizes) < FEWEST_SIZES:
        raise UsageError(f"the {test} test has {len(sizes)} message sizes; at least {FEWEST_SIZES} are needed")
    if points.time.min() == points.time.max():
        raise UsageError(f"all times of the {test} test are equal: there is nothing to fit")
    # Ranks do not mind that sizes are spaced by powers of two.
    ranks = np.argsort(np.argsort(points.time, kind="stable"), kind="stable")
    if np.corrcoef(np.arange(len(ranks)), ranks)[0, 1] < 0:
        raise UsageError(
            f"the times of the {test} test go down with message size: are these bandwidths, or the columns mixed up?"
        )
