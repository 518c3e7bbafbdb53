"""An HPL.dat of one run."""

from __future__ import annotations

from typing import Final

from whatif.linpack.simulation.configuration import Configuration

_TEXT: Final = """\
HPLinpack benchmark input file
Written by whatif
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{run.matrix_size:<12} Ns
1            # of NBs
{run.block_size:<12} NBs
{run.mapping.value:<12} PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{run.process_rows:<12} Ps
{run.process_columns:<12} Qs
16.0         threshold
1            # of panel fact
{run.panel_factorisation.value:<12} PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
{run.recursion_minimum:<12} NBMINs (>= 1)
1            # of panels in recursion
{run.recursion_divisions:<12} NDIVs
1            # of recursive panel fact.
{run.recursive_factorisation.value:<12} RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
{run.broadcast.value:<12} BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
{run.depth:<12} DEPTHs (>=0)
{run.swap.value:<12} SWAP (0=bin-exch,1=long,2=mix)
{run.swap_threshold:<12} swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""


def hpl_input_text(run: Configuration) -> str:
    """Text of an HPL.dat for one run; values that a `Configuration` lacks are HPL's defaults."""
    return _TEXT.format(run=run)
