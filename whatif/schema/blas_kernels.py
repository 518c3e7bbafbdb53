"""Cost of the kernels of a linear-algebra library on one process of a machine, as calibrations measure it.

A time is linear in the products of a kernel's sizes (Cornebize et al. 2019, section 6.1: M-0 has only `constant`, M-1
one product, M-2 all of them), and so is its temporal deviation (N-1: only a constant; N-2: the products too).
"""

from __future__ import annotations

from typing import Final

from whatif.schema.fields import Count, Fraction, Key, PositiveFactor, Seconds, StrictTable


class MatrixTerms(StrictTable):
    """constant + mnk M N K + mn M N + mk M K + nk N K."""

    constant: Seconds = 0.0
    """Time of a call that does nothing."""
    mnk: Seconds = 0.0
    """Time of each of the M N K multiplications and additions."""
    mn: Seconds = 0.0
    """Time of each of the M N elements of the result."""
    mk: Seconds = 0.0
    """Time of each of the M K elements of the first factor."""
    nk: Seconds = 0.0
    """Time of each of the N K elements of the second factor."""


class Offloaded(MatrixTerms):
    """The other side of a breakpoint (M'): what a call costs whose sizes are all at least these."""

    smallest_m: Count = 1.0
    """Least M."""
    smallest_n: Count = 1.0
    """Least N."""
    smallest_k: Count = 1.0
    """Least K."""


class MatrixKernel(MatrixTerms):
    """A product of matrices, M x K times K x N."""

    deviation: MatrixTerms = MatrixTerms()
    """Standard deviation of one call about its mean: half-normal, so that a call is seldom much faster."""
    offloaded: Offloaded | None = None
    """Cost of large calls that run on an accelerator."""


class SizeTerms(StrictTable):
    """constant + size S."""

    constant: Seconds = 0.0
    """Time of a call that does nothing."""
    size: Seconds = 0.0
    """Time of each element of the kernel's size S."""


class SizeKernel(SizeTerms):
    """A kernel with one size: M N of a copy or a matrix-vector product, N of a vector, M M N of a triangular solve."""

    deviation: SizeTerms = SizeTerms()
    """Standard deviation of one call about its mean, half-normal."""


class Kernels(StrictTable):
    """Costs of the kernels of HPL on one process while all processes of the node are busy.

    The names are those of BLAS and of HPL's own functions; one that is not stated is charged by the data sheet.
    """

    dgemm: MatrixKernel | None = None
    """C - A B."""
    dtrsm: SizeKernel | None = None
    """Triangular solve of a matrix, S = M M N from the left, M N N from the right; like dgemm where not stated."""
    dtrsv: SizeKernel | None = None
    """Triangular solve of a vector, S = N."""
    dgemv: SizeKernel | None = None
    """Matrix times vector, S = M N."""
    dger: SizeKernel | None = None
    """Rank-1 update, S = M N."""
    daxpy: SizeKernel | None = None
    """Sum of vectors, S = N."""
    dscal: SizeKernel | None = None
    """Scaling of a vector, S = N."""
    idamax: SizeKernel | None = None
    """Search of the pivot, S = N."""
    dlaswp00n: SizeKernel | None = None
    """Row swaps of one process, S = M N."""
    dlaswp01t: SizeKernel | None = None
    """Rows gathered on the pivot block's process, S = M N."""
    dlaswp02n: SizeKernel | None = None
    """Rows gathered on the others, S = M N."""
    dlaswp03t: SizeKernel | None = None
    """Rows received, on the pivot block's half, S = M N."""
    dlaswp04t: SizeKernel | None = None
    """Rows received, on the other half, S = M N."""
    dlacpy: SizeKernel | None = None
    """Copy of a matrix, S = M N."""
    dlatcpy: SizeKernel | None = None
    """Transposed copy of a matrix, S = M N."""
    correction: PositiveFactor = 1.0
    """Time of all kernels relative to the costs above, learnt from runs of HPL on this machine (`whatif hpl -o`)."""
    run_deviation: Fraction = 0.0
    """Standard deviation of the time of all kernels from one run to the next, relative to their mean."""
    busy_cores: Count | None = None
    """Cores of a node that were busy during the calibration; fewer than the ranks of a run means too short times."""
    processors: dict[Key, PositiveFactor] = {}
    """Time of dgemm on each processor (socket), node after node, relative to the model above (M_H); empty: all 1."""
    deviations: dict[Key, PositiveFactor] = {}
    """Deviation of dgemm on each processor, relative to the model's, besides its factor (N_H); empty: all 1."""


KERNEL_NAMES: Final = tuple(name for name, field in Kernels.model_fields.items() if field.annotation in
                            (MatrixKernel | None, SizeKernel | None))  # fmt: skip
"""Kernels by the names of their tables."""
