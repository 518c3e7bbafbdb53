"""Collectives of MPI by messages on shipped machines, against measured times. Nothing is fitted to these times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.models.quantities import FloatArray
from whatif.units import BYTE, MICROSECOND, ONE, Dimension
from whatif.validation.measured_kinds import ErrorTable, Rows, error_table, joined_by, numbers

_SERIES: Final = ("platform", "collective", "program", "ranks")
_BEST: Final = "best"
_ALGORITHMS: Final = {"alltoall": (_BEST, "pairwise")}
"""Algorithms of an operation besides the fastest one: Open MPI has no Bruck on 8 ranks (`simulation.openmpi_rules`)."""


def mpi_collectives(rows: Rows) -> ErrorTable:
    """Errors of each measured series: mean absolute error, bias, and mean factor in either direction."""
    columns: dict[str, Dimension | None] = {"platform": None, "collective": None, "program": None, "ranks": ONE}
    columns |= {"algorithm": None, "sizes": ONE, "smallest": BYTE, "largest": BYTE}
    columns |= dict.fromkeys(("error", "bias", "factor"), ONE)
    cells = [cell for series in series_of(rows) for cell in _errors(series)]
    means = joined_by([f"{row[1]}, {row[4]}" for row in cells], [(row[5], row[8], row[9]) for row in cells])
    return error_table(columns, cells, "collectives of MPI by messages, predicted and measured", means)


def series_of(rows: Rows) -> list[Rows]:
    """Rows of each operation that one program measured on a number of ranks of a machine."""
    found: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in _SERIES), []).append(row)
    return list(found.values())


def _errors(series: Rows) -> Iterator[tuple[Any, ...]]:
    platform, collective, program, ranks = (series[0][key] for key in _SERIES)
    sizes = numbers(series, "size_B")
    for algorithm in _ALGORITHMS.get(collective, (_BEST,)):
        ratios = time_ratios(series, algorithm)
        error, factor = np.abs(ratios - 1).mean(), np.exp(np.abs(np.log(ratios)).mean())
        what = platform, collective, program, float(ranks), algorithm
        yield *what, len(series), sizes.min(), sizes.max(), error, ratios.mean() - 1, factor


def time_ratios(series: Rows, algorithm: str = _BEST, platform: Any = None, **changes: Any) -> FloatArray:
    """Predicted over measured times of a series, on another `platform` or with other keys of the phase if stated."""
    row = series[0]
    phase = {"kind": "collective", "algorithm": algorithm, "model": "max_rate", "message_size": "1 B"}
    if algorithm == _BEST:
        phase["operation"] = row["collective"]
    application = {"name": "MPI", "iteration_count": 1, "phases": {"all": phase | changes}, "buffers": "host"}
    application |= {"rank_count": int(row["ranks"]), "ranks_per_node": int(row["ranks_per_node"])}
    program = Scenario.of(application=application, platform=platform or row["platform"]).program
    found = evaluate(program, {"application.phases.all.message_size": numbers(series, "size_B")})
    return np.asarray(found.values["iteration.time"] / (numbers(series, "time_us") * MICROSECOND))
