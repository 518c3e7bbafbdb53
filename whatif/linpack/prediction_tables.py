"""Predicted runs of HPL, compared with measured ones: rows of a table, and details below lines of HPL's own table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from whatif.linpack.output_reader import COMPONENTS, SIZES, HPLRun, variant_code
from whatif.linpack.output_writer import HPLRow
from whatif.linpack.simulation.configuration import Configuration
from whatif.linpack.simulation.simulator import HPLOutcome
from whatif.table import Table
from whatif.units import FLOP_PER_SECOND, ONE, SECOND, Dimension

LEVEL: Final = 0.9
"""Probability with which a further run is in the interval."""
PARTS: Final = ("panel_factorisation", "pivot_exchange", "row_swap")
"""Components that HPL marks with a `+`: parts of the one before."""
_RULE: Final = "--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV-"

Key = tuple[str, int, int, int, int]
"""Identity of a run in the output of HPL: T/V, N, NB, P, Q."""


@dataclass(frozen=True, slots=True)
class HPLPrediction:
    """Prediction of one configuration, and its measured runs."""

    row: HPLRow
    components: Mapping[str, float] = field(default_factory=dict)
    """The greatest of all processes, as HPL reports them: s. The mean of the replicates."""
    measured: Sequence[HPLRun] = ()

    @property
    def measured_time(self) -> float:
        """Mean time of the measured runs in s; NaN without any."""
        return float(np.mean([run.time for run in self.measured])) if self.measured else math.nan

    @property
    def error(self) -> float:
        """Relative error of the predicted time."""
        return self.row.time / self.measured_time - 1

    @property
    def measured_components(self) -> dict[str, float]:
        """Mean components of the measured runs."""
        names = [name for name in COMPONENTS.values() if any(name in run.component_times for run in self.measured)]
        return {
            name: float(np.mean([run.component_times[name] for run in self.measured if name in run.component_times]))
            for name in names
        }


def prediction_of(outcomes: Sequence[HPLOutcome], measured: Mapping[Key, Sequence[HPLRun]]) -> HPLPrediction:
    """Prediction from the replicates of one configuration, with its measured runs."""
    times = [outcome.time for outcome in outcomes]
    components = {
        name: float(np.mean([outcome.components[name].max() for outcome in outcomes]))
        for name in COMPONENTS.values()
        if name in outcomes[0].components
    }
    configuration = outcomes[0].configuration
    row = HPLRow(configuration, float(np.mean(times)), interval_of(times) if len(times) > 1 else None)
    return HPLPrediction(row, components, measured.get(key_of(configuration), ()))


def interval_of(times: Sequence[float]) -> tuple[float, float]:
    """Limits between which the time of a further run is with probability `LEVEL`: Student's, of the logarithms.

    ln t: mean ± t_{n-1} s sqrt(1 + 1/n), which holds for few replicates, too, other than their quantiles.
    """
    from scipy.special import stdtrit

    logs, count = np.log(times), len(times)
    half = float(stdtrit(count - 1, (1 + LEVEL) / 2) * logs.std(ddof=1) * math.sqrt(1 + 1 / count))
    return math.exp(logs.mean() - half), math.exp(logs.mean() + half)


def in_short(prediction: HPLPrediction) -> str:
    """Variant, NB and grid of a prediction."""
    code, _, nb, p, q = key_of(prediction.row.configuration)
    return f"{code} NB {nb} {p} x {q}"


def key_of(configuration: Configuration) -> Key:
    """Identity of a configuration in the output of HPL."""
    return (
        variant_code(configuration), configuration.matrix_size, configuration.block_size,
        configuration.process_rows, configuration.process_columns,
    )  # fmt: skip


def by_key(runs: Sequence[HPLRun]) -> dict[Key, list[HPLRun]]:
    """Measured runs by their identity."""
    found: dict[Key, list[HPLRun]] = {}
    for run in runs:
        found.setdefault(key_of(run.configuration), []).append(run)
    return found


def detail_lines(prediction: HPLPrediction, components: bool) -> Iterator[str]:
    """Lines below a prediction in HPL's own table: measured time, and components as HPL prints them."""
    if prediction.measured:
        count = len(prediction.measured)
        head = f"measured{f', mean of {count} runs' if count > 1 else ''}"
        rate = prediction.row.configuration.operations / prediction.measured_time / 1e9
        yield f"{head:36}{prediction.measured_time:18.2f}    {rate:19.4e}"
        yield f"{'predicted - measured':36}{prediction.error:+18.1%}"
    if components:
        yield _RULE
        yield from _component_lines(prediction)
        yield "-" * 80


def _component_lines(prediction: HPLPrediction) -> Iterator[str]:
    measured = prediction.measured_components
    for label, name in COMPONENTS.items():
        if name in prediction.components:
            heading = f"{'+ ' if name in PARTS else ''}Max aggregated wall time {label}"
            dots = "".join("." if place % 2 and place > len(heading) else " " for place in range(len(heading), 37))
            behind = f"   measured {measured[name]:18.2f}" if name in measured else ""
            yield f"{heading}{dots}: {prediction.components[name]:18.2f}{behind}"


def prediction_table(
    predictions: Sequence[HPLPrediction], *, interval: bool, components: bool, measured: bool, notes: Mapping[str, str]
) -> Table:
    """One row for each configuration; unknown numbers are NaN.

    `lower_time` and `upper_time` are the interval, `*_time` the components, with `measured_` before those of the
    measured runs, `error` is the relative one of the time.
    """
    names = [name for name in COMPONENTS.values() if name in predictions[0].components] if components else []
    columns: dict[str, Dimension | None] = {"variant": None, **dict.fromkeys(SIZES, ONE)}
    columns |= {"time": SECOND, "rate": FLOP_PER_SECOND}
    columns |= {"lower_time": SECOND, "upper_time": SECOND} if interval else {}
    columns |= {f"{name}_time": SECOND for name in names}
    if measured:
        columns |= {"measured_time": SECOND, "error": ONE} | {f"measured_{name}_time": SECOND for name in names}
    rows = [_cells(item, names, interval, measured) for item in predictions]
    return Table.of_rows(columns, rows, notes, ("error",))


def _cells(prediction: HPLPrediction, names: Sequence[str], interval: bool, measured: bool) -> list[Any]:
    row = prediction.row
    cells: list[Any] = [*key_of(row.configuration), row.time, row.rate]
    cells += (row.interval or (math.nan, math.nan)) if interval else ()
    cells += [prediction.components[name] for name in names]
    if measured:
        known = prediction.measured_components
        cells += [prediction.measured_time, prediction.error, *(known.get(name, math.nan) for name in names)]
    return cells
