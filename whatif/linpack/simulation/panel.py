"""The factorisation of one panel as HPL does it: which kernels run between one pivot and the next.

HPL factors a panel of `width` columns recursively: NDIV parts at each level by RFACT until NBMIN columns are left, then
column by column by PFACT. Every kernel's time is linear in the local rows, so the kernels between two pivots add up to
one line in them. The process row that holds the pivot block has fewer rows the further it gets.
Source: the structure of HPL 2.2, HPL_pdrpan{ll,cr,rl}T and HPL_pdpan{ll,cr,rl}T.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from whatif.linpack.simulation.configuration import Configuration, Looking
from whatif.linpack.simulation.costs import (
    DGEMM,
    DGEMM_DEVIATION,
    KERNEL_COLUMNS,
    KERNELS,
    SIZE_CONSTANT,
    SIZE_SLOPE,
    SPREAD_CONSTANT,
    SPREAD_SLOPE,
)
from whatif.linpack.simulation.layout import (
    LINE_COLUMNS,
    LINE_MATRIX,
    LINE_MATRIX_VARIANCE,
    LINE_OTHER,
    LINE_OTHER_VARIANCE,
)
from whatif.models.quantities import FloatArray, IntArray


class KernelCall(NamedTuple):
    """A kernel between two pivots, of size `fixed` and `each` for every local row; dgemm has `columns` and `depth`."""

    kernel: str
    fixed: float = 0.0
    each: float = 0.0
    done: int = 0
    """Rows that the pivot block's process row has finished."""
    columns: int = 0
    depth: int = 0
    pivot_row_only: bool = False


PIVOT: Final = KernelCall("pivot")


