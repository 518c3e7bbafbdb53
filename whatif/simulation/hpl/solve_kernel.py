"""Back substitution, compiled: HPL_pdtrsv from the last block column to the first.

The process column of the block before last multiplies what it has with the newest part of x, hands what the next
block needs to the next process column, and passes x on along itself.
"""

from __future__ import annotations

from typing import Any

from whatif.models.quantities import FloatArray
from whatif.simulation.hpl.costs import deliver, size_time
from whatif.simulation.hpl.layout import Charges, Run, owned, owned_from

DTRSV, DGEMV, DAXPY = 1, 2, 4


def pass_message(clock: FloatArray, sender: Any, receiver: Any, words: float, charges: Charges) -> None:
    """One message between two processes, given as (process row, process column)."""
    far = 1 if charges.nodes[sender] != charges.nodes[receiver] else 0
    clock[sender], clock[receiver] = deliver(
        clock[sender], clock[receiver], 8.0 * words, charges.pieces[far], charges.limits[far], 0.0
    )


def back_substitute(clock: FloatArray, run: Run, charges: Charges, noisy: bool, random: Any) -> None:
    """Advance all clocks over the solution of the triangular system."""
    last = (run.n - 1) // run.nb
    width = run.n - last * run.nb
    owner_of_b = run.n // run.nb % run.q
    if owner_of_b != last % run.q:
        for p in range(run.p):
            rows = owned(run.n, run.nb, p, run.p)
            if rows > 0:
                pass_message(clock, (p, owner_of_b), (p, last % run.q), rows, charges)
    clock[last % run.p, last % run.q] += size_time(charges.sizes[DTRSV], width, noisy, random)
    for block in range(last - 1, -1, -1):
        substitute_block(clock, block, width, run, charges, noisy, random)
        width = run.nb


def substitute_block(
    clock: FloatArray, block: int, width: int, run: Run, charges: Charges, noisy: bool, random: Any
) -> None:
    """Apply block + 1 of x (`width` long), then solve for block `block`."""
    row, column = (block + 1) % run.p, (block + 1) % run.q
    next_row, next_column = block % run.p, block % run.q
    end = (block + 1) * run.nb
    start = max(end - max((run.q - 1) * run.nb, run.nb), 0)
    for step in range(run.p):
        p = (row - step) % run.p
        urgent = owned_from(start, end, run.nb, p, run.p)
        if step > 0:
            pass_message(clock, ((p + 1) % run.p, column), (p, column), width, charges)
        if urgent > 0:
            clock[p, column] += size_time(charges.sizes[DGEMV], urgent * width, noisy, random)
            if run.q > 1:
                pass_message(clock, (p, column), (p, next_column), urgent, charges)
                clock[p, next_column] += size_time(charges.sizes[DAXPY], urgent, noisy, random)
    clock[next_row, next_column] += size_time(charges.sizes[DTRSV], run.nb, noisy, random)
    for p in range(run.p):
        rest = owned_from(0, start, run.nb, p, run.p)
        if rest > 0:
            clock[p, column] += size_time(charges.sizes[DGEMV], rest * width, noisy, random)
