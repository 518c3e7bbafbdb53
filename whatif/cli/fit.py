"""`whatif fit`: measurements to the parameters of a platform, or runs to a model of an application."""

from __future__ import annotations

from typing import Final

import click

from whatif.cli.file_group import FileGroup
from whatif.plugins import Verb

VERBS: Final = {
    "collectives": Verb("whatif.cli.fit_collectives", "Times of collectives: nccl-tests, rccl-tests, OSU, IMB, CSV."),
    "gpu": Verb("whatif.cli.fit_gpu", "Peaks and bandwidths: mixbench, BabelStream, gpuroofperf."),
    "grid": Verb("whatif.cli.fit_grid", "Structured grids: runs with computation, communication and total times."),
    "host": Verb("whatif.cli.fit_host", "Memory bandwidths of sockets: STREAM, likwid-bench, CSV."),
    "kernel": Verb("whatif.cli.fit_kernel", "Kernels and messages of HPL: calibrations as CSV."),
    "network": Verb("whatif.cli.fit_network", "Message times: OSU, IMB, Netgauge, SimGrid, CSV."),
    "regression": Verb("whatif.cli.fit_regression", "Any measured runs: a formula to coefficients with intervals."),
    "scaling": Verb(
        "whatif.cli.fit_scaling", "Runs at several node counts: the time at other counts, with an interval."
    ),
    "transfer": Verb("whatif.cli.fit_transfer", "Host-device copies: nvprof profiles, summaries as CSV."),
}


_KINDS: Final = {"collectives": "network", "grid": "runs", "regression": "runs", "scaling": "runs"}


@click.group("fit", cls=FileGroup, verbs=VERBS, kinds=_KINDS)
def command() -> None:
    """Fit a platform to measurements, or a model to your own runs: print it with standard errors, and write it."""
