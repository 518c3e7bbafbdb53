"""Calls of one kernel: their times, the products of their sizes, and the removal of interrupted calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.fitting.blas_regression import robust
from whatif.fitting.input_checks import LONGEST_TIME
from whatif.models.quantities import FloatArray
from whatif.table import Table
from whatif.vocabulary import MATRIX_TERMS

SIZE_TERMS: Final = ("constant", "size")
FEWEST_POINTS: Final = 7
"""Calls without which nothing is fitted: of fewer, a line could not be held out of the folds."""
INTERRUPTED: Final = 5.0
"""Time of a call, relative to the usual one of its sizes, from which it counts as interrupted."""
_MOST_INTERRUPTED: Final = 0.05
"""Largest share of the calls that is left out."""
_NEIGHBOURS: Final = 10
"""Calls with smaller and with larger S that a call is compared with, each."""
_MOST_LOST: Final = 0.02
"""Share of the time in interruptions above which there is a warning."""
# The sizes whose product is S; a triangular solve has one from the left and one from the right.
_PRODUCTS: Final[Mapping[str, tuple[str, ...]]] = {
    "dtrsm": ("mmn", "mnn"), "dtrsv": ("n",), "daxpy": ("n",), "dscal": ("n",), "idamax": ("n",),
}  # fmt: skip
_SIDES: Final = {"mmn": "M M N (from the left)", "mnn": "M N N (from the right)"}


@dataclass(frozen=True, eq=False)
class Samples:
    """Calls of one kernel."""

    kernel: str
    sizes: Mapping[str, FloatArray]
    """Sizes by column of the file, with the product S as `size` where the kernel has one."""
    time: FloatArray
    nodes: NDArray[np.object_]
    cpus: NDArray[np.object_]
    groups: NDArray[np.intp]
    """Number of the processor and calibration of each call."""
    representatives: NDArray[np.intp]
    """One call of each group."""

    @property
    def names(self) -> tuple[str, ...]:
        """Terms of the kernel."""
        return MATRIX_TERMS if self.kernel == "dgemm" else SIZE_TERMS

    def terms(self, names: tuple[str, ...]) -> FloatArray:
        """The products of the sizes, of shape (calls, names)."""
        one = np.ones_like(self.time)
        if self.kernel != "dgemm":
            return np.stack([one if name == "constant" else self.sizes["size"] for name in names], axis=1)
        factors = ([] if name == "constant" else [self.sizes[letter] for letter in name] for name in names)
        return np.stack([reduce(np.multiply, factor, one) for factor in factors], axis=1)

    def at(self, chosen: NDArray[np.bool_]) -> Samples:
        """Some of the calls, with groups numbered anew."""
        _, representatives, groups = np.unique(self.groups[chosen], return_index=True, return_inverse=True)
        sizes = {name: size[chosen] for name, size in self.sizes.items()}
        return Samples(
            self.kernel, sizes, self.time[chosen], self.nodes[chosen], self.cpus[chosen], groups, representatives
        )


def samples_of(table: Table, kernel: str) -> tuple[Samples, list[str]]:
    """Calls of a kernel that were not interrupted, and remarks.

    Raise `UsageError` for a missing column, too few calls, sizes that are all equal, and impossible times.
    """
    columns = table.arrays
    time = columns["time"]
    if len(time) < FEWEST_POINTS:
        raise UsageError(f"{kernel}: {len(time)} calls; at least {FEWEST_POINTS} are needed")
    if time.max() > LONGEST_TIME:
        raise UsageError(f"{kernel}: a time of {time.max():g} s is not possible: are the units mixed up?")
    sizes, remarks = _sizes(columns, kernel, time)
    empty = np.full(len(time), "", dtype=object)
    nodes, cpus, runs = (columns.get(name, empty) for name in ("node", "cpu", "run"))
    labels = [f"{node}\n{cpu}\n{run}" for node, cpu, run in zip(nodes, cpus, runs, strict=True)]
    _, representatives, groups = np.unique(np.array(labels, dtype=str), return_index=True, return_inverse=True)
    found, lost = _uninterrupted(Samples(kernel, sizes, time, nodes, cpus, groups, representatives))
    return found, [*remarks, *lost]


def _uninterrupted(samples: Samples) -> tuple[Samples, list[str]]:
    """Calls without those that took `INTERRUPTED` times as long as others of similar S, and a remark on these.

    A process that loses its core waits for milliseconds: a thousand times what a short call takes. Where more than
    `_MOST_INTERRUPTED` of the calls took so long, all are kept, as this may be the kernel.
    """
    usual = _usual(samples)
    kept = samples.time < INTERRUPTED * usual
    if kept.all():
        return samples, []
    count = f"{(~kept).sum():,} of {kept.size:,} calls"
    if kept.mean() < 1 - _MOST_INTERRUPTED:
        how = f"took {INTERRUPTED:g} times as long as others of their sizes; all are kept"
        return samples, [f"{samples.kernel}: {count} {how}: was the machine busy with other work?"]
    lost = float((samples.time - usual)[~kept].sum() / samples.time.sum())
    more = ": was the machine busy with other work?" if lost > _MOST_LOST else ""
    text = f"{samples.kernel}: {count} were interrupted, {lost:.1%} of the time; they are left out{more}"
    return samples.at(kept), [text]


def _usual(samples: Samples) -> FloatArray:
    """Usual time of each call: that of the model, times the median of measured over modelled times at similar S."""
    modelled = robust(samples.terms(samples.names), samples.time)
    order = np.argsort(samples.terms(samples.names[1:2])[:, 0], kind="stable")
    ranked = (samples.time / modelled)[order]
    around = sliding_window_view(np.pad(ranked, _NEIGHBOURS, mode="reflect"), 2 * _NEIGHBOURS + 1)
    usual = np.empty_like(modelled)
    usual[order] = modelled[order] * np.median(around, axis=1)
    return usual


def _sizes(columns: Mapping[str, FloatArray], kernel: str, time: FloatArray) -> tuple[dict[str, FloatArray], list[str]]:
    remarks: list[str] = []
    if kernel == "dgemm":
        sizes = _needed(columns, kernel, "mnk")
    elif "size" in columns:
        sizes = {"size": columns["size"]}
    else:
        sizes, remarks = _product(columns, kernel, time)
    if all(np.ptp(values) == 0 for values in sizes.values()):
        raise UsageError(f"{kernel}: all sizes are equal: the dependence on them cannot be determined")
    return sizes, remarks


def _needed(columns: Mapping[str, FloatArray], kernel: str, letters: str) -> dict[str, FloatArray]:
    wanted = dict.fromkeys(letters)
    if missing := [letter for letter in wanted if letter not in columns]:
        listed = ", ".join(f"`{letter}`" for letter in missing)
        raise UsageError(f"{kernel}: no column {listed}; `--columns {missing[0]}=HEADING` names its column")
    return {letter: columns[letter] for letter in wanted}


def _product(
    columns: Mapping[str, FloatArray], kernel: str, time: FloatArray
) -> tuple[dict[str, FloatArray], list[str]]:
    """S as the product of the kernel's sizes: of two, the one that fits the times best."""
    errors: dict[str, float] = {}
    products: dict[str, FloatArray] = {}
    sizes: dict[str, FloatArray] = {}
    for letters in _PRODUCTS.get(kernel, ("mn",)):
        sizes = _needed(columns, kernel, letters)
        products[letters] = reduce(np.multiply, [sizes[letter] for letter in letters])
        terms = np.stack((np.ones_like(time), products[letters]), axis=1)
        errors[letters] = float(np.median(np.abs(robust(terms, time) / time - 1)))
    best, *others = sorted(errors, key=errors.__getitem__)
    remarks = f"{kernel}: S is {_SIDES.get(best, '')}, {errors[best]:.1%} off; "
    remarks += " or ".join(f"{_SIDES[letters]} would be {errors[letters]:.1%} off" for letters in others)
    return {**sizes, "size": products[best]}, [remarks] if others else []