@dataclass(frozen=True)
class _Variant:
    pivot: Looking
    block: Looking
    minimum: int
    divisions: int

    def panel(self, width: int, first: int) -> Iterator[KernelCall]:
        """The calls of the recursion over `width` columns from column `first` of the panel."""
        if width <= self.minimum:
            yield from _column_by_column(width, first, _STEPS[self.pivot])
            return
        parts = -(-width // self.minimum)
        part = -(-parts // self.divisions) * self.minimum
        for start in range(0, width, part):
            now = min(part, width - start)
            rest = width - start - now
            yield from self._before(start, now, first)
            yield from self.panel(now, first + start)
            yield from self._after(start, now, rest, first)
            yield KernelCall("dlatcpy", fixed=float((first + start) * now), pivot_row_only=True)

    def _before(self, start: int, now: int, first: int) -> Iterator[KernelCall]:
        """Left-looking and Crout bring the columns up to date before they are factored."""
        if self.block is Looking.LEFT:
            yield KernelCall("dtrsm", fixed=float(now * start * start))
        if self.block is not Looking.RIGHT and start:
            yield KernelCall("dgemm", columns=now, depth=start, done=first + start, each=1.0)

    def _after(self, start: int, now: int, rest: int, first: int) -> Iterator[KernelCall]:
        """Crout and right-looking apply them to the columns behind."""
        if self.block is Looking.LEFT or not rest:
            return
        if self.block is Looking.CROUT and start:
            yield KernelCall("dgemm", fixed=float(rest), columns=now, depth=start)
        yield KernelCall("dtrsm", fixed=float(rest * now * now))
        if self.block is Looking.RIGHT:
            yield KernelCall("dgemm", columns=rest, depth=now, done=first + start + now, each=1.0)


def _column_by_column(
    width: int, first: int, step: Callable[[int, int, int], Iterator[KernelCall]]
) -> Iterator[KernelCall]:
    """A pivot for each of `width` columns from column `first` on; `step` brings the next one up to date."""
    yield KernelCall("idamax", each=1.0, done=first)
    for column in range(width - 1):
        yield PIVOT
        yield from step(width, column, first + column + 1)
    yield PIVOT
    yield KernelCall("dscal", each=1.0, done=first + width)


def _left(width: int, column: int, done: int) -> Iterator[KernelCall]:
    yield KernelCall("dtrsv", fixed=float(column + 1))
    yield from _by_column(column, done)


def _crout(width: int, column: int, done: int) -> Iterator[KernelCall]:
    if column:
        yield KernelCall("dgemv", fixed=float((width - 1 - column) * column))
    yield from _by_column(column, done)


def _by_column(column: int, done: int) -> Iterator[KernelCall]:
    yield KernelCall("dscal", each=1.0, done=done)
    yield KernelCall("dgemv", each=float(column + 1), done=done)
    yield KernelCall("idamax", each=1.0, done=done)


def _right(width: int, column: int, done: int) -> Iterator[KernelCall]:
    yield KernelCall("dscal", each=1.0, done=done)
    yield KernelCall("daxpy", each=1.0, done=done)
    yield KernelCall("idamax", each=1.0, done=done)
    if width - 2 - column:
        yield KernelCall("dger", each=float(width - 2 - column), done=done)


_STEPS: Final = {Looking.LEFT: _left, Looking.CROUT: _crout, Looking.RIGHT: _right}


def panel_calls(configuration: Configuration, width: int) -> Iterator[KernelCall]:
    """The kernels of one panel in order, with `PIVOT` where a pivot is agreed upon: `width` times."""
    return _variant_of(configuration).panel(width, 0)


def _variant_of(configuration: Configuration) -> _Variant:
    return _Variant(
        configuration.panel_factorisation,
        configuration.recursive_factorisation,
        configuration.recursion_minimum,
        configuration.recursion_divisions,
    )


def panel_lines(configuration: Configuration, width: int, kernels: FloatArray) -> FloatArray:
    """[pivot + 1, 12]: work before each pivot and after the last, as lines in the local rows m.

    Columns: dgemm's constant, slope, and difference of the pivot block's row; the other kernels' three; then the three
    coefficients of the variance, in 1, m and m^2, of dgemm and of all others together: σ^2 = Σ (a + b m)^2 over calls.
    """
    lines = np.zeros((width + 1, LINE_COLUMNS))
    matrix, others = _work(_variant_of(configuration), width)
    matrix.add(lines[:, LINE_MATRIX:LINE_OTHER], lines[:, LINE_MATRIX_VARIANCE:LINE_OTHER_VARIANCE], kernels)
    others.add(lines[:, LINE_OTHER:LINE_MATRIX_VARIANCE], lines[:, LINE_OTHER_VARIANCE:], kernels)
    return lines


@dataclass(frozen=True)
class _Work:
    """Calls of a panel as factors of the coefficients of their kernels, which the costs of a machine do not change."""

    pivots: IntArray
    """[call]: pivots before it."""
    rows: IntArray
    """[call, 2]: rows of the table of kernels with the mean and the deviation."""
    means: FloatArray
    """[call, 3, coefficient]: (constant, slope, less)."""
    spreads: FloatArray
    """[call, 2, coefficient]: (constant, slope)."""

    def add(self, lines: FloatArray, variances: FloatArray, kernels: FloatArray) -> None:
        """Add the means and the variances of the calls before each pivot."""
        constants, slopes = np.einsum("ck,cjk->jc", kernels[self.rows[:, 1]], self.spreads)
        np.add.at(lines, self.pivots, np.einsum("ck,cjk->cj", kernels[self.rows[:, 0]], self.means))
        np.add.at(variances, self.pivots, np.column_stack([constants**2, 2 * constants * slopes, slopes**2]))


@lru_cache(maxsize=32)
def _work(variant: _Variant, width: int) -> tuple[_Work, _Work]:
    """Work of dgemm and of the other kernels; cached, as runs that differ in noise or matrix size have the same."""
    found: tuple[list[Any], list[Any]] = [], []
    pivots = 0
    for call in variant.panel(width, 0):
        if call is PIVOT:
            pivots += 1
        elif call.kernel == "dgemm":
            found[0].append((pivots, (DGEMM, DGEMM_DEVIATION), *_matrix_factors(call)))
        else:
            found[1].append((pivots, (KERNELS.index(call.kernel),) * 2, *_size_factors(call)))
    return _as_arrays(found[0]), _as_arrays(found[1])


def _as_arrays(calls: Sequence[Any]) -> _Work:
    pivots, rows, means, spreads = zip(*calls, strict=True) if calls else ((), (), (), ())
    return _Work(
        np.array(pivots, dtype=np.int64),
        np.array(rows, dtype=np.int64).reshape(-1, 2),
        np.array(means).reshape(-1, 3, KERNEL_COLUMNS),
        np.array(spreads).reshape(-1, 2, KERNEL_COLUMNS),
    )


def _matrix_factors(call: KernelCall) -> tuple[FloatArray, FloatArray]:
    """(constant, slope, less) of the mean, and (constant, slope) of the deviation."""
    inner = float(call.columns * call.depth)
    slopes = np.array([0.0, inner, call.columns, call.depth, 0.0])
    constants = np.array([1.0, 0.0, 0.0, 0.0, inner]) + call.fixed * slopes
    return _with_less(constants, slopes * call.each, call), np.array([constants, slopes * call.each])


def _size_factors(call: KernelCall) -> tuple[FloatArray, FloatArray]:
    constants, slopes, less = np.zeros((3, KERNEL_COLUMNS))
    constants[[SIZE_CONSTANT, SIZE_SLOPE]], slopes[SIZE_SLOPE] = (1.0, call.fixed), call.each
    if call.pivot_row_only:  # The difference is negative: the pivot block's row has more work.
        return np.array([less, less, -constants]), np.zeros((2, KERNEL_COLUMNS))
    spreads = np.zeros((2, KERNEL_COLUMNS))
    spreads[0, [SPREAD_CONSTANT, SPREAD_SLOPE]], spreads[1, SPREAD_SLOPE] = (1.0, call.fixed), call.each
    return _with_less(constants, slopes, call), spreads


def _with_less(constants: FloatArray, slopes: FloatArray, call: KernelCall) -> FloatArray:
    return np.array([constants, slopes, slopes * call.done])
