"""Bands of a sweep from samples of the uncertain values, and measured runs on it, as a worker process computes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from whatif.axes import Grid
from whatif.core.grid_run import run_whole
from whatif.core.session import SessionInputs
from whatif.core.uncertainty import Bands, Sampling, bands_of, sampled_program, uncertain
from whatif.tui.state import View
from whatif.units import counted

if TYPE_CHECKING:
    from whatif.studies.measured_points import SweepMeasurements

_SPREADS: Final[dict[str, dict[str, float]]] = {
    "none": {},
    "assumed": {"assumed": 0.2},
    "datasheet": {"assumed": 0.2, "datasheet": 0.1},
}


NOTHING_UNCERTAIN: Final = "nothing is uncertain: write 3 us +- 0.2 us, or press % to vary assumed values"


@dataclass(frozen=True, slots=True, eq=False)
class ResultBands:
    """The band of every result at the present values, and over the sweep."""

    point: Bands
    sweep: Bands
    value_count: int
    """Number of uncertain values at the point."""

    def remark(self) -> str:
        """Basis of the bands: samples and uncertain values."""
        if not self.value_count:
            return NOTHING_UNCERTAIN
        sampling = self.point.sampling
        lower, _, upper = sampling.names
        return f"{lower} to {upper} of {sampling.count:,} samples, {counted(self.value_count, 'uncertain value')}"


def sampling_of(view: View) -> Sampling | None:
    """Sampling for a view; None without samples."""
    return None if view.samples is None else Sampling(view.samples, spreads=_SPREADS[view.spread])


def uncertainty(inputs: SessionInputs, sampling: Sampling) -> ResultBands:
    """The bands of what a session is asked."""
    program, grid = inputs.program, inputs.grid
    point = bands_of(program, Grid(), sampling)
    if any(axis.structural for axis in grid.axes):
        sweep = run_whole(inputs.scenario, grid, sampling).bands
        assert sweep is not None  # noqa: S101
    else:
        sweep = bands_of(program, grid, sampling) if grid.axes else point
    return ResultBands(point, sweep, len(uncertain(sampled_program(program, sampling), sampling)))


def measurements_of(inputs: SessionInputs) -> SweepMeasurements:
    """Measured runs on the sweep of a session."""
    from whatif.studies.measured_points import sweep_measurements  # noqa: PLC0415 - only the worker process reads runs

    return sweep_measurements(inputs)
