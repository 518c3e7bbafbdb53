"""Back substitution, compiled: HPL_pdtrsv from the last block column to the first.

The process column of the block before last multiplies its blocks with the newest part of x, sends the part for the next
block to the next process column, and passes x on along itself.
"""

from __future__ import annotations

from typing import Any

from whatif.linpack.simulation.costs import DAXPY, DGEMV, DTRSV, deliver, size_time
from whatif.linpack.simulation.layout import CLOCK, NODE, SOLVED, RunNumbers, owned, owned_from
from whatif.models.quantities import FloatArray, IntArray


def pass_words(
    a: int, b: int, words: float, times: FloatArray, marks: IntArray, pieces: FloatArray, random: Any
) -> None:
    """One message from process a to process b."""
    far = 1 if marks[a, NODE] != marks[b, NODE] else 0
    times[a, CLOCK], times[b, CLOCK] = deliver(times[a, CLOCK], times[b, CLOCK], 8.0 * words, pieces, far, 0.0, random)


def back_substitute(
    times: FloatArray,
    marks: IntArray,
    kernels: FloatArray,
    pieces: FloatArray,
    run: RunNumbers,
    noisy: bool,
    random: Any,
) -> None:
    """Advance all clocks over the solution of the triangular system."""
    for process in range(run.p * run.q):
        times[process, SOLVED] = -times[process, CLOCK]
    last = (run.n - 1) // run.nb
    width = run.n - last * run.nb
    owner, column = run.n // run.nb % run.q, last % run.q
    for p in range(run.p):
        rows = owned(run.n, run.nb, p, run.p)
        if rows > 0 and owner != column:
            pass_words(p * run.q + owner, p * run.q + column, rows, times, marks, pieces, random)
    times[last % run.p * run.q + column, CLOCK] += size_time(kernels, DTRSV, width, noisy, random)
    for block in range(last - 1, -1, -1):
        substitute_block(block, width, times, marks, kernels, pieces, run, noisy, random)
        width = run.nb
    for process in range(run.p * run.q):
        times[process, SOLVED] += times[process, CLOCK]


def substitute_block(
    block: int, width: int, times: FloatArray, marks: IntArray, kernels: FloatArray, pieces: FloatArray,
    run: RunNumbers, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Apply block + 1 of x (`width` long), then solve for block `block`."""
    column, following = (block + 1) % run.q, block % run.q
    end = (block + 1) * run.nb
    start = max(end - max((run.q - 1) * run.nb, run.nb), 0)
    for step in range(run.p):
        p = (block + 1 - step) % run.p
        me, urgent = p * run.q + column, owned_from(start, end, run.nb, p, run.p)
        if step > 0:
            pass_words((p + 1) % run.p * run.q + column, me, width, times, marks, pieces, random)
        if urgent > 0:
            times[me, CLOCK] += size_time(kernels, DGEMV, urgent * width, noisy, random)
            if run.q > 1:
                pass_words(me, p * run.q + following, urgent, times, marks, pieces, random)
                times[p * run.q + following, CLOCK] += size_time(kernels, DAXPY, urgent, noisy, random)
    times[block % run.p * run.q + following, CLOCK] += size_time(kernels, DTRSV, run.nb, noisy, random)
    for p in range(run.p):
        rest = owned_from(0, start, run.nb, p, run.p)
        if rest > 0:
            times[p * run.q + column, CLOCK] += size_time(kernels, DGEMV, rest * width, noisy, random)
