"""The factorisation of one panel as HPL does it: which kernels run between one pivot and the next.

HPL factors a panel of `width` columns recursively: NDIV parts at each level by RFACT until NBMIN columns are left, then
column by column by PFACT. Every kernel's time is linear in the local rows, so the kernels between two pivots add up to
one line in them. The process row that holds the pivot block has fewer rows the further it gets.
Source: the structure of HPL 2.2, HPL_pdrpan{ll,cr,rl}T and HPL_pdpan{ll,cr,rl}T.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from whatif.linpack.simulation.configuration import Configuration, Looking
from whatif.linpack.simulation.costs import (
    DGEMM,
    DGEMM_DEVIATION,
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
from whatif.models.quantities import FloatArray


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
    variant = _Variant(
        configuration.panel_factorisation,
        configuration.recursive_factorisation,
        configuration.recursion_minimum,
        configuration.recursion_divisions,
    )
    return variant.panel(width, 0)


def panel_lines(configuration: Configuration, width: int, kernels: FloatArray) -> FloatArray:
    """[pivot + 1, 12]: work before each pivot and after the last, as lines in the local rows m.

    Columns: dgemm's constant, slope, and difference of the pivot block's row; the other kernels' three; then the three
    coefficients of the variance, in 1, m and m^2, of dgemm and of all others together: σ^2 = Σ (a + b m)^2 over calls.
    """
    lines = np.zeros((width + 1, LINE_COLUMNS))
    at = 0
    for call in panel_calls(configuration, width):
        if call is PIVOT:
            at += 1
        elif call.kernel == "dgemm":
            _add(
                lines[at, LINE_MATRIX:LINE_OTHER],
                lines[at, LINE_MATRIX_VARIANCE:LINE_OTHER_VARIANCE],
                *_matrix_line(call, kernels),
            )
        else:
            row = kernels[KERNELS.index(call.kernel)]
            _add(lines[at, LINE_OTHER:LINE_MATRIX_VARIANCE], lines[at, LINE_OTHER_VARIANCE:], *_size_line(call, row))
    return lines


def _matrix_line(call: KernelCall, kernels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(constant, slope, less) of the mean, and (constant, slope) of the deviation."""
    inner, columns, depth = float(call.columns * call.depth), call.columns, call.depth
    slopes = np.array([0.0, inner, columns, depth, 0.0])
    constants = np.array([1.0, 0.0, 0.0, 0.0, inner]) + call.fixed * slopes
    mean, spread = kernels[DGEMM], kernels[DGEMM_DEVIATION]
    slope = mean @ slopes * call.each
    return np.array([mean @ constants, slope, slope * call.done]), np.array(
        [spread @ constants, spread @ slopes * call.each]
    )


def _size_line(call: KernelCall, kernel: FloatArray) -> tuple[FloatArray, FloatArray]:
    constant, slope = kernel[SIZE_CONSTANT] + kernel[SIZE_SLOPE] * call.fixed, kernel[SIZE_SLOPE] * call.each
    if call.pivot_row_only:  # The difference is negative: the pivot block's row has more work.
        return np.array([0.0, 0.0, -constant]), np.zeros(2)
    spread = np.array([kernel[SPREAD_CONSTANT] + kernel[SPREAD_SLOPE] * call.fixed, kernel[SPREAD_SLOPE] * call.each])
    return np.array([constant, slope, slope * call.done]), spread


def _add(line: FloatArray, variance: FloatArray, mean: FloatArray, spread: FloatArray) -> None:
    line += mean
    variance += np.array([spread[0] ** 2, 2 * spread[0] * spread[1], spread[1] ** 2])
